package temporal

import (
	"errors"
	"slices"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// carryHeader takes waiting calls and undecided decisions into a successor run.
const carryHeader = "apcore-carry"

// maxCarryBytes bounds what a run hands over.
const maxCarryBytes = 1 << 20

// waiting is a call that waits for a decision.
type waiting struct {
	request    durable.CallRequest
	approvalID string
}

func (s *state) wait(request durable.CallRequest, approvalID string) *waiting {
	w := &waiting{request: request, approvalID: approvalID}
	s.waiting = append(s.waiting, w)
	return w
}

func (s *state) waited(gone *waiting) {
	s.waiting = slices.DeleteFunc(s.waiting, func(w *waiting) bool { return w == gone })
}

// adopt finds the call of the predecessor that this one continues; nil if it is
// a new one.
func (s *state) adopt(request durable.CallRequest) (*durable.Carried, error) {
	if len(s.inherited) == 0 {
		return nil, nil
	}
	digest, err := request.InputsDigest()
	if err != nil {
		return nil, err
	}
	for i, c := range s.inherited {
		if c.Matches(request, digest) {
			s.inherited = slices.Delete(slices.Clone(s.inherited), i, i+1)
			return &c, nil
		}
	}
	return nil, nil
}

// settle waits until no unit runs; what ends from now on is carried over.
func (s *state) settle(ctx workflow.Context) error {
	s.leaving = true
	return workflow.Await(ctx, func() bool { return s.running == 0 })
}

// carry is what the successor needs: every call that waits, with its approval
// whether decided or not, and decisions that came early.
func (s *state) carry() (*durable.Carry, error) {
	c := &durable.Carry{V: durable.WireVersion}
	all := s.desk.inbox.State()
	c.Early, c.Dropped = all.Early, all.Dropped
	for _, approval := range all.Approvals {
		if approval.WorkflowID != "" && approval.Status == durable.ApprovalIsPending {
			c.Approvals = append(c.Approvals, approval)
		}
	}
	for _, w := range s.waiting {
		approval, ok := s.desk.inbox.Get(w.approvalID)
		if !ok {
			continue
		}
		one, err := w.request.Carry(approval)
		if err != nil {
			return nil, err
		}
		c.Calls = append(c.Calls, one)
	}
	for _, one := range s.inherited {
		if one.Approval == nil {
			continue // its end was there to look at for a whole run
		}
		if approval, ok := s.desk.inbox.Get(one.Approval.ApprovalID); ok {
			one.Approval = &approval
		}
		c.Calls = append(c.Calls, one)
	}
	c.Calls = append(c.Calls, s.ended...)
	return c, nil
}

// ends notes how a call ended while the run was leaving: the workflow's code is
// past the point where it could look.
func (s *state) ends(request durable.CallRequest, result durable.CallResult, failed error) {
	if !s.leaving {
		return
	}
	if one, err := request.CarryEnd(result, failed); err == nil {
		s.ended = append(s.ended, one)
	}
}

// handOver writes context and carry into the successor's header.
func (s *state) handOver(ctx workflow.Context, header map[string]*commonpb.Payload) error {
	s.desk.drain(ctx)
	c, err := s.carry()
	if err != nil {
		return err
	}
	if err := writeHeader(header, s.opts.Codecs, s.contextWire()); err != nil {
		return err
	}
	delete(header, carryHeader)
	if len(c.Calls)+len(c.Approvals)+len(c.Early)+c.Dropped == 0 {
		return nil
	}
	payload, err := encodeCarry(c)
	if err != nil {
		return err
	}
	return put(header, s.opts.Codecs, carryHeader, payload)
}

// encodeCarry leaves out what approvers see when it is too much for a header.
func encodeCarry(c *durable.Carry) (*commonpb.Payload, error) {
	for _, shorten := range []bool{false, true} {
		if shorten {
			for i := range c.Calls {
				if c.Calls[i].Approval == nil {
					continue
				}
				c.Calls[i].Approval.Arguments = durable.Object{"omitted": "the run that asked was continued with too much to carry"}
			}
		}
		payload, err := converter.GetDefaultDataConverter().ToPayload(c)
		if err != nil {
			return nil, apcore.NewError(apcore.CodeInternal, "what waits cannot be carried into the next run: %w", err)
		}
		if len(payload.GetData()) <= maxCarryBytes {
			return payload, nil
		}
	}
	return nil, apcore.NewError(durable.CodePayloadTooLarge, "%d calls wait for a decision, too much to carry into the next run: %d bytes are allowed", len(c.Calls), maxCarryBytes).
		WithDetail("path", carryHeader).WithDetail("limit", maxCarryBytes)
}

// end closes the books of a run: what came in the last task is read, what still
// waits is handed over or withdrawn, and the audit is delivered.
func (s *state) end(ctx workflow.Context, err error) error {
	detached, _ := workflow.NewDisconnectedContext(ctx)
	var next *workflow.ContinueAsNewError
	if !errors.As(err, &next) {
		s.desk.withdrawAll(detached)
		s.desk.publish(detached)
		s.audit.flush(detached)
		s.sent(detached)
		s.desk.drain(detached)
		return err
	}
	for s.running > 0 || s.audit.running || s.sending > 0 { // each may cause the others
		s.audit.flush(detached)
		s.sent(detached)
		_ = s.settle(detached)
	}
	if next.Header == nil {
		next.Header = &commonpb.Header{}
	}
	if next.Header.Fields == nil {
		next.Header.Fields = map[string]*commonpb.Payload{}
	}
	if failed := s.handOver(detached, next.Header.Fields); failed != nil {
		return failed
	}
	return err
}

// ContinueAsNew ends a run in favour of a successor, losing nothing: it waits
// until update handlers have returned and running calls are done, and carries
// over the context, the calls that wait for a decision, those that end meanwhile,
// and decisions that came early. The successor makes such a call again, with the
// same inputs: it keeps its id, its idempotency key, its approval and its
// deadline, and one that has ended gives its result at once. Return the error
// from the workflow.
//
// It fails with PAYLOAD_TOO_LARGE if more waits than a run can carry, and with a
// cancellation when ctx is cancelled.
func ContinueAsNew(ctx workflow.Context, fn any, args ...any) error {
	if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(ctx, fn, args...)
}

// maxRunEvents is where a run should go over to a successor even if the server
// does not suggest it: replay of a longer one takes its time.
const maxRunEvents = 10_000

// ShouldContinueAsNew reports whether it is time for [ContinueAsNew]: the server
// suggests it, or the history has 10,000 events.
func ShouldContinueAsNew(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() >= maxRunEvents
}
