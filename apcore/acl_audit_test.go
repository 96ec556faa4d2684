package apcore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

var auditFields = []string{
	"approval_required", "call_depth", "caller_id", "decision", "handler_error", "identity_type", "matched_rule",
	"matched_rule_index", "reason", "roles", "target_id", "timestamp", "trace_id",
}

func TestAuditEntry(t *testing.T) {
	described := demanding(when(allow("*", "t"), "yes", 1))
	described.Description = "the rule"
	acl, log := newACL(t, []apcore.ACLRule{when(allow("*", "t"), "fails", 1), described}, "")
	identity := apcore.NewIdentity("u", "user", []string{"a", "b"}, nil)
	request := callOf("", "t", identity)
	acl.CheckAccess(t.Context(), request)
	acl.CheckAccess(t.Context(), apcore.AccessRequest{CallerID: "m", TargetID: "x"})
	if len(log.entries) != 2 {
		t.Fatalf("%d entries", len(log.entries))
	}
	full, bare := wire(log.entries[0]), wire(log.entries[1])
	for _, entry := range []obj{full, bare} {
		if diff := cmp.Diff(auditFields, slices.Sorted(maps.Keys(entry))); diff != "" {
			t.Errorf("fields (-want +got):\n%s", diff)
		}
		stamp, err := time.Parse("2006-01-02T15:04:05.000Z", text(entry["timestamp"]))
		if err != nil || time.Since(stamp) > time.Minute {
			t.Errorf("timestamp %v", entry["timestamp"])
		}
		delete(entry, "timestamp")
	}
	want := obj{
		"caller_id": "@external", "target_id": "t", "decision": "allow", "reason": "rule_match", "matched_rule": "the rule",
		"matched_rule_index": 1.0, "identity_type": "user", "roles": []any{"a", "b"}, "call_depth": 1.0,
		"trace_id": request.Context.TraceID(), "handler_error": "rule 0, fails: the handler failed: cannot tell", "approval_required": true,
	}
	if diff := cmp.Diff(want, full); diff != "" {
		t.Errorf("full entry (-want +got):\n%s", diff)
	}
	want = obj{
		"caller_id": "m", "target_id": "x", "decision": "deny", "reason": "default_effect", "matched_rule": nil,
		"matched_rule_index": nil, "identity_type": nil, "roles": []any{}, "call_depth": nil,
		"trace_id": nil, "handler_error": nil, "approval_required": false,
	}
	if diff := cmp.Diff(want, bare); diff != "" {
		t.Errorf("bare entry (-want +got):\n%s", diff)
	}
}

// auditedLines runs two checks, one allowed and one denied, and returns the log.
func auditedLines(t *testing.T, audit string, callback func(context.Context, apcore.AuditEntry)) []obj {
	t.Helper()
	var out bytes.Buffer
	acl, err := apcore.ParseACL([]byte("rules: [{callers: ['*'], targets: [a], effect: allow}]\n"+audit), apcore.ACLOptions{
		Audit: callback, Logger: slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	if !acl.Check("", "a", nil) || acl.Check("", "b", nil) {
		t.Error("a sink changed a decision")
	}
	var lines []obj
	for line := range strings.Lines(out.String()) {
		var entry obj
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, entry)
	}
	return lines
}

func TestAuditSinks(t *testing.T) {
	tests := map[string]struct {
		audit    string
		callback bool
		want     []string // level and target of audit lines, else the message
	}{
		"none declared":     {},
		"disabled":          {audit: "audit: {enabled: false}"},
		"declared":          {audit: "audit: {}", want: []string{"INFO a", "INFO b"}},
		"level":             {audit: "audit: {enabled: true, log_level: debug}", want: []string{"DEBUG a", "DEBUG b"}},
		"without denials":   {audit: "audit: {include_denied: false}", want: []string{"apcore: the audit of access rules leaves out denied calls: include_denied is false", "INFO a"}},
		"callback":          {callback: true},
		"callback and file": {audit: "audit: {log_level: error, include_denied: false}", callback: true, want: []string{"log_level,include_denied"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			log := &auditLog{}
			var callback func(context.Context, apcore.AuditEntry)
			if test.callback {
				callback = log.take
			}
			var got []string
			for _, line := range auditedLines(t, test.audit, callback) {
				switch {
				case line["msg"] == apcore.EventACLAudit:
					got = append(got, text(line["level"])+" "+text(line["target_id"]))
					for _, key := range auditFields {
						if _, there := line[key]; !there {
							t.Errorf("%s is not logged", key)
						}
					}
				case line["fields"] != nil:
					got = append(got, text(line["fields"]))
				default:
					got = append(got, text(line["msg"]))
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
			if test.callback != (len(log.entries) == 2) {
				t.Errorf("%d entries for the callback", len(log.entries))
			}
		})
	}
}

func TestAuditSinkPanics(t *testing.T) {
	lines := auditedLines(t, "", func(context.Context, apcore.AuditEntry) { panic("secret") })
	if len(lines) != 1 || lines[0]["level"] != "ERROR" || strings.Contains(text(lines[0]["msg"]), "secret") {
		t.Errorf("a broken sink is reported once, without the panic's text: %v", lines)
	}
}

// brokenLog is a log that panics.
type brokenLog struct{ slog.Handler }

func (brokenLog) Enabled(context.Context, slog.Level) bool  { return true }
func (brokenLog) Handle(context.Context, slog.Record) error { panic("broken") }

func TestAuditLoggerPanics(t *testing.T) {
	acl, err := apcore.ParseACL([]byte("rules: [{callers: ['*'], targets: [a], effect: allow}]\naudit: {}\n"), apcore.ACLOptions{Logger: slog.New(brokenLog{})})
	if err != nil {
		t.Fatal(err)
	}
	if !acl.Check("", "a", nil) {
		t.Error("a broken log changed the decision")
	}
}

func TestACLWarnings(t *testing.T) {
	log := &ledger{}
	acl, err := apcore.NewACL([]apcore.ACLRule{allow("x?", "*"), when(allow("*", "*"), "max_call_depth", 5)}, apcore.ACLOptions{Logger: logTo(log)})
	if err != nil {
		t.Fatal(err)
	}
	acl.Check("a", "t", nil)
	acl.Check("a", "t", nil)
	got := log.all()
	if len(got) != 2 || !strings.Contains(got[0], "x?") || !strings.Contains(got[1], "rule_index=1") {
		t.Errorf("want one warning of ? and one of the missing context: %v", got)
	}
}
