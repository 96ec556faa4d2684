package apcore

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
)

// CorrelationIDKey is the data key of the external id of a request; the default
// of [DedupOptions.KeyOf] reads it.
const CorrelationIDKey = "x-correlation-id"

// DedupStore remembers outputs by key. All methods may be called concurrently.
type DedupStore interface {
	// Load returns the output recorded under key; ok is false if there is none.
	Load(ctx context.Context, key string) (output map[string]any, ok bool, err error)
	// Save records an output. One that is there already should stay, so that all
	// callers see the same.
	Save(ctx context.Context, key string, output map[string]any) error
}

// DedupOptions configures a [DedupMiddleware].
type DedupOptions struct {
	// Store is required.
	Store DedupStore
	// KeyOf names what counts as the same call of a module; equal keys of
	// different modules are different calls. An empty key switches deduplication
	// off for the call. A key must tell apart whoever may not see another's
	// output. nil means [CorrelationKey].
	KeyOf func(*MiddlewareCall) string
	// Priority is 1 to 1000; zero means 100.
	Priority int
	// Logger takes errors of Save; nil means slog.Default().
	Logger *slog.Logger
}

// DedupMiddleware answers a repeated call with the recorded output instead of
// running the module again (apcore durability page, pattern E). Access rules and
// approval stand before it and apply to every call.
//
// What it promises:
//
//   - A call that begins after an equal one has succeeded does not run the
//     module.
//   - Equal calls through one value of this type run one after the other, so
//     parallel ones run the module once if the first succeeds. Across processes
//     nothing keeps them apart: each may run once.
//   - Failures are not recorded. After a timeout or a cancellation the next call
//     runs although the module may still be at work.
//   - A nested call that is equal to one of its own callers runs.
//
// If the store cannot be read the module does not run, and the call fails with
// a retryable GENERAL_INTERNAL_ERROR. If the output cannot be saved, the call
// succeeds, an error is logged, and the next one runs again.
//
// Register it first: what is recorded is then what the caller got, and no other
// middleware works on a call that is answered from the store. A recorded output
// is neither validated nor given to After hooks.
type DedupMiddleware struct {
	opts DedupOptions

	mu    sync.Mutex
	turns map[string]*dedupTurn
}

// dedupTurn is held by the one run of a key that is under way.
type dedupTurn struct {
	holder *Context
	over   chan struct{}
}

// recordedOutput travels as an error from Before to OnError, for Before cannot
// give an output.
type recordedOutput struct{ output map[string]any }

func (*recordedOutput) Error() string { return "the output is recorded" }

var (
	_ Middleware = (*DedupMiddleware)(nil)

	dedupKey = frame[string]{"_apcore.mw.dedup.key"}
)

// NewDedupMiddleware fails with GENERAL_INVALID_INPUT without a store and for a
// priority out of bounds.
func NewDedupMiddleware(opts DedupOptions) (*DedupMiddleware, error) {
	if isNil(opts.Store) {
		return nil, NewError(CodeInvalidInput, "DedupOptions.Store is nil: give one, for example an InMemoryDedupStore")
	}
	priority, err := priorityOption("DedupOptions", opts.Priority)
	if err != nil {
		return nil, err
	}
	opts.Priority = priority
	if opts.KeyOf == nil {
		opts.KeyOf = CorrelationKey
	}
	opts.Logger = loggerOr(opts.Logger)
	return &DedupMiddleware{opts: opts, turns: map[string]*dedupTurn{}}, nil
}

// CorrelationKey is a hash of the text under "x-correlation-id" in the context's
// data, the acting identity's type and id, and the inputs. Without that text it is empty.
func CorrelationKey(call *MiddlewareCall) string {
	stored, _ := call.Context.Data().Get(CorrelationIDKey)
	id, _ := stored.(string)
	if id == "" {
		return ""
	}
	actor := []any{}
	if identity := call.Context.Identity(); identity != nil {
		actor = append(actor, identity.Type(), identity.ID())
	}
	hash, err := ContentHash([]any{id, actor, call.Inputs})
	if err != nil {
		return ""
	}
	return hash
}

// Priority places the middleware.
func (m *DedupMiddleware) Priority() int { return m.opts.Priority }

// Before waits for an equal call under way and looks for a recorded output.
func (m *DedupMiddleware) Before(ctx context.Context, call *MiddlewareCall) (map[string]any, error) {
	key := m.opts.KeyOf(call)
	if key == "" {
		return nil, nil
	}
	key = call.ModuleID + ":" + key
	if nested, err := m.await(key, call.Context); nested || err != nil {
		return nil, err
	}
	output, ok, err := m.opts.Store.Load(ctx, key)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, NewError(CodeInternal, "the dedup store cannot be read, module %q does not run", call.ModuleID).WithCause(err)
	case ok:
		return nil, NewError(CodeInternal, "module %q ran already", call.ModuleID).WithCause(&recordedOutput{output})
	}
	dedupKey.set(m, call.Context, key)
	return nil, nil
}

// After records the output.
func (m *DedupMiddleware) After(ctx context.Context, call *MiddlewareCall, output map[string]any) (map[string]any, error) {
	key, ok := dedupKey.take(m, call.Context)
	if !ok {
		return nil, nil
	}
	// The effect has happened: a cancellation must not keep it from being known.
	if err := m.opts.Store.Save(context.WithoutCancel(ctx), key, output); err != nil {
		m.opts.Logger.ErrorContext(ctx, "apcore: output was not recorded, an equal call will run again",
			"module_id", call.ModuleID, "trace_id", call.Context.traceID, "error", outside.text(err.Error()))
	}
	return nil, nil
}

// OnError answers with a recorded output.
func (m *DedupMiddleware) OnError(_ context.Context, call *MiddlewareCall, err *Error) (*Recovery, error) {
	var recorded *recordedOutput
	if !errors.As(err, &recorded) {
		dedupKey.take(m, call.Context)
		return nil, nil
	}
	output := recorded.output
	if output == nil {
		output = map[string]any{}
	}
	return &Recovery{Output: output}, nil
}

// await takes the key's turn for this run. It ends by itself with the run's
// token, whatever becomes of the run. nested says that the run which holds it is
// waiting for this one.
func (m *DedupMiddleware) await(key string, c *Context) (nested bool, err error) {
	if c.token == nil {
		return false, nil // not a call of an executor
	}
	limit := c.token.context()
	if deadline, ok := c.GlobalDeadline(); ok {
		var stop context.CancelFunc
		limit, stop = context.WithDeadline(limit, deadline)
		defer stop()
	}
	for {
		current := m.tryTurn(key, c)
		switch {
		case current == nil:
			return false, nil
		case encloses(current.holder, c):
			return true, nil
		}
		select {
		case <-current.over:
		case <-limit.Done():
			return false, context.Cause(limit)
		}
	}
}

// encloses reports whether c runs inside of the holder's run: waiting for it
// would never end. Siblings of one tree have chains of equal length.
func encloses(holder, c *Context) bool {
	return holder.data == c.data && len(holder.chain) < len(c.chain) && slices.Equal(holder.chain, c.chain[:len(holder.chain)])
}

// tryTurn takes the turn, or else returns the one that is taken.
func (m *DedupMiddleware) tryTurn(key string, c *Context) *dedupTurn {
	m.mu.Lock()
	defer m.mu.Unlock()
	if current := m.turns[key]; current != nil {
		return current
	}
	turn := &dedupTurn{holder: c, over: make(chan struct{})}
	m.turns[key] = turn
	context.AfterFunc(c.token.context(), func() {
		m.mu.Lock()
		delete(m.turns, key)
		m.mu.Unlock()
		close(turn.over)
	})
	return nil
}
