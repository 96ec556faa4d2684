package durable_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

var update = flag.Bool("update", false, "write the golden files anew; a wire type that was released may only grow")

func golden(t *testing.T, name string, got []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		must(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	return want
}

// Every wire type has one JSON form, which its reader takes back whole and
// whose unknown fields it ignores.
func TestWireForms(t *testing.T) {
	grant := durable.Grant{
		ApprovalID: "apr-1", CallID: "w/r/2", Module: apcore.ModuleRef{ID: "payments.refund", Version: "1.0.0", SchemaHash: "ab"},
		ArgumentsDigest: "cd", Requester: "user:maria", RequestedAt: noon, Deadline: noon.Add(24 * time.Hour), Seal: "ef",
	}
	decision := durable.Decision{ApprovalID: "apr-1", Status: apcore.ApprovalApproved, ApprovedBy: "ana", Reason: "fine", Metadata: map[string]any{"ticket": "t-1"}, DecidedAt: noon.Add(time.Hour)}
	full := decision
	full.Roles, full.Changes, full.Votes = []string{"finance"}, durable.Object{"amount": json.Number("9007199254740993")}, []durable.Decision{decision}
	full.Signature = &durable.Signature{KeyID: "k1", Value: []byte{1, 2, 3}}
	verdict := durable.Decision{ApprovalID: "out-1", Status: apcore.ApprovalApproved, ApprovedBy: "ops", Verdict: durable.OutcomeDone, Output: json.RawMessage(`{"ok":true}`)}
	rules := &durable.ApprovalRules{
		Quorum: 2, Approvers: []string{"user:ana"}, Roles: []string{"finance"}, AllowRequester: true, RemindAfterMS: 1, RemindModule: "notify.chat",
		EscalateAfterMS: 2, EscalateTo: []string{"user:zoe"}, EscalateModule: "notify.chat",
	}
	governed := durable.Approval{
		Grant: grant, Kind: durable.KindOutcome, Description: "Pays back", Within: "plan.pay", WorkflowID: "child", Rules: rules, Audit: true, Listed: true,
		Escalated: true, Status: durable.ApprovalIsPending, Votes: []durable.Decision{decision},
	}
	nested := []durable.NestedGrant{{Grant: grant, Decision: full}}
	for name, value := range map[string]any{
		"approval_governed": governed,
		"approval_head":     governed.Head(),
		"audit_batch":       durable.AuditBatch{V: 1, Records: []durable.AuditRecord{{ID: "apr-1/executed", Event: durable.AuditExecuted, At: noon, WorkflowID: "w", RunID: "r", Approval: governed, ExecutedDigest: "ee", Outcome: "completed"}}},
		"call_request_nested": durable.CallRequest{
			V: 1, ModuleID: "plan.pay", Inputs: json.RawMessage(`{}`), Context: json.RawMessage(`{}`), CallID: "w/r/1", RequestedAt: noon, Nested: nested,
		},
		"call_result_refused": durable.CallResult{
			V: 1, Status: durable.StatusDecisionRefused, Refused: []durable.IgnoredDecision{{Decision: full, Code: "DECISION_SIGNATURE_INVALID", Reason: "not signed"}}, ArgumentsDigest: "ee",
		},
		"carry": durable.Carry{V: 1, InboxState: durable.InboxState{Early: []durable.Decision{verdict}, Dropped: 1}, Calls: []durable.Carried{
			{CallID: "w/r/1", ModuleID: "payments.refund", IdempotencyKey: "order-7", InputsDigest: "aa", Round: 1, Nested: nested, Approval: &governed, Grant: &grant, Decision: &decision},
			{CallID: "w/r/2", ModuleID: "payments.refund", InputsDigest: "ab", Result: &durable.CallResult{V: 1, Status: durable.StatusCompleted, Output: json.RawMessage(`{}`)}},
			{CallID: "w/r/3", ModuleID: "payments.refund", InputsDigest: "ac", Error: durable.Object{"code": "APPROVAL_DENIED"}},
		}},
		"call_request": durable.CallRequest{
			V: 1, ModuleID: "payments.refund", Inputs: json.RawMessage(`{"amount":9007199254740993}`), Context: json.RawMessage(`{"trace_id":"t"}`),
			CallID: "w/r/2", IdempotencyKey: "order-7", VersionHint: "1.0.0", AcceptRepeatedEffects: true, RequestedAt: noon,
			ApprovalTimeoutMS: 60000, Ask: true, Round: 1, Grant: &grant, Decision: &decision,
		},
		"call_request_small": durable.CallRequest{V: 1, ModuleID: "a.b", Inputs: json.RawMessage(`{}`), Context: json.RawMessage(`{}`), CallID: "w/r/1", RequestedAt: noon},
		"call_result": durable.CallResult{
			V: 1, Status: durable.StatusCompleted, Output: json.RawMessage(`{"ok":true}`), Module: grant.Module,
			Data: map[string]json.RawMessage{"count": json.RawMessage(`3`)},
		},
		"approval": durable.Approval{
			Grant: grant, Description: "Pays back", Arguments: map[string]any{"card": "***REDACTED***"}, Annotations: apcore.Annotations{Destructive: true, RequiresApproval: true},
			CallerID: "shop.order", Identity: apcore.NewIdentity("maria", "user", []string{"clerk"}, nil), Status: durable.ApprovalIsApproved, Decision: &decision,
			Ignored: []durable.IgnoredDecision{{Decision: decision, Code: "DECISION_DUPLICATE", Reason: "decided before"}},
		},
		"inbox": durable.InboxState{Approvals: []durable.Approval{{Grant: grant, Status: durable.ApprovalIsPending}}, Early: []durable.Decision{decision}, Dropped: 1},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := json.MarshalIndent(value, "", "  ")
			must(t, err)
			want := golden(t, name+".json", append(text, '\n'))
			if diff := cmp.Diff(string(want), string(text)+"\n"); diff != "" {
				t.Errorf("wire form (-golden +got):\n%s", diff)
			}
			again, err := reread(value, bytes.Replace(want, []byte("{"), []byte(`{"from_the_future": {"x": 1},`), 1))
			must(t, err)
			if diff := cmp.Diff(string(want), again+"\n"); diff != "" {
				t.Errorf("read and written again (-golden +got):\n%s", diff)
			}
		})
	}
}

// reread decodes a text as the type of a value and writes it again.
func reread(value any, text []byte) (string, error) {
	var err error
	var again []byte
	switch value.(type) {
	case durable.CallRequest:
		again, err = rewrite[durable.CallRequest](text)
	case durable.CallResult:
		again, err = rewrite[durable.CallResult](text)
	case durable.Approval:
		again, err = rewrite[durable.Approval](text)
	case durable.ApprovalHead:
		again, err = rewrite[durable.ApprovalHead](text)
	case durable.AuditBatch:
		again, err = rewrite[durable.AuditBatch](text)
	case durable.Carry:
		again, err = rewrite[durable.Carry](text)
	default:
		again, err = rewrite[durable.InboxState](text)
	}
	return string(again), err
}

func rewrite[T any](text []byte) ([]byte, error) {
	var value T
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	return json.MarshalIndent(value, "", "  ")
}
