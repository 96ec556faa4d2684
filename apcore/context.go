package apcore

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
)

// Context describes one call within a call tree (apcore §5.7): who acts, which
// modules led here, and the data they share. It serialises, so that a call can
// go on in another process; what belongs to this process (executor, services,
// cancel token, deadline) stays behind.
//
// A caller passes its own Context to [Executor.Call]; the executor derives the
// child for the target. One Context tree is one logical call: give independent
// calls independent contexts. Contexts are immutable but for Data and the
// executor binding.
type Context struct {
	traceID  string
	callerID string
	chain    []string
	identity *Identity
	data     *Data
	span     spanRef

	redactedInputs *capture
	redactedOutput *capture

	binding  *binding
	token    *CancelToken
	services any
	deadline time.Time
}

// binding ties a call tree to one executor; children share it.
type binding struct {
	mu       sync.Mutex
	executor *Executor
}

// ContextOptions are the six inputs of a top-level context (§5.7). The zero
// value makes an anonymous context with a fresh trace id.
type ContextOptions struct {
	// Identity says who acts; nil means nobody is known.
	Identity *Identity
	// TraceParent continues a trace. A malformed trace id is replaced by a fresh
	// one with a warning, never repaired; nil means a fresh one.
	TraceParent *TraceParent
	// CancelToken cancels the call tree; nil means only the context.Context does.
	CancelToken *CancelToken
	// Data are the first entries of the shared data; the map is copied.
	Data map[string]any
	// Services is the application's own container, handed on to every module.
	Services any
	// GlobalDeadline ends the call tree; zero means the executor decides.
	GlobalDeadline time.Time
	// Logger takes warnings; nil means slog.Default().
	Logger *slog.Logger
}

// NewContext makes a top-level context.
func NewContext(opts ContextOptions) *Context {
	root := &struct {
		Context
		data    Data
		binding binding
	}{} // one allocation for what lives equally long
	root.data.values = maps.Clone(opts.Data)
	c := &root.Context
	c.identity, c.data, c.binding = opts.Identity, &root.data, &root.binding
	c.token, c.services, c.deadline = opts.CancelToken, opts.Services, opts.GlobalDeadline
	c.adoptTrace(opts.TraceParent, loggerOr(opts.Logger))
	return c
}

func (c *Context) adoptTrace(parent *TraceParent, logger *slog.Logger) {
	if parent == nil || !validTraceID(parent.TraceID) {
		c.traceID = randomHex(16)
		if parent != nil {
			logger.Warn("apcore: trace id of the trace parent is malformed, a fresh one is used", "trace_id", c.traceID)
		}
		return
	}
	c.traceID = parent.TraceID
	if parentIDPattern.MatchString(parent.ParentID) && !isRepeated(parent.ParentID, '0') {
		c.span = spanRef{id: parent.ParentID, remote: true}
	}
	if parent.Flags != "" {
		traceFlags.Set(c, parent.Flags)
	}
	if len(parent.State) > 0 {
		traceState.Set(c, slices.Clone(parent.State))
	}
}

// TraceID is constant through a call tree: 32 hex digits when made here, as it
// came when deserialised.
func (c *Context) TraceID() string { return c.traceID }

// CallerID is the module that made this call, empty at the top level.
func (c *Context) CallerID() string { return c.callerID }

// CallChain returns a copy of the module ids from the root to the current one,
// never nil.
func (c *Context) CallChain() []string { return append([]string{}, c.chain...) }

// Depth is the length of the call chain.
func (c *Context) Depth() int { return len(c.chain) }

// Identity says who acts, nil if unknown. Children share it.
func (c *Context) Identity() *Identity { return c.identity }

// Data is the state of the call tree, never nil.
func (c *Context) Data() *Data { return c.data }

// Executor is the executor the tree is bound to, nil before the first call.
// Modules make nested calls with it, or shorter with [Call].
func (c *Context) Executor() *Executor {
	c.binding.mu.Lock()
	defer c.binding.mu.Unlock()
	return c.binding.executor
}

// CancelToken is the token of this call, nil on a context that never entered an
// executor and was given none.
func (c *Context) CancelToken() *CancelToken { return c.token }

// Services is the application's container, nil if none was given.
func (c *Context) Services() any { return c.services }

// GlobalDeadline ends the call tree; ok is false when there is none.
func (c *Context) GlobalDeadline() (deadline time.Time, ok bool) {
	return c.deadline, !c.deadline.IsZero()
}

// RedactedInputs returns a copy of the call's inputs with secrets replaced, nil
// before step 3.
func (c *Context) RedactedInputs() map[string]any { return copyObject(c.redactedInputs.get()) }

// RedactedOutput returns a copy of the call's output with secrets replaced, nil
// before step 9.
func (c *Context) RedactedOutput() map[string]any { return copyObject(c.redactedOutput.get()) }

// WithServices returns a context that differs in the services only; a worker
// uses it to equip a context that came from elsewhere.
func (c *Context) WithServices(services any) *Context {
	clone := *c
	clone.services = services
	return &clone
}

// WithCancelToken returns a context that differs in the token only.
func (c *Context) WithCancelToken(token *CancelToken) *Context {
	clone := *c
	clone.token = token
	return &clone
}

// WithGlobalDeadline returns a context that differs in the deadline only; zero
// lets the executor decide.
func (c *Context) WithGlobalDeadline(deadline time.Time) *Context {
	clone := *c
	clone.deadline = deadline
	return &clone
}

// Child derives the context under which target runs: the chain grows by it, the
// caller is the chain's former end, data and binding are shared (§5.7). The
// executor does this at step 1; callers pass their own context instead.
func (c *Context) Child(target string) *Context {
	child := new(Context)
	c.derive(child, target)
	return child
}

func (c *Context) derive(child *Context, target string) {
	*child = *c
	child.callerID = ""
	if len(c.chain) > 0 {
		child.callerID = c.chain[len(c.chain)-1]
	}
	child.chain = make([]string, len(c.chain)+1)
	copy(child.chain, c.chain)
	child.chain[len(c.chain)] = target
	child.redactedInputs, child.redactedOutput = nil, nil
}

// bind ties the tree to the executor: free or same is fine, another one fails
// with CONTEXT_BINDING_ERROR.
func (c *Context) bind(executor *Executor) error {
	if !c.binding.claim(executor) {
		return errOtherExecutor()
	}
	return nil
}

// bindable is bind without its effect.
func (c *Context) bindable(executor *Executor) error {
	if bound := c.Executor(); bound != nil && bound != executor {
		return errOtherExecutor()
	}
	return nil
}

// boundTo returns a context that differs in the binding only.
func (c *Context) boundTo(executor *Executor) *Context {
	clone := *c
	clone.binding = &binding{executor: executor}
	return &clone
}

func errOtherExecutor() *Error {
	return NewError(CodeContextBinding, "the context is bound to another executor: make a new context for this one")
}

func (b *binding) claim(executor *Executor) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.executor == nil {
		b.executor = executor
	}
	return b.executor == executor
}

type contextKey struct{}

// FromContext returns the apcore context of the running call. Modules and hooks
// find it in the context.Context they are given; ok is false outside a call.
func FromContext(ctx context.Context) (c *Context, ok bool) {
	c, ok = ctx.Value(contextKey{}).(*Context)
	return c, ok
}

func intoContext(ctx context.Context, c *Context) context.Context {
	return &carrier{ctx, c}
}

// carrier is context.WithValue that can be a part of something else.
type carrier struct {
	context.Context
	carried *Context
}

func (c *carrier) Value(key any) any {
	if key == any(contextKey{}) {
		return c.carried
	}
	return c.Context.Value(key)
}

func loggerOr(logger *slog.Logger) *slog.Logger {
	if logger == nil {
		return slog.Default()
	}
	return logger
}
