package apcore_test

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// chunked is a streaming module with the given chunks and final error; its
// preflight and preview can be given too.
type chunked struct {
	chunks  []map[string]any
	err     error
	stop    func()
	annots  apcore.Annotations
	warn    []string
	changes []apcore.Change
	fail    error
	asked   *int
}

func (chunked) Description() string               { return "Streams" }
func (chunked) InputSchema() map[string]any       { return map[string]any{"required": []any{"q"}} }
func (chunked) OutputSchema() map[string]any      { return map[string]any{"required": []any{"done"}} }
func (m chunked) Annotations() apcore.Annotations { return m.annots }
func (m chunked) Execute(context.Context, map[string]any, *apcore.Context) (map[string]any, error) {
	return map[string]any{"done": true}, nil
}

func (m chunked) Stream(context.Context, map[string]any, *apcore.Context) iter.Seq2[map[string]any, error] {
	return func(yield func(map[string]any, error) bool) {
		if m.asked != nil {
			*m.asked++
		}
		for i, chunk := range m.chunks {
			if !yield(chunk, nil) {
				return
			}
			if m.stop != nil && i == 0 {
				m.stop()
			}
		}
		if m.err != nil {
			yield(nil, m.err)
		}
	}
}

func (m chunked) Preflight(context.Context, map[string]any, *apcore.Context) ([]string, error) {
	if m.asked != nil {
		*m.asked++
	}
	return m.warn, m.fail
}

func (m chunked) Preview(context.Context, map[string]any, *apcore.Context) ([]apcore.Change, error) {
	if m.asked != nil {
		*m.asked++
	}
	return m.changes, m.fail
}

func streaming(t *testing.T, m chunked, opts apcore.ExecutorOptions) (*apcore.Executor, *[]apcore.Event) {
	t.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	must(t, registry.Register("test.stream", m, apcore.RegisterOptions{}))
	events := &[]apcore.Event{}
	opts.Logger = slog.New(slog.DiscardHandler)
	opts.OnEvent = func(e apcore.Event) { *events = append(*events, e) }
	executor, err := apcore.NewExecutor(registry, opts)
	must(t, err)
	return executor, events
}

func drain(chunks iter.Seq2[map[string]any, error]) (got []map[string]any, err error) {
	for chunk, failure := range chunks {
		if failure != nil {
			return got, failure
		}
		got = append(got, chunk)
	}
	return got, nil
}

var q = map[string]any{"q": 1}

func TestStream(t *testing.T) {
	one, two := map[string]any{"text": "a", "meta": map[string]any{"n": 1}}, map[string]any{"done": true, "meta": map[string]any{"m": 2}}
	for name, test := range map[string]struct {
		module chunked
		inputs map[string]any
		opts   apcore.ExecutorOptions
		want   []map[string]any
		code   apcore.Code
		event  string
	}{
		"chunks":                {module: chunked{chunks: []map[string]any{one, two}}, inputs: q, want: []map[string]any{one, two}},
		"no chunks":             {module: chunked{}, inputs: q, event: apcore.EventStreamPostValidation},
		"output is not checked": {module: chunked{chunks: []map[string]any{one}}, inputs: q, want: []map[string]any{one}, event: apcore.EventStreamPostValidation},
		"inputs are checked":    {module: chunked{chunks: []map[string]any{one}}, inputs: nil, code: apcore.CodeSchemaValidation},
		"null chunk":            {module: chunked{chunks: []map[string]any{one, nil, two}}, inputs: q, want: []map[string]any{one}, code: apcore.CodeInvalidInput},
		"error in between":      {module: chunked{chunks: []map[string]any{one}, err: errors.New("x")}, inputs: q, want: []map[string]any{one}, code: apcore.CodeModuleExecuteError},
		"recovered":             {module: chunked{chunks: []map[string]any{one}, err: errors.New("x")}, inputs: q, opts: apcore.ExecutorOptions{Middleware: []apcore.Middleware{&swallower{}}}, want: []map[string]any{one, {}}},
		"retry is not taken":    {module: chunked{chunks: []map[string]any{one}, err: errors.New("x")}, inputs: q, opts: apcore.ExecutorOptions{Middleware: []apcore.Middleware{retrying{}}}, want: []map[string]any{one}, code: apcore.CodeModuleExecuteError},
		"denied":                {module: chunked{chunks: []map[string]any{one}, annots: apcore.Annotations{RequiresApproval: true}}, inputs: q, opts: apcore.ExecutorOptions{ApprovalHandler: apcore.AlwaysDeny{}}, code: apcore.CodeApprovalDenied, event: apcore.EventApprovalDecision},
	} {
		t.Run(name, func(t *testing.T) {
			executor, events := streaming(t, test.module, test.opts)
			got, err := drain(executor.Stream(t.Context(), "test.stream", test.inputs, nil))
			if diff := cmp.Diff(test.want, got); diff != "" || apcore.CodeOf(err) != test.code {
				t.Errorf("error %v, want %q (-want +got):\n%s", err, test.code, diff)
			}
			seen := ""
			for _, event := range *events {
				seen = event.Type
			}
			if seen != test.event {
				t.Errorf("event %q, want %q", seen, test.event)
			}
		})
	}
}

type retrying struct{ apcore.BaseMiddleware }

func (retrying) OnError(context.Context, *apcore.MiddlewareCall, *apcore.Error) (*apcore.Recovery, error) {
	return &apcore.Recovery{Retry: &apcore.RetrySignal{Inputs: q}}, nil
}

// shaky streams what it is told for each run; a nil chunk is a failure.
type shaky struct {
	chunked
	runs   [][]map[string]any
	effect *ledger
}

func (s shaky) Stream(_ context.Context, inputs map[string]any, c *apcore.Context) iter.Seq2[map[string]any, error] {
	return func(yield func(map[string]any, error) bool) {
		run := s.effect.count()
		s.effect.add("%v %v", inputs["q"], c.CallChain())
		for _, chunk := range s.runs[run] {
			if chunk == nil {
				yield(nil, errors.New("x"))
				return
			}
			if !yield(chunk, nil) {
				return
			}
		}
	}
}

// TestStreamRetries: a signal is honoured until the first chunk is out, each run
// from the caller's own context (§12.2).
func TestStreamRetries(t *testing.T) {
	chunk := map[string]any{"done": true}
	for name, test := range map[string]struct {
		runs [][]map[string]any
		want []map[string]any
		code apcore.Code
		ran  int
	}{
		"at once":           {[][]map[string]any{{chunk}}, []map[string]any{chunk}, "", 1},
		"third time":        {[][]map[string]any{{nil}, {nil}, {chunk, chunk}}, []map[string]any{chunk, chunk}, "", 3},
		"not after a chunk": {[][]map[string]any{{nil}, {chunk, nil}, {chunk}}, []map[string]any{chunk}, apcore.CodeModuleExecuteError, 2},
	} {
		t.Run(name, func(t *testing.T) {
			registry, effect := apcore.NewRegistry(apcore.RegistryOptions{}), &ledger{}
			must(t, registry.Register("test.stream", shaky{runs: test.runs, effect: effect}, apcore.RegisterOptions{}))
			executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{Middleware: []apcore.Middleware{retrying{}}})
			must(t, err)
			got, err := drain(executor.Stream(t.Context(), "test.stream", map[string]any{"q": 0}, nil))
			if diff := cmp.Diff(test.want, got); diff != "" || apcore.CodeOf(err) != test.code {
				t.Errorf("error %v, want %q (-want +got):\n%s", err, test.code, diff)
			}
			want := []string{"0 [test.stream]", "1 [test.stream]", "1 [test.stream]"}[:test.ran]
			if diff := cmp.Diff(want, effect.all()); diff != "" {
				t.Errorf("runs (-want +got):\n%s", diff)
			}
		})
	}
}

// A stream ends with its token, between chunks, and no error hook undoes that.
func TestStreamIsCancelled(t *testing.T) {
	token := apcore.NewCancelToken()
	hook := &swallower{}
	executor, _ := streaming(t, chunked{chunks: []map[string]any{{"a": 1}, {"b": 2}}, stop: token.Cancel}, apcore.ExecutorOptions{Middleware: []apcore.Middleware{hook}})
	got, err := drain(executor.Stream(t.Context(), "test.stream", q, apcore.NewContext(apcore.ContextOptions{CancelToken: token})))
	if !errors.Is(err, apcore.CodeExecutionCancelled) || len(got) != 1 || hook.asked {
		t.Errorf("%d chunks, %v, hook asked: %t", len(got), err, hook.asked)
	}
}

func TestStreamStopsWithItsConsumer(t *testing.T) {
	executor, events := streaming(t, chunked{chunks: []map[string]any{{"a": 1}, {"b": 2}}}, apcore.ExecutorOptions{})
	for _, err := range executor.Stream(t.Context(), "test.stream", q, nil) {
		must(t, err)
		break
	}
	if len(*events) != 0 {
		t.Errorf("events %v", *events)
	}
}

// A consumer that panics gets its own panic back.
func TestStreamConsumerPanics(t *testing.T) {
	executor, _ := streaming(t, chunked{chunks: []map[string]any{{"a": 1}, {"b": 2}}}, apcore.ExecutorOptions{})
	chunks := 0
	defer func() {
		if cause := recover(); cause != "mine" || chunks != 1 {
			t.Errorf("recovered %v after %d chunks", cause, chunks)
		}
	}()
	for range executor.Stream(t.Context(), "test.stream", q, nil) { //nolint:errcheck // the loop ends by its panic
		chunks++
		panic("mine")
	}
}

// The deadline of the call tree is looked at before the module is asked.
func TestStreamAfterItsDeadline(t *testing.T) {
	asked := 0
	executor, _ := streaming(t, chunked{chunks: []map[string]any{{"a": 1}}, asked: &asked}, apcore.ExecutorOptions{})
	late := apcore.NewContext(apcore.ContextOptions{GlobalDeadline: time.Now().Add(-time.Second)})
	got, err := drain(executor.Stream(t.Context(), "test.stream", q, late))
	if !errors.Is(err, apcore.CodeModuleTimeout) || len(got) != 0 || asked != 0 {
		t.Errorf("%d chunks, %v, the module was asked %d times", len(got), err, asked)
	}
}

func TestStreamingMismatch(t *testing.T) {
	err := apcore.Register(apcore.NewRegistry(apcore.RegistryOptions{}), "test.plain", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil },
		apcore.Spec{Description: "Cannot stream", Annotations: apcore.Annotations{Streaming: true}})
	if e := apcore.AsError(err); e == nil || e.Code != apcore.CodeStreamingInterfaceMismatch || e.Details["mismatch_reason"] != "missing_marker" {
		t.Errorf("error %v", err)
	}
}

func TestMergeChunks(t *testing.T) {
	obj := func(pairs ...any) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i].(string)] = pairs[i+1]
		}
		return m
	}
	for name, test := range map[string]struct{ before, chunk, want map[string]any }{
		"nothing before":   {nil, obj("a", 1), obj("a", 1)},
		"empty chunk":      {obj("a", 1), obj(), obj("a", 1)},
		"objects":          {obj("a", obj("x", 1)), obj("a", obj("y", 2)), obj("a", obj("x", 1, "y", 2))},
		"lists":            {obj("a", []any{1}), obj("a", []any{2}), obj("a", []any{2})},
		"texts":            {obj("a", "x"), obj("a", "y"), obj("a", "y")},
		"null":             {obj("a", obj("x", 1)), obj("a", nil), obj("a", nil)},
		"object over text": {obj("a", "x"), obj("a", obj("y", 2)), obj("a", obj("y", 2))},
	} {
		before := cmp.Diff(nil, test.before)
		if diff := cmp.Diff(test.want, apcore.MergeChunks(test.before, test.chunk)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if before != cmp.Diff(nil, test.before) {
			t.Errorf("%s: an argument was changed", name)
		}
	}
}
