package durable_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/durable/memory"
)

// withRules hosts pay.transfer under rules; what ran is in transfers.
func withRules(t *testing.T, opts durable.InvokerOptions) (w *world, transfers *[]transferInput) {
	t.Helper()
	w = &world{registry: apcore.NewRegistry(apcore.RegistryOptions{})}
	transfers = &[]transferInput{}
	must(t, apcore.Register(w.registry, "pay.transfer", func(_ context.Context, in transferInput) (map[string]any, error) {
		w.effects.Add(1)
		*transfers = append(*transfers, in)
		return map[string]any{"ok": true}, nil
	}, apcore.Spec{Description: "Moves money", Annotations: apcore.Annotations{Destructive: true, RequiresApproval: true}}))
	var err error
	w.executor, err = apcore.NewExecutor(w.registry, apcore.ExecutorOptions{ApprovalHandler: durable.NewApprovalHandler(), Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	w.invoker, err = durable.NewInvoker(w.executor, opts)
	must(t, err)
	w.run = memory.NewRun("w", w.invoker, nil)
	return w, transfers
}

func by(name string, d durable.Decision, roles ...string) durable.Decision {
	d.ApprovedBy, d.Roles = name, roles
	return d
}

// Target 17, scenario 33: who may decide.
func TestWhoMayDecide(t *testing.T) {
	finance := &durable.ApprovalRules{Approvers: []string{"user:ana", "svc:*"}, Roles: []string{"finance"}}
	for _, test := range []struct {
		name     string
		rules    *durable.ApprovalRules
		status   apcore.ApprovalStatus
		approver string
		roles    []string
		want     apcore.Code
	}{
		{"anyone", nil, apcore.ApprovalApproved, "ana", nil, ""},
		{"the requester", nil, apcore.ApprovalApproved, "maria", nil, durable.CodeDecisionForbidden},
		{"the requester in full", nil, apcore.ApprovalApproved, "user:maria", nil, durable.CodeDecisionForbidden},
		{"the requester in capitals", nil, apcore.ApprovalApproved, " MARIA ", nil, durable.CodeDecisionForbidden},
		{"an agent of that name", nil, apcore.ApprovalApproved, "agent:maria", nil, ""},
		{"the requester takes it back", nil, apcore.ApprovalRejected, "maria", nil, ""},
		{"the requester, allowed", &durable.ApprovalRules{AllowRequester: true}, apcore.ApprovalApproved, "maria", nil, ""},
		{"named", finance, apcore.ApprovalApproved, "ana", nil, ""},
		{"by prefix", finance, apcore.ApprovalApproved, "svc:robot", nil, ""},
		{"by role", finance, apcore.ApprovalApproved, "zoe", []string{"Finance"}, ""},
		{"not named", finance, apcore.ApprovalApproved, "zoe", []string{"sales"}, durable.CodeDecisionForbidden},
		{"not named, rejects", finance, apcore.ApprovalRejected, "zoe", nil, durable.CodeDecisionForbidden},
		{"a longer name", finance, apcore.ApprovalApproved, "user:anabel", nil, durable.CodeDecisionForbidden},
	} {
		t.Run(test.name, func(t *testing.T) {
			inbox := durable.NewInbox(durable.InboxState{})
			approval := pendingApproval("a")
			approval.Requester, approval.Rules = "user:maria", test.rules
			inbox.Open(approval, noon)
			err := inbox.Decide(by(test.approver, decide("a", test.status), test.roles...), noon)
			if got := apcore.CodeOf(err); got != test.want {
				t.Errorf("code %q, want %q", got, test.want)
			}
			if got := inbox.Pending(); (got == 1) != (test.want != "") {
				t.Errorf("%d pending", got)
			}
		})
	}
}

// Target 17: m of n, each a different person; one rejection is enough.
func TestQuorum(t *testing.T) {
	open := func() *durable.Inbox {
		inbox := durable.NewInbox(durable.InboxState{})
		approval := pendingApproval("a")
		approval.Rules = &durable.ApprovalRules{Quorum: 2}
		inbox.Open(approval, noon)
		return inbox
	}
	inbox := open()
	must(t, inbox.Decide(by("ana", decide("a", apcore.ApprovalApproved)), noon))
	if _, decided := inbox.Decision("a"); decided {
		t.Fatal("one of two decided")
	}
	if err := inbox.Decide(by("user:Ana", decide("a", apcore.ApprovalApproved)), noon); !errors.Is(err, durable.CodeDecisionDuplicate) {
		t.Errorf("the same person again: %v", err)
	}
	inbox = durable.NewInbox(inbox.State())
	must(t, inbox.Decide(by("ben", decide("a", apcore.ApprovalApproved)), noon))
	if d, decided := inbox.Decision("a"); !decided || len(d.Votes) != 1 || d.Votes[0].ApprovedBy != "ana" {
		t.Errorf("decision %+v", d)
	}
	inbox = open()
	must(t, inbox.Decide(by("ana", decide("a", apcore.ApprovalApproved)), noon))
	must(t, inbox.Decide(by("ben", decide("a", apcore.ApprovalRejected)), noon))
	if d, _ := inbox.Decision("a"); d.Status != apcore.ApprovalRejected {
		t.Errorf("decision %+v", d)
	}
}

// A run that lies about votes changes nothing: the worker counts itself, and the
// approval waits on.
func TestWorkerCountsVotes(t *testing.T) {
	w, _ := withRules(t, durable.InvokerOptions{Rules: &durable.ApprovalRules{Quorum: 2}})
	request, result := w.pendingRequest(t)
	request.Grant = &result.Approval.Grant
	forged := by("ana", decide(request.Grant.ApprovalID, apcore.ApprovalApproved))
	forged.Votes = []durable.Decision{by("ANA", decide(request.Grant.ApprovalID, apcore.ApprovalApproved))}
	request.Decision = &forged
	answer, err := w.invoker.Invoke(t.Context(), request, 1)
	must(t, err)
	if answer.Status != durable.StatusDecisionRefused || len(answer.Refused) != 1 || w.effects.Load() != 0 {
		t.Errorf("%+v, %d effects", answer, w.effects.Load())
	}
}

// Target 18: an approver changes arguments. What does not fit the schema leaves
// the approval waiting, with the reason.
func TestChangedArguments(t *testing.T) {
	w, transfers := withRules(t, durable.InvokerOptions{SealKey: []byte("key")})
	done := w.start(t.Context(), "pay.transfer", transferInput{To: "A", Amount: 100, Card: "4242"})
	approval := w.pending(t)
	bad := decide(approval.ApprovalID, apcore.ApprovalApproved)
	bad.Changes = durable.Object{"amount": "a lot"}
	must(t, w.run.Decide(bad))
	var again durable.Approval
	for again = w.pending(t); len(again.Ignored) == 0; again = w.pending(t) {
		<-w.run.Changed()
	}
	if again.ApprovalID != approval.ApprovalID || again.Ignored[0].Code != string(apcore.CodeSchemaValidation) {
		t.Errorf("after changes that do not fit: %+v", again)
	}
	good := decide(approval.ApprovalID, apcore.ApprovalApproved)
	good.Changes = durable.Object{"amount": 50}
	must(t, w.run.Decide(good))
	must(t, (<-done).err)
	if len(*transfers) != 1 || (*transfers)[0] != (transferInput{To: "A", Amount: 50, Card: "4242"}) {
		t.Errorf("ran with %+v", *transfers)
	}
}

type signer func(a durable.Approval, d durable.Decision, id string, key ed25519.PrivateKey) durable.Decision

// Signed decisions: without the approver's signature over exactly this decision
// nothing counts, and the approval waits on.
func TestSignedDecisions(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	must(t, err)
	_, stranger, err := ed25519.GenerateKey(nil)
	must(t, err)
	keys := map[string]durable.ApproverKey{"k1": {Public: public, Approver: "user:ana", Roles: []string{"finance"}}}
	sign := func(a durable.Approval, d durable.Decision, id string, key ed25519.PrivateKey) durable.Decision {
		signed, err := durable.SignDecision(d, a, id, key)
		must(t, err)
		return signed
	}
	for _, test := range []struct {
		name string
		make func(sign signer, a durable.Approval) durable.Decision
		ok   bool
	}{
		{"signed", func(sign signer, a durable.Approval) durable.Decision {
			return sign(a, by("ana", decide(a.ApprovalID, apcore.ApprovalApproved), "finance"), "k1", private)
		}, true},
		{"not signed", func(_ signer, a durable.Approval) durable.Decision {
			return decide(a.ApprovalID, apcore.ApprovalApproved)
		}, false},
		{"unknown key", func(sign signer, a durable.Approval) durable.Decision {
			return sign(a, decide(a.ApprovalID, apcore.ApprovalApproved), "k2", private)
		}, false},
		{"a stranger's key", func(sign signer, a durable.Approval) durable.Decision {
			return sign(a, decide(a.ApprovalID, apcore.ApprovalApproved), "k1", stranger)
		}, false},
		{"another name", func(sign signer, a durable.Approval) durable.Decision {
			return sign(a, by("ben", decide(a.ApprovalID, apcore.ApprovalApproved)), "k1", private)
		}, false},
		{"a role it does not carry", func(sign signer, a durable.Approval) durable.Decision {
			return sign(a, by("ana", decide(a.ApprovalID, apcore.ApprovalApproved), "admin"), "k1", private)
		}, false},
		{"a rejection turned round", func(sign signer, a durable.Approval) durable.Decision {
			d := sign(a, decide(a.ApprovalID, apcore.ApprovalRejected), "k1", private)
			d.Status = apcore.ApprovalApproved
			return d
		}, false},
		{"changes slipped in", func(sign signer, a durable.Approval) durable.Decision {
			d := sign(a, decide(a.ApprovalID, apcore.ApprovalApproved), "k1", private)
			d.Changes = durable.Object{"amount": 1_000_000}
			return d
		}, false},
		{"about other arguments", func(sign signer, a durable.Approval) durable.Decision {
			a.ArgumentsDigest = "of something else"
			return sign(a, decide(a.ApprovalID, apcore.ApprovalApproved), "k1", private)
		}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, _ := withRules(t, durable.InvokerOptions{ApproverKeys: keys})
			request, result := w.pendingRequest(t)
			request.Grant = &result.Approval.Grant
			d := test.make(sign, *result.Approval)
			request.Decision = &d
			answer, err := w.invoker.Invoke(t.Context(), request, 1)
			must(t, err)
			if ok := answer.Status == durable.StatusCompleted; ok != test.ok || (w.effects.Load() == 1) != test.ok {
				t.Errorf("status %q, refused %+v, %d effects", answer.Status, answer.Refused, w.effects.Load())
			}
		})
	}
}

// A run whose decision was refused waits on, and the next one counts.
func TestForgedDecisionDoesNotUseUpTheApproval(t *testing.T) {
	public, private, err := ed25519.GenerateKey(nil)
	must(t, err)
	w, _ := withRules(t, durable.InvokerOptions{ApproverKeys: map[string]durable.ApproverKey{"k1": {Public: public, Approver: "ana"}}})
	done := w.start(t.Context(), "pay.transfer", transferInput{To: "A", Amount: 1})
	approval := w.pending(t)
	must(t, w.run.Decide(decide(approval.ApprovalID, apcore.ApprovalApproved)))
	again := w.pending(t)
	for ; len(again.Ignored) == 0; again = w.pending(t) {
		<-w.run.Changed()
	}
	if again.Ignored[0].Code != string(durable.CodeDecisionSignature) || w.effects.Load() != 0 {
		t.Fatalf("%+v, %d effects", again, w.effects.Load())
	}
	signed, err := durable.SignDecision(decide(approval.ApprovalID, apcore.ApprovalApproved), again, "k1", private)
	must(t, err)
	must(t, w.run.Decide(signed))
	must(t, (<-done).err)
	if w.effects.Load() != 1 {
		t.Errorf("%d effects", w.effects.Load())
	}
}

// Bad rules are found before anything runs.
func TestBadRules(t *testing.T) {
	for name, rules := range map[string]any{
		"quorum":                map[string]any{"quorum": -1},
		"quorum above":          map[string]any{"quorum": 21},
		"empty name":            map[string]any{"approvers": []any{" "}},
		"star inside":           map[string]any{"roles": []any{"a*b"}},
		"reminder alone":        map[string]any{"remind_after_ms": 1000},
		"remind module alone":   map[string]any{"remind_module": "notify.mail"},
		"no module id":          map[string]any{"remind_after_ms": 1000, "remind_module": "Notify"},
		"escalation to nobody":  map[string]any{"escalate_after_ms": 1000},
		"escalation at no time": map[string]any{"escalate_to": []any{"ben"}},
		"negative":              map[string]any{"remind_after_ms": -1, "remind_module": "notify.mail"},
		"unknown key":           map[string]any{"quorom": 2},
		"no object":             "two",
	} {
		definition := &apcore.Descriptor{Metadata: map[string]any{durable.ApprovalRulesKey: rules}}
		definition.ID = "pay.transfer"
		if _, err := durable.RulesOf(definition); !errors.Is(err, apcore.CodeConfigInvalid) || apcore.AsError(err).ModuleID() != "pay.transfer" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Reading the wall clock of a bubble keeps this test from waiting.
func TestParkedOutcome(t *testing.T) {
	for _, test := range []struct {
		name    string
		verdict func(id string) durable.Decision
		effects int64
		want    apcore.Code
	}{
		{"retry", func(id string) durable.Decision {
			d := decide(id, apcore.ApprovalApproved)
			d.Verdict = durable.OutcomeRetry
			return d
		}, 2, ""},
		{"done", func(id string) durable.Decision {
			d := decide(id, apcore.ApprovalApproved)
			d.Verdict, d.Output = durable.OutcomeDone, []byte(`{"ok":true}`)
			return d
		}, 1, ""},
		{"fail", func(id string) durable.Decision { return decide(id, apcore.ApprovalRejected) }, 1, durable.CodeOutcomeUnknown},
		{"nobody", nil, 1, durable.CodeOutcomeUnknown},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{registry: apcore.NewRegistry(apcore.RegistryOptions{})}
				var keys []string
				must(t, apcore.Register(w.registry, "pay.charge", func(ctx context.Context, _ map[string]any) (map[string]any, error) {
					c, _ := apcore.FromContext(ctx)
					key, _ := apcore.NewKey[string](durable.IdempotencyKey).Get(c)
					keys = append(keys, key)
					if w.effects.Add(1) == 1 {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					return map[string]any{"ok": true}, nil
				}, apcore.Spec{Description: "Charges", Timeout: time.Second}))
				var err error
				w.executor, err = apcore.NewExecutor(w.registry, apcore.ExecutorOptions{Logger: slog.New(slog.DiscardHandler)})
				must(t, err)
				w.invoker, err = durable.NewInvoker(w.executor, durable.InvokerOptions{})
				must(t, err)
				policy := durable.PolicyFor(durable.ClassAtMostOnce, time.Second)
				policy.Park, policy.ParkTimeout = true, time.Hour
				w.run = memory.NewRun("w", w.invoker, func(string) durable.Policy { return policy })
				done := w.start(t.Context(), "pay.charge", nil)
				if test.verdict != nil {
					question := w.pending(t)
					if question.Kind != durable.KindOutcome || question.CallID != "w/w/1" {
						t.Errorf("question %+v", question)
					}
					if err := w.run.Decide(decide(question.ApprovalID, apcore.ApprovalApproved)); !errors.Is(err, durable.CodeDecisionInvalid) {
						t.Errorf("an approval without verdict: %v", err)
					}
					must(t, w.run.Decide(test.verdict(question.ApprovalID)))
				}
				got := <-done
				if apcore.CodeOf(got.err) != test.want || w.effects.Load() != test.effects {
					t.Errorf("error %v, %d effects, want %q and %d", got.err, w.effects.Load(), test.want, test.effects)
				}
				if test.want == "" && string(got.result.Output) != `{"ok":true}` {
					t.Errorf("output %s", got.result.Output)
				}
				if len(keys) == 2 && keys[0] != keys[1] {
					t.Errorf("keys %q", keys)
				}
			})
		})
	}
}
