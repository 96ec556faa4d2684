package apcore

import (
	"context"
	"sync"
)

// CancelToken cancels a call and everything below it (apcore §11, D-133).
// Tokens form a tree: cancelling one reaches its descendants, never its
// ancestors. The executor gives every call a token of its own, so that a
// timeout of one call leaves its caller untouched.
//
// All methods may be called concurrently.
type CancelToken struct {
	mu     sync.Mutex
	parent context.Context
	ctx    context.Context
	cancel context.CancelCauseFunc
	linked *CancelToken // a second ancestor, which parent need not descend from
	unlink func() bool
}

// NewCancelToken makes a root token.
func NewCancelToken() *CancelToken { return newCancelToken(context.Background()) }

func newCancelToken(parent context.Context) *CancelToken {
	t := &CancelToken{parent: parent}
	t.ctx, t.cancel = context.WithCancelCause(parent)
	return t
}

// Cancel cancels the token and its descendants. It may be called often.
func (t *CancelToken) Cancel() { t.cancelWith(errCancelled()) }

func (t *CancelToken) cancelWith(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancel(cause)
}

// Cancelled reports whether the token or an ancestor was cancelled.
func (t *CancelToken) Cancelled() bool {
	return t != nil && (t.context().Err() != nil || t.linked.Cancelled())
}

// Check returns nil, or an error of code EXECUTION_CANCELLED.
func (t *CancelToken) Check() error {
	if t.Cancelled() {
		return errCancelled()
	}
	return nil
}

// Done is closed when the token is cancelled.
func (t *CancelToken) Done() <-chan struct{} { return t.context().Done() }

// Reset makes a cancelled token usable again; descendants made before stay
// cancelled. It exists for tests.
func (t *CancelToken) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cancel(nil)
	t.ctx, t.cancel = context.WithCancelCause(t.parent)
}

func (t *CancelToken) context() context.Context {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ctx
}

// link makes t, which is zero, the token of one call: it ends with ctx, with the parent
// token if there is one, and by itself. The parent's end reaches Done through
// another goroutine, so Cancelled also asks the parent itself.
func (t *CancelToken) link(ctx context.Context, parent *CancelToken) {
	t.parent = ctx
	t.ctx, t.cancel = context.WithCancelCause(ctx)
	if parent != nil {
		t.linked = parent
		t.unlink = context.AfterFunc(parent.context(), func() { t.cancelWith(errCancelled()) })
	}
}

// release ends the token of a call that is over and frees what links it to
// others; a nil token, of a call that never had one, needs nothing.
func (t *CancelToken) release() {
	if t == nil {
		return
	}
	if t.unlink != nil {
		t.unlink()
	}
	t.cancelWith(nil)
}

func errCancelled() *Error { return NewError(CodeExecutionCancelled, "Execution was cancelled") }
