package compat

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal/codec"
)

var update = flag.Bool("update", false, "write testdata/names.json anew; only for names that no released version has used")

// persistedNames lists every name that a running workflow, a history or an approver's
// reference may hold.
func persistedNames() map[string][]string {
	var namer durable.Namer
	var codes []string
	for _, code := range durable.Codes() {
		codes = append(codes, string(code))
	}
	return map[string][]string{
		"activities": {
			namer.Unit(durable.OperationCall, "payments.refund"), namer.Unit(durable.OperationStream, "payments.refund"),
			namer.Unit(durable.OperationPreview, "payments.refund"), namer.Catalog(), namer.Audit(), namer.TaskSweep(),
		},
		"workflows":           {namer.ModuleCall(), namer.Task(), namer.TaskRecord(), namer.TaskReaper()},
		"workflow_ids":        {namer.TaskID("store", "task"), namer.TaskID("store", "100% Ä")},
		"schedule_ids":        {namer.TaskReaperID("store")},
		"signals_and_updates": {namer.Approval(), namer.Forward(), namer.TaskSave(), namer.TaskCancel()},
		"queries":             {namer.Approvals(), namer.Task()},
		"headers":             {durable.ContextHeader, "apcore-carry"},
		"payload_codec":       {codec.Encoding, codec.KeyIDField},
		"context_data":        {durable.IdempotencyKey, durable.AttemptKey},
		"module_settings":     {durable.ModuleSettingsKey, durable.ApprovalRulesKey},
		"memo":                {durable.MemoApprovals, durable.MemoTask},
		"search_attributes": {
			durable.SearchModuleID, durable.SearchPendingApprovals, durable.SearchState, durable.SearchApproverGroup, durable.SearchTaskStatus,
			durable.SearchTaskStore, durable.SearchTaskEnd,
		},
		"error_types":     codes,
		"approval_id":     {durable.ApprovalID("workflow/run/1", 0)},
		"unit_statuses":   {string(durable.StatusCompleted), string(durable.StatusApprovalPending), string(durable.StatusNotAsked), string(durable.StatusDecisionRefused)},
		"approval_states": {string(durable.ApprovalIsPending), string(durable.ApprovalIsApproved), string(durable.ApprovalIsRejected), string(durable.ApprovalIsTimeout), string(durable.ApprovalIsCancelled), string(durable.ApprovalIsWithdrawn)},
		"approval_kinds":  {string(durable.KindApproval), string(durable.KindOutcome)},
		"verdicts":        {string(durable.OutcomeRetry), string(durable.OutcomeDone)},
		"audit_events": {
			string(durable.AuditRequested), string(durable.AuditEscalated), string(durable.AuditApproved), string(durable.AuditRejected),
			string(durable.AuditExpired), string(durable.AuditCancelled), string(durable.AuditWithdrawn), string(durable.AuditExecuted),
		},
		"retry_classes": {string(durable.ClassSafe), string(durable.ClassIdempotent), string(durable.ClassAtMostOnce)},
	}
}

// aliases lists names that changed, old to new. An entry is needed before a name
// in the golden file may go, and its code has to serve the old name until no
// running workflow uses it.
var aliases = map[string]string{}

// Target 2: persisted names never change by accident.
func TestNamesArePinned(t *testing.T) {
	path := filepath.Join("testdata", "names.json")
	if *update {
		text, err := json.MarshalIndent(persistedNames(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var pinned map[string][]string
	if err := json.Unmarshal(text, &pinned); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	today := persistedNames()
	for kind, list := range pinned {
		for _, name := range list {
			if !slices.Contains(today[kind], name) && aliases[name] == "" {
				t.Errorf("%s: %q is gone: running workflows that refer to it would be stranded; keep it, or serve it under an alias and say so in aliases", kind, name)
			}
		}
	}
	if diff := cmp.Diff(pinned, today); diff != "" && len(aliases) == 0 {
		t.Errorf("names differ from %s; new ones are added with -update (-pinned +today):\n%s", path, diff)
	}
}
