package durable

import (
	"context"
	"sync"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// invocation is one attempt of a durable call while its module runs; it travels
// in the context.Context, where no input of a caller can reach it.
type invocation struct {
	invoker *Invoker
	request CallRequest
	target  string // the id under which the module is registered
	depth   int    // of the directly invoked module's call chain

	mu      sync.Mutex
	equal   map[string]int // equal calls in process so far
	waiting *Approval      // of the first call in process that went pending
}

type invocationKey struct{}

func intoContext(ctx context.Context, inv *invocation) context.Context {
	return context.WithValue(ctx, invocationKey{}, inv)
}

func fromContext(ctx context.Context) *invocation {
	inv, _ := ctx.Value(invocationKey{}).(*invocation)
	return inv
}

// direct reports whether the call at hand is the durable call itself and not
// one that its module makes in process.
func (inv *invocation) direct(c *apcore.Context) bool {
	chain := c.CallChain()
	return len(chain) == inv.depth && chain[len(chain)-1] == inv.target
}

// ApprovalHandler answers the approval gate of a durable call: it says pending,
// the run waits for a [Decision], and the resumed call brings the decision back.
// It keeps nothing, so every worker can resume what another one began. What a
// decision is bound to is checked before the gate, see [Invoker].
//
// Outside a durable call it refuses.
type ApprovalHandler struct{}

// NewApprovalHandler makes the handler.
func NewApprovalHandler() *ApprovalHandler { return &ApprovalHandler{} }

// RequestApproval answers pending with an id that is the same on every attempt.
func (h *ApprovalHandler) RequestApproval(ctx context.Context, request *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
	inv := fromContext(ctx)
	if inv == nil {
		return refuse("a durable approval needs a durable call: this one was made outside a workflow"), nil
	}
	if !inv.direct(request.Context) {
		return inv.nested(ctx, request)
	}
	id := ApprovalID(inv.request.CallID, inv.request.Round)
	return &apcore.ApprovalResult{Status: apcore.ApprovalPending, ApprovalID: id}, nil
}

// CheckApproval gives the decision that came with this very call, and nothing
// for any other call or id.
func (h *ApprovalHandler) CheckApproval(ctx context.Context, approvalID string) (*apcore.ApprovalResult, error) {
	inv := fromContext(ctx)
	if inv == nil || inv.request.Decision == nil {
		return refuse("no decision came with this call"), nil
	}
	c, ok := apcore.FromContext(ctx)
	if !ok || !inv.direct(c) {
		return refuse("the decision belongs to another call"), nil
	}
	decision := inv.request.Decision
	if decision.ApprovalID != approvalID {
		return refuse("the decision is about another approval"), nil
	}
	return &apcore.ApprovalResult{
		Status: decision.Status, ApprovedBy: decision.ApprovedBy, Reason: decision.Reason,
		ApprovalID: approvalID, Metadata: decision.Metadata,
	}, nil
}

func refuse(reason string) *apcore.ApprovalResult {
	return &apcore.ApprovalResult{Status: apcore.ApprovalRejected, Reason: reason}
}

var _ apcore.ApprovalHandler = (*ApprovalHandler)(nil)
