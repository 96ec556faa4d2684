package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/durable/memory"
)

// transfer is a gated module that counts its effects.
type transferInput struct {
	To     string `json:"to"`
	Amount int64  `json:"amount"`
	Card   string `json:"card,omitempty" apcore:"sensitive"`
}

type world struct {
	effects  atomic.Int64
	registry *apcore.Registry
	executor *apcore.Executor
	invoker  *durable.Invoker
	run      *memory.Run
}

// newWorld hosts pay.transfer (gated, at most once), shop.lookup (readonly) and
// pay.indirect, which calls pay.transfer in process.
func newWorld(t *testing.T, opts apcore.ExecutorOptions) *world {
	t.Helper()
	w := &world{registry: apcore.NewRegistry(apcore.RegistryOptions{})}
	must(t, apcore.Register(w.registry, "pay.transfer", func(context.Context, transferInput) (map[string]any, error) {
		w.effects.Add(1)
		return map[string]any{"ok": true}, nil
	}, apcore.Spec{Description: "Moves money", Annotations: apcore.Annotations{Destructive: true, RequiresApproval: true}}))
	must(t, apcore.Register(w.registry, "shop.lookup", func(context.Context, struct{}) (map[string]any, error) {
		return map[string]any{"found": true}, nil
	}, apcore.Spec{Description: "Looks up", Annotations: apcore.Annotations{Readonly: true}}))
	must(t, apcore.Register(w.registry, "pay.indirect", func(ctx context.Context, in transferInput) (map[string]any, error) {
		return apcore.Call[map[string]any](ctx, "pay.transfer", in)
	}, apcore.Spec{Description: "Moves money through another module"}))
	if opts.ApprovalHandler == nil {
		opts.ApprovalHandler = durable.NewApprovalHandler()
	}
	opts.Logger = slog.New(slog.DiscardHandler)
	var err error
	w.executor, err = apcore.NewExecutor(w.registry, opts)
	must(t, err)
	w.invoker, err = durable.NewInvoker(w.executor, durable.InvokerOptions{SealKey: []byte("key")})
	must(t, err)
	w.run = memory.NewRun("w", w.invoker, nil)
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pending waits for the first approval that waits.
func (w *world) pending(t testing.TB) durable.Approval {
	t.Helper()
	for {
		changed := w.run.Changed()
		for _, approval := range w.run.Approvals() {
			if approval.Status == durable.ApprovalIsPending {
				return approval
			}
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Second):
			t.Fatal("no approval came")
		}
	}
}

type outcome struct {
	result durable.CallResult
	err    error
}

func (w *world) start(ctx context.Context, moduleID string, inputs any) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		result, err := w.run.Call(ctx, moduleID, inputs, nil)
		done <- outcome{result, err}
	}()
	return done
}

func TestRunApproves(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	done := w.start(t.Context(), "pay.transfer", transferInput{To: "A", Amount: 100, Card: "4242"})
	approval := w.pending(t)
	if got := approval.Arguments["card"]; got == "4242" {
		t.Error("the approver sees the card")
	}
	if w.effects.Load() != 0 {
		t.Fatal("the module ran before the approval")
	}
	must(t, w.run.Decide(decide(approval.ApprovalID, apcore.ApprovalApproved)))
	got := <-done
	must(t, got.err)
	if n := w.effects.Load(); n != 1 || got.result.Status != durable.StatusCompleted {
		t.Errorf("%d effects, status %q; want 1, completed", n, got.result.Status)
	}
}

func TestRunRejects(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	done := w.start(t.Context(), "pay.transfer", transferInput{To: "A"})
	approval := w.pending(t)
	decision := decide(approval.ApprovalID, apcore.ApprovalRejected)
	decision.Reason = "no receipt"
	must(t, w.run.Decide(decision))
	err := (<-done).err
	var denied *apcore.ApprovalError
	if !errors.Is(err, apcore.CodeApprovalDenied) || !errors.As(err, &denied) || denied.Reason() != "no receipt" {
		t.Errorf("error %v", err)
	}
	if w.effects.Load() != 0 {
		t.Error("a rejected module ran")
	}
}

// Scenario 10: nobody answers, and that is never consent.
func TestRunExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, apcore.ExecutorOptions{})
		begin := time.Now()
		_, err := w.run.Call(t.Context(), "pay.transfer", transferInput{To: "A"}, nil)
		if !errors.Is(err, apcore.CodeApprovalTimeout) || w.effects.Load() != 0 {
			t.Errorf("error %v, %d effects", err, w.effects.Load())
		}
		if waited := time.Since(begin); waited < durable.DefaultApprovalTimeout-time.Second {
			t.Errorf("gave up after %v", waited)
		}
		if got := w.run.Approvals()[0]; got.Status != durable.ApprovalIsTimeout || got.Decision != nil {
			t.Errorf("record: %q, decided by %v", got.Status, got.Decision)
		}
	})
}

func TestRunIsCancelledWhileItWaits(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	done := w.start(ctx, "pay.transfer", transferInput{To: "A"})
	approval := w.pending(t)
	cancel()
	if err := (<-done).err; !errors.Is(err, apcore.CodeExecutionCancelled) {
		t.Errorf("error %v", err)
	}
	if err := w.run.Decide(decide(approval.ApprovalID, apcore.ApprovalApproved)); !errors.Is(err, durable.CodeDecisionClosed) {
		t.Errorf("a late approval: %v", err)
	}
	if w.effects.Load() != 0 {
		t.Error("a cancelled module ran")
	}
}

// Two equal calls need two approvals (pitfall 11).
func TestRunAsksForEachCall(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	seen := map[string]bool{}
	for range 2 {
		done := w.start(t.Context(), "pay.transfer", transferInput{To: "A", Amount: 1})
		approval := w.pending(t)
		seen[approval.ApprovalID] = true
		must(t, w.run.Decide(decide(approval.ApprovalID, apcore.ApprovalApproved)))
		must(t, (<-done).err)
	}
	if len(seen) != 2 || w.effects.Load() != 2 {
		t.Errorf("%d approvals for %d effects, want 2 and 2", len(seen), w.effects.Load())
	}
}

// An approval that a module needs for a call of its own cannot be waited for;
// the error says what to do.
func TestRunRefusesNestedApproval(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	_, err := w.run.Call(t.Context(), "pay.indirect", transferInput{To: "A"}, nil)
	if !errors.Is(err, durable.CodeNestedApproval) || apcore.AsError(err).Suggestion == "" {
		t.Errorf("error %v", err)
	}
	if w.effects.Load() != 0 || len(w.run.Approvals()) != 0 {
		t.Errorf("%d effects, %d approvals", w.effects.Load(), len(w.run.Approvals()))
	}
}

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
		Context: []byte(`{"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","identity":{"id":"maria","type":"user"}}`),
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
		{"requester", func(r *durable.CallRequest) { r.Context = []byte(`{"identity":{"id":"otto","type":"user"}}`) }, durable.CodeGrantRequester},
		{"no requester", func(r *durable.CallRequest) { r.Context = []byte(`{}`) }, durable.CodeGrantRequester},
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
			w.registry.Unregister("pay.transfer")
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
		{"module gone", func(w *world) { w.registry.Unregister("pay.transfer") }, apcore.CodeModuleNotFound},
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

// A handler that answers pending for ever ends the call, not the process.
func TestRunBoundsRounds(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{ApprovalHandler: undecided{}})
	done := w.start(t.Context(), "pay.transfer", transferInput{To: "A"})
	for {
		select {
		case got := <-done:
			if apcore.CodeOf(got.err) != apcore.CodeInternal || w.effects.Load() != 0 {
				t.Errorf("error %v, %d effects", got.err, w.effects.Load())
			}
			return
		default:
		}
		for _, approval := range w.run.Approvals() {
			_ = w.run.Decide(decide(approval.ApprovalID, apcore.ApprovalApproved))
		}
	}
}

type undecided struct{}

func (undecided) RequestApproval(context.Context, *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
	return &apcore.ApprovalResult{Status: apcore.ApprovalPending, ApprovalID: "theirs"}, nil
}

func (undecided) CheckApproval(context.Context, string) (*apcore.ApprovalResult, error) {
	return &apcore.ApprovalResult{Status: apcore.ApprovalPending, ApprovalID: "theirs"}, nil
}

// Scenario 26, target 24: what may have happened is not repeated, by the engine's
// schedule or by mistake; what certainly did not is.
func TestAtMostOnce(t *testing.T) {
	for _, test := range []struct {
		name    string
		fail    error
		timeout time.Duration
		want    apcore.Code
		effects int64
	}{
		{"foreign error", errors.New("boom"), 0, apcore.CodeModuleExecuteError, 1},
		{"error that calls itself retryable", apcore.NewError("ACME_BUSY", "busy").WithRetryable(new(true)), 0, "ACME_BUSY", 1},
		{"joined and wrapped", fmt.Errorf("x: %w", errors.Join(errors.New("y"), apcore.NewError("ACME_BUSY", "busy"))), 0, "ACME_BUSY", 1},
		{"timer", nil, time.Second, durable.CodeOutcomeUnknown, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, apcore.ExecutorOptions{})
				effects := atomic.Int64{}
				must(t, apcore.Register(w.registry, "acme.charge", func(ctx context.Context, _ struct{}) (map[string]any, error) {
					effects.Add(1)
					if test.timeout > 0 {
						<-ctx.Done()
					}
					return nil, test.fail
				}, apcore.Spec{Description: "Charges", Timeout: test.timeout}))
				_, err := w.run.Call(t.Context(), "acme.charge", nil, nil)
				if got := apcore.CodeOf(err); got != test.want || effects.Load() != test.effects {
					t.Errorf("code %q, want %q; %d effects, want %d (%v)", got, test.want, effects.Load(), test.effects, err)
				}
			})
		})
	}
}

// The worker refuses a second attempt of an at-most-once module, whatever the
// schedule said; the caller may accept the risk by name.
func TestAttemptGuard(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	request := durable.CallRequest{V: 1, ModuleID: "shop.lookup", Inputs: []byte(`{}`), Context: []byte(`{}`), CallID: "w/w/1"}
	if _, err := w.invoker.Invoke(t.Context(), request, 2); err != nil {
		t.Errorf("a readonly module's second attempt: %v", err)
	}
	request.ModuleID = "pay.indirect"
	if _, err := w.invoker.Invoke(t.Context(), request, 2); !errors.Is(err, durable.CodeOutcomeUnknown) {
		t.Errorf("an at-most-once module's second attempt: %v", err)
	}
	request.AcceptRepeatedEffects = true
	if _, err := w.invoker.Invoke(t.Context(), request, 2); errors.Is(err, durable.CodeOutcomeUnknown) {
		t.Errorf("an accepted second attempt: %v", err)
	}
}

// A module that this worker does not know may come with the next deploy: the
// unit is scheduled anew, and after the grace the call fails.
func TestUnknownModuleHasGrace(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	_, err := w.run.Call(t.Context(), "no.such", nil, nil)
	if !errors.Is(err, apcore.CodeModuleNotFound) {
		t.Errorf("error %v", err)
	}
	var failure *durable.Failure
	if !errors.As(err, &failure) || !failure.NotStarted || !failure.Retry {
		t.Errorf("failure %+v, want one that may be tried again", failure)
	}
}

// A unit that may only ask runs nothing, whatever the gate says; so it may be
// repeated, and a lost worker costs nothing while nobody has decided.
func TestAskingRunsNothing(t *testing.T) {
	for _, test := range []struct {
		name    string
		handler apcore.ApprovalHandler
		want    durable.Status
	}{
		{"durable handler", nil, durable.StatusApprovalPending},
		{"a handler that approves at once", apcore.AutoApprove{}, durable.StatusNotAsked},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, apcore.ExecutorOptions{ApprovalHandler: test.handler})
			request := durable.CallRequest{V: 1, ModuleID: "pay.transfer", Inputs: []byte(`{"to":"A","amount":1}`), Context: []byte(`{}`), CallID: "w/w/1", Ask: true}
			first := ""
			for attempt := 1; attempt <= 3; attempt++ {
				result, err := w.invoker.Invoke(t.Context(), request, attempt)
				must(t, err)
				if result.Status != test.want || w.effects.Load() != 0 {
					t.Fatalf("attempt %d: status %q, %d effects", attempt, result.Status, w.effects.Load())
				}
				if result.Approval == nil {
					continue
				}
				if first == "" {
					first = result.Approval.ApprovalID
				}
				if result.Approval.ApprovalID != first {
					t.Errorf("attempt %d asks under another id", attempt)
				}
			}
			if test.want == durable.StatusNotAsked {
				result, err := w.run.Do(t.Context(), request)
				must(t, err)
				if result.Status != durable.StatusCompleted || w.effects.Load() != 1 {
					t.Errorf("status %q, %d effects", result.Status, w.effects.Load())
				}
			}
		})
	}
}
