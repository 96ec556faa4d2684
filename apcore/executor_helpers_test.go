package apcore_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// ledger counts effects in the order they happened.
type ledger struct {
	mu      sync.Mutex
	entries []string
}

func (l *ledger) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, fmt.Sprintf(format, args...))
}

func (l *ledger) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.entries)
}

func (l *ledger) count() int { return len(l.all()) }

// execute is the body of a test module.
type execute func(ctx context.Context, inputs map[string]any, c *apcore.Context) (map[string]any, error)

// testModule is a module whose parts a test may choose.
type testModule struct {
	apcore.FuncModule
	body        execute
	input       map[string]any
	output      map[string]any
	annotations apcore.Annotations
}

func (m *testModule) Description() string             { return "A test module" }
func (m *testModule) InputSchema() map[string]any     { return m.input }
func (m *testModule) OutputSchema() map[string]any    { return m.output }
func (m *testModule) Annotations() apcore.Annotations { return m.annotations }
func (m *testModule) Execute(ctx context.Context, inputs map[string]any, c *apcore.Context) (map[string]any, error) {
	return m.body(ctx, inputs, c)
}

// host is a registry with an executor, and what its modules did.
type host struct {
	*apcore.Executor
	t        *testing.T
	registry *apcore.Registry
	effects  ledger
}

func newHost(t *testing.T, opts apcore.ExecutorOptions) *host {
	t.Helper()
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	h := &host{t: t, registry: apcore.NewRegistry(apcore.RegistryOptions{Logger: opts.Logger})}
	executor, err := apcore.NewExecutor(h.registry, opts)
	if err != nil {
		t.Fatal(err)
	}
	h.Executor = executor
	return h
}

// module registers a body that is entered in the ledger when it runs; a nil body
// returns {"ok": true}.
func (h *host) module(id string, body execute, options ...func(*testModule)) *host {
	h.t.Helper()
	m := &testModule{}
	m.body = func(ctx context.Context, inputs map[string]any, c *apcore.Context) (map[string]any, error) {
		h.effects.add("%s", id)
		if body == nil {
			return map[string]any{"ok": true}, nil
		}
		return body(ctx, inputs, c)
	}
	for _, option := range options {
		option(m)
	}
	if err := h.registry.Register(id, m, apcore.RegisterOptions{}); err != nil {
		h.t.Fatal(err)
	}
	return h
}

func gated(m *testModule) { m.annotations.RequiresApproval = true }

func inputSchema(schema map[string]any) func(*testModule) {
	return func(m *testModule) { m.input = schema }
}

func outputSchema(schema map[string]any) func(*testModule) {
	return func(m *testModule) { m.output = schema }
}

// call is Do with a background context.
func (h *host) call(id string, inputs map[string]any, c *apcore.Context) (*apcore.Outcome, error) {
	return h.Do(context.Background(), apcore.Request{ModuleID: id, Inputs: inputs, Context: c})
}

// wants checks the code of an error and how many effects there were.
func (h *host) wants(err error, code apcore.Code, effects int) {
	h.t.Helper()
	if got := apcore.CodeOf(err); got != code {
		h.t.Errorf("code %q, want %q: %v", got, code, err)
	}
	if got := h.effects.all(); len(got) != effects {
		h.t.Errorf("effects %v, want %d", got, effects)
	}
}

type obj = map[string]any

// accessFunc decides access.
type accessFunc func(context.Context, apcore.AccessRequest) apcore.AccessDecision

func (f accessFunc) CheckAccess(ctx context.Context, request apcore.AccessRequest) apcore.AccessDecision {
	return f(ctx, request)
}

// hook is a middleware whose parts a test may choose.
type hook struct {
	before   func(*apcore.MiddlewareCall) (obj, error)
	after    func(*apcore.MiddlewareCall, obj) (obj, error)
	onError  func(*apcore.MiddlewareCall, *apcore.Error) (*apcore.Recovery, error)
	priority *int
}

func (h *hook) Before(_ context.Context, call *apcore.MiddlewareCall) (map[string]any, error) {
	if h.before == nil {
		return nil, nil
	}
	return h.before(call)
}

func (h *hook) After(_ context.Context, call *apcore.MiddlewareCall, output map[string]any) (map[string]any, error) {
	if h.after == nil {
		return nil, nil
	}
	return h.after(call, output)
}

func (h *hook) OnError(_ context.Context, call *apcore.MiddlewareCall, err *apcore.Error) (*apcore.Recovery, error) {
	if h.onError == nil {
		return nil, nil
	}
	return h.onError(call, err)
}

func (h *hook) Priority() int {
	if h.priority == nil {
		return 100
	}
	return *h.priority
}

// logTo is a logger that enters its records in a ledger.
func logTo(l *ledger) *slog.Logger { return slog.New(ledgerHandler{l}) }

type ledgerHandler struct{ ledger *ledger }

func (ledgerHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h ledgerHandler) Handle(_ context.Context, record slog.Record) error {
	text := record.Message
	record.Attrs(func(a slog.Attr) bool {
		text += " " + a.String()
		return true
	})
	h.ledger.add("%s", text)
	return nil
}

func (h ledgerHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

func (h ledgerHandler) WithGroup(string) slog.Handler { return h }
