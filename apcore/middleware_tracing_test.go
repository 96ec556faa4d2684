package apcore_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// spanLedger is an exporter that keeps what it is given.
type spanLedger struct {
	mu    sync.Mutex
	spans []apcore.Span
	err   error
}

func (l *spanLedger) ExportSpan(_ context.Context, span apcore.Span) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spans = append(l.spans, span)
	return l.err
}

// of returns the spans of a module, in the order of their ends.
func (l *spanLedger) of(module string) []apcore.Span {
	l.mu.Lock()
	defer l.mu.Unlock()
	var spans []apcore.Span
	for _, span := range l.spans {
		if span.Attributes["module_id"] == module {
			spans = append(spans, span)
		}
	}
	return spans
}

func (l *spanLedger) one(t *testing.T, module string) apcore.Span {
	t.Helper()
	spans := l.of(module)
	if len(spans) != 1 {
		t.Fatalf("%d spans of %s, want one", len(spans), module)
	}
	return spans[0]
}

func newTracing(t *testing.T, opts apcore.TracingOptions) *apcore.TracingMiddleware {
	t.Helper()
	tracing, err := apcore.NewTracingMiddleware(opts)
	if err != nil {
		t.Fatal(err)
	}
	return tracing
}

// tracedHost is a host whose spans go to a ledger.
func tracedHost(t *testing.T, opts apcore.ExecutorOptions) (*host, *spanLedger) {
	t.Helper()
	spans := &spanLedger{}
	opts.Middleware = append(opts.Middleware, newTracing(t, apcore.TracingOptions{Exporters: []apcore.SpanExporter{spans}}))
	return newHost(t, opts), spans
}

func calling(ids ...string) execute {
	return func(ctx context.Context, _ obj, _ *apcore.Context) (obj, error) {
		var group sync.WaitGroup
		errs := make([]error, len(ids))
		for i, id := range ids {
			group.Go(func() { _, errs[i] = apcore.Call[obj](ctx, id, nil) })
		}
		group.Wait()
		return obj{}, errors.Join(errs...)
	}
}

func TestSpansFollowCalls(t *testing.T) {
	h, spans := tracedHost(t, apcore.ExecutorOptions{})
	h.module("root", calling("left", "right")).module("left", calling("leaf.a")).module("right", calling("leaf.b"))
	h.module("leaf.a", nil).module("leaf.b", failing(apcore.NewError("BROKEN", "x")))
	parent := &apcore.TraceParent{TraceID: strings.Repeat("ab", 16), ParentID: strings.Repeat("cd", 8), Flags: "01"}
	_, err := h.call("root", obj{"n": 1}, apcore.NewContext(apcore.ContextOptions{TraceParent: parent}))
	h.wants(err, "BROKEN", 5)
	root, left, right, a, b := spans.one(t, "root"), spans.one(t, "left"), spans.one(t, "right"), spans.one(t, "leaf.a"), spans.one(t, "leaf.b")
	for _, link := range []struct {
		span   apcore.Span
		parent string
		caller any
		code   any
	}{
		{root, parent.ParentID, nil, "BROKEN"}, {left, root.SpanID, "root", nil}, {right, root.SpanID, "root", "BROKEN"},
		{a, left.SpanID, "left", nil}, {b, right.SpanID, "right", "BROKEN"},
	} {
		s := link.span
		want := obj{"module_id": s.Attributes["module_id"], "method": "execute", "success": link.code == nil, "duration_ms": s.End.Sub(s.Start).Milliseconds()}
		status := apcore.SpanOK
		if link.caller != nil {
			want["caller_id"] = link.caller
		}
		if link.code != nil {
			want["error_code"], status = link.code, apcore.SpanError
		}
		if diff := cmp.Diff(want, s.Attributes); diff != "" {
			t.Errorf("attributes (-want +got):\n%s", diff)
		}
		if s.TraceID != parent.TraceID || s.ParentSpanID != link.parent || s.Name != "apcore.module.execute" || s.Status != status || len(s.SpanID) != 16 {
			t.Errorf("span %+v", s)
		}
	}
	wire := wire(root)
	if wire["parent_span_id"] != parent.ParentID || wire["status"] != "error" || len(wire) != 8 {
		t.Errorf("wire form %v", wire)
	}
}

// Every run has its one span, however it ends.
func TestSpansOfEveryEnd(t *testing.T) {
	retried := 0
	tests := map[string]struct {
		middleware *hook
		body       execute
		want       []any // error codes
	}{
		"retried": {&hook{onError: func(*apcore.MiddlewareCall, *apcore.Error) (*apcore.Recovery, error) {
			if retried++; retried == 1 {
				return &apcore.Recovery{Retry: &apcore.RetrySignal{Inputs: obj{}}}, nil
			}
			return nil, nil
		}}, failing(apcore.NewError("BROKEN", "x")), []any{"BROKEN", "BROKEN"}},
		"recovered within": {&hook{onError: func(*apcore.MiddlewareCall, *apcore.Error) (*apcore.Recovery, error) {
			return &apcore.Recovery{Output: obj{}}, nil
		}}, failing(apcore.NewError("BROKEN", "x")), []any{nil}},
		"cancelled":    {&hook{}, failing(apcore.NewError(apcore.CodeExecutionCancelled, "x")), []any{"EXECUTION_CANCELLED"}},
		"after fails":  {&hook{after: func(*apcore.MiddlewareCall, obj) (obj, error) { return nil, apcore.NewError("LATE", "x") }}, nil, []any{"LATE"}},
		"before fails": {&hook{before: func(*apcore.MiddlewareCall) (obj, error) { return nil, apcore.NewError("EARLY", "x") }}, nil, []any{"EARLY"}},
		"panicked":     {&hook{}, func(context.Context, obj, *apcore.Context) (obj, error) { panic("x") }, []any{"MODULE_EXECUTE_ERROR"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			h, spans := tracedHost(t, apcore.ExecutorOptions{Middleware: []apcore.Middleware{test.middleware}})
			h.module("m", test.body)
			_, _ = h.call("m", nil, nil)
			var codes []any
			for _, span := range spans.of("m") {
				codes = append(codes, span.Attributes["error_code"])
			}
			if diff := cmp.Diff(test.want, codes); diff != "" {
				t.Errorf("codes (-want +got):\n%s", diff)
			}
			h.Validate(t.Context(), "m", nil, nil)
			if got := len(spans.of("m")); got != len(test.want) {
				t.Errorf("%d spans after Validate", got)
			}
		})
	}
	t.Run("ended by the caller", func(t *testing.T) {
		h, spans := tracedHost(t, apcore.ExecutorOptions{})
		h.module("m", nil)
		_, err := h.Do(t.Context(), apcore.Request{ModuleID: "m", Until: func(step string, _ *apcore.Pipeline) bool { return step == "input_validation" }})
		h.wants(err, "", 0)
		spans.one(t, "m")
	})
}

// numbers streams numbers.
type numbers struct{ testModule }

func (*numbers) Stream(context.Context, obj, *apcore.Context) iter.Seq2[obj, error] {
	return func(yield func(obj, error) bool) {
		for n := range 3 {
			if !yield(obj{"n": n}, nil) {
				return
			}
		}
	}
}

func TestSpansOfStreams(t *testing.T) {
	for name, test := range map[string]struct {
		schema obj
		stop   bool
		code   any
	}{
		"whole": {nil, false, nil}, "left early": {nil, true, nil},
		"unfit": {obj{"required": []any{"missing"}}, false, "SCHEMA_VALIDATION_ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			h, spans := tracedHost(t, apcore.ExecutorOptions{})
			module := &numbers{testModule{output: test.schema, annotations: apcore.Annotations{Streaming: true}}}
			if err := h.registry.Register("m", module, apcore.RegisterOptions{}); err != nil {
				t.Fatal(err)
			}
			for _, err := range h.Stream(t.Context(), "m", nil, nil) {
				if err != nil {
					t.Error(err)
				}
				if test.stop {
					break
				}
			}
			if got := spans.one(t, "m").Attributes["error_code"]; got != test.code {
				t.Errorf("code %v, want %v", got, test.code)
			}
		})
	}
}

// What a module sends to others continues below its own span.
func TestInjectedParentIsTheSpan(t *testing.T) {
	h, spans := tracedHost(t, apcore.ExecutorOptions{})
	var headers map[string]string
	h.module("m", func(_ context.Context, _ obj, c *apcore.Context) (_ obj, err error) {
		headers, err = apcore.InjectTraceParent(c, "")
		return obj{}, err
	})
	c := apcore.NewContext(apcore.ContextOptions{})
	_, err := h.call("m", nil, c)
	h.wants(err, "", 1)
	if want := "00-" + c.TraceID() + "-" + spans.one(t, "m").SpanID + "-01"; headers["traceparent"] != want {
		t.Errorf("traceparent %q, want %q", headers["traceparent"], want)
	}
}

func TestSampling(t *testing.T) {
	zero, unset := new(0.0), ""
	for _, test := range []struct {
		strategy apcore.SamplingStrategy
		rate     *float64
		flags    string
		ok, bad  int // spans of a call that ends well and of a failing one
		sent     string
	}{
		{"", zero, unset, 1, 1, "01"}, {apcore.SamplingFull, zero, "00", 1, 1, "00"}, {apcore.SamplingOff, nil, "01", 0, 0, "01"},
		{apcore.SamplingProportional, nil, unset, 1, 1, "01"}, {apcore.SamplingProportional, zero, unset, 0, 0, "00"},
		{apcore.SamplingProportional, zero, "01", 1, 1, "01"}, {apcore.SamplingProportional, nil, "00", 0, 0, "00"},
		{apcore.SamplingErrorFirst, zero, unset, 0, 1, "00"}, {apcore.SamplingErrorFirst, nil, unset, 1, 1, "01"},
	} {
		name := fmt.Sprintf("%s/%v/%s", test.strategy, test.rate == zero, test.flags)
		spans := &spanLedger{}
		h := newHost(t, with(newTracing(t, apcore.TracingOptions{Exporters: []apcore.SpanExporter{spans}, Sampling: test.strategy, Rate: test.rate})))
		var sent map[string]string
		h.module("ok", func(_ context.Context, _ obj, c *apcore.Context) (_ obj, err error) {
			sent, err = apcore.InjectTraceParent(c, "")
			return obj{}, err
		}).module("bad", failing(errors.New("x")))
		for _, id := range []string{"ok", "bad"} {
			parent := &apcore.TraceParent{TraceID: strings.Repeat("ab", 16), Flags: test.flags}
			_, _ = h.call(id, nil, apcore.NewContext(apcore.ContextOptions{TraceParent: parent}))
		}
		if ok, bad := len(spans.of("ok")), len(spans.of("bad")); ok != test.ok || bad != test.bad {
			t.Errorf("%s: %d and %d spans, want %d and %d", name, ok, bad, test.ok, test.bad)
		}
		if !strings.HasSuffix(sent["traceparent"], "-"+test.sent) {
			t.Errorf("%s: sent %s, want flags %s", name, sent["traceparent"], test.sent)
		}
	}
}

// A trace is whole: whoever samples at the same rate takes it, or nobody; a
// higher rate takes all that a lower one takes.
func TestSamplingIsByTrace(t *testing.T) {
	taken := func(rate float64, trace string) bool {
		spans := &spanLedger{}
		h := newHost(t, with(newTracing(t, apcore.TracingOptions{Exporters: []apcore.SpanExporter{spans}, Sampling: apcore.SamplingProportional, Rate: &rate})))
		h.module("root", calling("leaf")).module("leaf", nil)
		_, _ = h.call("root", nil, apcore.DeserializeContext(obj{"trace_id": trace}))
		if len(spans.of("root")) != len(spans.of("leaf")) {
			t.Fatalf("trace %s was torn", trace)
		}
		return len(spans.of("root")) == 1
	}
	rapid.Check(t, func(rt *rapid.T) {
		trace := rapid.OneOf(rapid.StringMatching(`[0-9a-f]{32}`), rapid.StringMatching(`[a-z-]{1,40}`)).Draw(rt, "trace")
		low := rapid.Float64Range(0, 1).Draw(rt, "low")
		high := rapid.Float64Range(low, 1).Draw(rt, "high")
		if taken(low, trace) && !taken(high, trace) {
			rt.Fatalf("%s is taken at %v and not at %v", trace, low, high)
		}
	})
	sampled := 0
	for range 2000 {
		if taken(0.25, apcore.NewContext(apcore.ContextOptions{}).TraceID()) {
			sampled++
		}
	}
	if sampled < 400 || sampled > 600 {
		t.Errorf("%d of 2000 at a rate of 0.25", sampled)
	}
}

// panicking is an exporter that panics.
type panicking struct{}

func (panicking) ExportSpan(context.Context, apcore.Span) error { panic("no") }

// A failing exporter touches neither the call nor the others, and is reported
// once until it works again.
func TestFailingExporters(t *testing.T) {
	logged, good := &ledger{}, &spanLedger{}
	bad := &spanLedger{err: errors.New("dial otlp://user:hunter2@collector")}
	tracing := newTracing(t, apcore.TracingOptions{Logger: logTo(logged)})
	h := newHost(t, with(tracing)).module("m", nil)
	_, _ = h.call("m", nil, nil) // nobody takes its span
	extensions := &apcore.ExtensionManager{}
	for _, exporter := range []apcore.SpanExporter{bad, panicking{}, good} {
		must(t, extensions.Register(apcore.PointSpanExporter, exporter))
	}
	must(t, extensions.Apply(h.registry, h.Executor))
	for range 3 {
		_, err := h.call("m", nil, nil)
		if err != nil {
			t.Error(err)
		}
	}
	bad.err = nil
	_, _ = h.call("m", nil, nil)
	bad.err = errors.New("again")
	_, _ = h.call("m", nil, nil)
	if len(good.of("m")) != 5 || len(bad.of("m")) != 5 {
		t.Errorf("%d and %d spans", len(good.of("m")), len(bad.of("m")))
	}
	if text := strings.Join(logged.all(), "\n"); logged.count() != 3 || strings.Contains(text, "hunter2") {
		t.Errorf("logged %s", text)
	}
}

func TestTracingOptions(t *testing.T) {
	for _, test := range []struct {
		opts  apcore.TracingOptions
		parts []string
	}{
		{apcore.TracingOptions{Sampling: "some"}, []string{"Sampling", "some", "error_first"}},
		{apcore.TracingOptions{Rate: new(1.1)}, []string{"Rate", "1.1", "0 to 1"}},
		{apcore.TracingOptions{Rate: new(math.NaN())}, []string{"Rate", "NaN"}},
		{apcore.TracingOptions{Priority: 1001}, []string{"Priority", "1001", "1000"}},
		{apcore.TracingOptions{Exporters: []apcore.SpanExporter{(*spanLedger)(nil)}}, []string{"Exporters[0]", "nil"}},
	} {
		_, err := apcore.NewTracingMiddleware(test.opts)
		invalidOption(t, err, test.parts...)
	}
	if got := newTracing(t, apcore.TracingOptions{}).Priority(); got != 800 {
		t.Errorf("priority %d", got)
	}
}
