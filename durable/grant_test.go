package durable_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// A grant of the outer call opens no other gate: neither one of a nested call,
// nor with the same token brought by hand.
func TestGrantDoesNotReachNestedCalls(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	must(t, apcore.Register(w.registry, "pay.greedy", func(ctx context.Context, _ map[string]any) (map[string]any, error) {
		c, _ := apcore.FromContext(ctx)
		id := durable.ApprovalID("w/w/1", 0)
		_, err := c.Executor().Call(ctx, "pay.transfer", map[string]any{"to": "me", "amount": 1, apcore.ApprovalTokenKey: id}, c)
		return map[string]any{"code": string(apcore.CodeOf(err))}, nil
	}, apcore.Spec{Description: "Tries its luck", Annotations: apcore.Annotations{RequiresApproval: true}}))
	done := w.start(t.Context(), "pay.greedy", map[string]any{})
	must(t, w.run.Decide(decide(w.pending(t).ApprovalID, apcore.ApprovalApproved)))
	got := <-done
	must(t, got.err)
	if string(got.result.Output) != `{"code":"APPROVAL_DENIED"}` || w.effects.Load() != 0 {
		t.Errorf("output %s, %d effects", got.result.Output, w.effects.Load())
	}
}

// Target 9 in small: a grant is bound to its call; another call cannot use it.
func TestGrantServesOneCall(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	request, result := w.pendingRequest(t)
	decision := decide(result.Approval.ApprovalID, apcore.ApprovalApproved)
	decision.DecidedAt = noon
	request.Decision, request.Grant = &decision, &result.Approval.Grant
	if _, err := w.invoker.Invoke(t.Context(), request, 1); err != nil {
		t.Fatal(err)
	}
	request.CallID = "w/w/2"
	if _, err := w.invoker.Invoke(t.Context(), request, 1); !errors.Is(err, durable.CodeGrantCall) {
		t.Errorf("another call: %v", err)
	}
	if w.effects.Load() != 1 {
		t.Errorf("%d effects, want 1", w.effects.Load())
	}
}

func (w *world) pendingRequest(t *testing.T) (durable.CallRequest, *durable.CallResult) {
	t.Helper()
	request := durable.CallRequest{
		V: 1, ModuleID: "pay.transfer", Inputs: []byte(`{"to":"A","amount":9007199254740993}`), CallID: "w/w/1", RequestedAt: noon,
		Context: []byte(`{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","call_chain":[],"identity":{"id":"maria","type":"user"}}`),
	}
	result, err := w.invoker.Invoke(t.Context(), request, 1)
	must(t, err)
	if result.Status != durable.StatusApprovalPending {
		t.Fatalf("status %q", result.Status)
	}
	return request, result
}

// Target 8, scenario 21: whatever the grant is bound to, a difference is refused
// with a code of its own and nothing runs.
func TestGrantBinding(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*durable.CallRequest)
		want   apcore.Code
	}{
		{"nothing", func(*durable.CallRequest) {}, ""},
		{"keys in another order", func(r *durable.CallRequest) { r.Inputs = []byte(`{"amount":9007199254740993,"to":"A"}`) }, ""},
		{"amount", func(r *durable.CallRequest) { r.Inputs = []byte(`{"to":"A","amount":9007199254740992}`) }, durable.CodeGrantArguments},
		{"amount written otherwise", func(r *durable.CallRequest) { r.Inputs = []byte(`{"to":"A","amount":9007199254740993.0}`) }, durable.CodeGrantArguments},
		{"further argument", func(r *durable.CallRequest) {
			r.Inputs = []byte(`{"to":"A","amount":9007199254740993,"card":"1"}`)
		}, durable.CodeGrantArguments},
		{"call", func(r *durable.CallRequest) { r.CallID = "w/w/2" }, durable.CodeGrantCall},
		{"module", func(r *durable.CallRequest) { r.ModuleID = "pay.indirect" }, durable.CodeGrantModule},
		{"requester", func(r *durable.CallRequest) {
			r.Context = []byte(`{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","call_chain":[],"identity":{"id":"otto","type":"user"}}`)
		}, durable.CodeGrantRequester},
		{"no requester", func(r *durable.CallRequest) {
			r.Context = []byte(`{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","call_chain":[],"identity":null}`)
		}, durable.CodeGrantRequester},
		{"approval id", func(r *durable.CallRequest) { r.Decision.ApprovalID = "apr-other" }, durable.CodeGrantApproval},
		{"decided at the deadline", func(r *durable.CallRequest) { r.Decision.DecidedAt = r.Grant.Deadline }, durable.CodeGrantExpired},
		{"longer deadline", func(r *durable.CallRequest) { r.Grant.Deadline = r.Grant.Deadline.Add(time.Hour) }, durable.CodeGrantSeal},
		{"forged digest", func(r *durable.CallRequest) { r.Grant.ArgumentsDigest = "00" }, durable.CodeGrantSeal},
		{"no seal", func(r *durable.CallRequest) { r.Grant.Seal = "" }, durable.CodeGrantSeal},
		{"no grant", func(r *durable.CallRequest) { r.Grant = nil }, durable.CodeGrantMissing},
		{"no decision", func(r *durable.CallRequest) { r.Decision = nil }, durable.CodeGrantMissing},
		{"rejected", func(r *durable.CallRequest) { r.Decision.Status = apcore.ApprovalRejected }, apcore.CodeApprovalDenied},
		{"empty status", func(r *durable.CallRequest) { r.Decision.Status = "" }, apcore.CodeApprovalDenied},
		{"own token", func(r *durable.CallRequest) {
			r.Inputs = []byte(`{"to":"A","amount":9007199254740993,"_approval_token":"x"}`)
		}, durable.CodeTokenRefused},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, apcore.ExecutorOptions{})
			request, result := w.pendingRequest(t)
			decision := decide(result.Approval.ApprovalID, apcore.ApprovalApproved)
			decision.DecidedAt = noon.Add(time.Minute)
			grant := result.Approval.Grant
			request.Decision, request.Grant = &decision, &grant
			test.change(&request)
			_, err := w.invoker.Invoke(t.Context(), request, 1)
			if got := apcore.CodeOf(err); got != test.want {
				t.Errorf("code %q, want %q (%v)", got, test.want, err)
			}
			if want := int64(map[bool]int{true: 1}[test.want == ""]); w.effects.Load() != want {
				t.Errorf("%d effects, want %d", w.effects.Load(), want)
			}
		})
	}
}

// The module changed while the approver thought: what was approved is gone.
func TestGrantIsBoundToTheModule(t *testing.T) {
	for _, test := range []struct {
		name    string
		version string
		extra   string
		want    apcore.Code
	}{
		{"version", "2.0.0", "", durable.CodeGrantVersion},
		{"schema", "", "note", durable.CodeGrantSchema},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, apcore.ExecutorOptions{})
			request, result := w.pendingRequest(t)
			definition := w.registry.Definition("pay.transfer")
			w.registry.Unregister("pay.transfer", apcore.UnregisterOptions{})
			schema := definition.InputSchema
			if test.extra != "" {
				schema["title"] = test.extra
			}
			replacement, err := apcore.NewRawFunc(func(context.Context, map[string]any) (map[string]any, error) {
				w.effects.Add(1)
				return nil, nil
			}, apcore.Spec{
				Description: "Moves money", InputSchema: schema, OutputSchema: definition.OutputSchema, Version: test.version,
				Annotations: apcore.Annotations{RequiresApproval: true},
			})
			must(t, err)
			must(t, w.registry.Register("pay.transfer", replacement, apcore.RegisterOptions{}))
			decision := decide(result.Approval.ApprovalID, apcore.ApprovalApproved)
			request.Decision, request.Grant = &decision, &result.Approval.Grant
			if _, err := w.invoker.Invoke(t.Context(), request, 1); apcore.CodeOf(err) != test.want || w.effects.Load() != 0 {
				t.Errorf("error %v, want %s; %d effects", err, test.want, w.effects.Load())
			}
		})
	}
}

// Target 16: what the executor checks is checked again at resume.
func TestResumeChecksAgain(t *testing.T) {
	allowed := atomic.Bool{}
	allowed.Store(true)
	gate := accessFunc(allowed.Load)
	for _, test := range []struct {
		name  string
		spoil func(*world)
		want  apcore.Code
	}{
		{"access revoked", func(*world) { allowed.Store(false) }, apcore.CodeACLDenied},
		{"module gone", func(w *world) { w.registry.Unregister("pay.transfer", apcore.UnregisterOptions{}) }, apcore.CodeModuleNotFound},
		{"module disabled", func(w *world) { w.executor.Disable("pay.transfer", "maintenance") }, apcore.CodeModuleDisabled},
	} {
		t.Run(test.name, func(t *testing.T) {
			allowed.Store(true)
			w := newWorld(t, apcore.ExecutorOptions{AccessControl: gate})
			done := w.start(t.Context(), "pay.transfer", transferInput{To: "A"})
			approval := w.pending(t)
			test.spoil(w)
			must(t, w.run.Decide(decide(approval.ApprovalID, apcore.ApprovalApproved)))
			if err := (<-done).err; apcore.CodeOf(err) != test.want || w.effects.Load() != 0 {
				t.Errorf("error %v, want %s; %d effects", err, test.want, w.effects.Load())
			}
		})
	}
}

type accessFunc func() bool

func (f accessFunc) CheckAccess(context.Context, apcore.AccessRequest) apcore.AccessDecision {
	return apcore.AccessDecision{Allowed: f()}
}
