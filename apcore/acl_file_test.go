package apcore_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

const ruleFile = `$schema: whatever
version: 1.0
default_effect: deny
unknown: {is: ignored}
rules:
  - callers: &outside ["@external"]
    targets: ["public.*"]
    effect: allow
    description: all may read
  - callers: *outside
    targets: ["repo.push"]
    effect: allow
    approval: required
    conditions: {arguments: {has_key: [force]}, max_call_depth: 3, ratio: 0.5, on: [true, null, x]}
`

func TestParseACL(t *testing.T) {
	acl, err := apcore.ParseACL([]byte(ruleFile), apcore.ACLOptions{DefaultEffect: apcore.ACLAllow})
	if err != nil {
		t.Fatal(err)
	}
	want := []apcore.ACLRule{
		{Callers: []string{"@external"}, Targets: []string{"public.*"}, Effect: "allow", Description: "all may read"},
		{Callers: []string{"@external"}, Targets: []string{"repo.push"}, Effect: "allow", Approval: "required", Conditions: obj{
			"arguments": obj{"has_key": []any{"force"}}, "max_call_depth": int64(3), "ratio": 0.5, "on": []any{true, nil, "x"},
		}},
	}
	if diff := cmp.Diff(want, acl.Rules()); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if acl.DefaultEffect() != apcore.ACLDeny {
		t.Errorf("the file's default effect is deny, not %s", acl.DefaultEffect())
	}
}

func TestParseACLFromJSON(t *testing.T) {
	acl, err := apcore.ParseACL([]byte("{\n\t\"rules\": [{\"callers\": [\"*\"], \"targets\": [\"a\\/b\"], \"effect\": \"deny\",\n\t\"description\": \"\\ud83d\\ude00 \\\\ud83d\\\\ude00\"}]}"),
		apcore.ACLOptions{DefaultEffect: apcore.ACLAllow})
	if err != nil {
		t.Fatal(err)
	}
	want := []apcore.ACLRule{{Callers: []string{"*"}, Targets: []string{"a/b"}, Effect: "deny", Description: `😀 \ud83d\ude00`}}
	if diff := cmp.Diff(want, acl.Rules()); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	if acl.DefaultEffect() != apcore.ACLAllow {
		t.Errorf("a file without a default effect leaves the options', not %s", acl.DefaultEffect())
	}
}

func TestParseACLFaults(t *testing.T) {
	rule := func(lines string) string {
		return "rules:\n  - callers: [a]\n    targets: [b]\n    effect: allow\n" + lines
	}
	tests := []struct {
		name, text string
		code       apcore.Code
		line       any
		key        any
		message    string
	}{
		{name: "empty", text: "", message: "is empty"},
		{name: "comment only", text: "# none\n"},
		{name: "null", text: "---\n", line: 2, message: "must be an object, not null"},
		{name: "a list", text: "- callers: [a]\n", line: 1, message: "must be an object, not a list"},
		{name: "no YAML", text: "rules: [*]\n"},
		{name: "two documents", text: "rules: []\n---\nrules: []\n", message: "one document only"},
		{name: "no rules", text: "rule: []\n", line: 1, key: "rules", message: "is missing"},
		{name: "rules null", text: "rules:\n", line: 1, key: "rules", message: "must be a list, not null"},
		{name: "rules object", text: "rules: {}\n", key: "rules", line: 1},
		{name: "root key twice", text: "rules: []\nrules: []\n", line: 2, key: "rules", message: "twice"},
		{name: "merge", text: "x: &x {rules: []}\n<<: *x\n", line: 2, key: "<<", message: "merge"},
		{name: "default effect", text: "default_effect: maybe\nrules: [5]\n", line: 1, key: "default_effect", message: `is "maybe"`},
		{name: "default effect null", text: "default_effect:\nrules: []\n", line: 1, key: "default_effect", message: "not null"},
		{name: "default effect empty", text: "default_effect: ''\nrules: []\n", line: 1, key: "default_effect"},
		{name: "rule is no object", text: "rules:\n  - allow\n", line: 2, message: "rule 0 must be an object, not a text"},
		{name: "unknown rule key", text: rule("    priority: 5\n"), line: 5, key: "priority", message: "rule 0 has the unknown key"},
		{name: "reserved rule key id", text: rule("    id: x\n"), line: 5, key: "id"},
		{name: "unknown key before values", text: "rules:\n  - effect: maybe\n    actions: [call]\n", line: 3, key: "actions"},
		{name: "rule key twice", text: rule("    effect: deny\n"), line: 5, key: "effect", message: "twice"},
		{name: "key is no text", text: rule("    5: x\n"), line: 5, message: "no text"},
		{name: "no effect", text: "rules:\n  - callers: [a]\n    targets: [b]\n", line: 2, key: "effect", message: "rule 0: effect is missing"},
		{name: "effect before callers", text: "rules:\n  - callers: []\n    targets: []\n    effect: Allow\n", line: 4, key: "effect"},
		{name: "effect boolean", text: "rules:\n  - callers: [a]\n    targets: [b]\n    effect: true\n", line: 4, key: "effect", message: "not a boolean"},
		{name: "approval unknown", text: rule("    approval: maybe\n"), line: 5, key: "approval"},
		{name: "approval empty", text: rule("    approval: ''\n"), line: 5, key: "approval"},
		{name: "approval on a denial", text: "rules:\n  - effect: deny\n    approval: required\n    callers: []\n", line: 3, key: "approval", message: "denies"},
		{name: "no callers", text: "rules:\n  - effect: deny\n    targets: [b]\n", line: 2, key: "callers", message: "is missing"},
		{name: "empty callers", text: "rules:\n  - effect: deny\n    callers: []\n    targets: []\n", line: 3, key: "callers", message: "is empty"},
		{name: "empty targets", text: "rules:\n  - effect: deny\n    callers: [a]\n    targets: []\n", line: 4, key: "targets", message: "is empty"},
		{name: "callers text", text: "rules:\n  - effect: deny\n    callers: a\n    targets: [b]\n", line: 3, key: "callers", message: "not a text"},
		{name: "nested list", text: "rules:\n  - effect: deny\n    callers: [a, [b]]\n    targets: [b]\n", line: 3, key: "callers", message: "callers[1] must be a text, not a list"},
		{name: "caller number", text: "rules:\n  - effect: deny\n    callers: [5]\n    targets: [b]\n", line: 3, key: "callers", message: "not a number"},
		{name: "empty pattern", text: "rules:\n  - effect: deny\n    callers: [a, '']\n    targets: [b]\n", line: 3, key: "callers", message: "callers[1] is an empty text"},
		{name: "second rule", text: rule("  - effect: allow\n    callers: [b]\n    targets: [$not, a, b]\n"), line: 7, key: "targets", message: "rule 1: targets has $not with 2 patterns"},
		{name: "description", text: rule("    description: [x]\n"), line: 5, key: "description"},
		{name: "conditions null", text: rule("    conditions:\n"), line: 5, key: "conditions", message: "must be an object, not null"},
		{name: "conditions list", text: rule("    conditions: [x]\n"), line: 5, key: "conditions"},
		{name: "condition twice", text: rule("    conditions: {a: 1, a: 2}\n"), line: 5, key: "conditions", message: "twice"},
		{name: "condition of no JSON type", text: rule("    conditions: {a: {b: [!!binary aGk=]}}\n"), line: 5, key: "conditions", message: "conditions.a.b[0] has the type"},
		{name: "conditions contain themselves", text: rule("    conditions: &c {$not: *c}\n"), line: 5, key: "conditions", message: "too deep"},
		{name: "audit null", text: "rules: []\naudit:\n", code: apcore.CodeConfigInvalid, line: 2, message: "audit must be an object"},
		{name: "audit unknown key", text: "rules: []\naudit: {sink: x}\n", code: apcore.CodeConfigInvalid, line: 2, key: "sink"},
		{name: "audit enabled", text: "rules: []\naudit: {enabled: yes please}\n", code: apcore.CodeConfigInvalid, line: 2, key: "enabled"},
		{name: "audit level", text: "rules: []\naudit: {log_level: loud}\n", code: apcore.CodeConfigInvalid, line: 2, key: "log_level"},
		{name: "rules before audit", text: "audit: {sink: x}\nrules: [5]\n", line: 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if test.code == "" {
				test.code = apcore.CodeACLRule
			}
			acl, err := apcore.ParseACL([]byte(test.text), apcore.ACLOptions{})
			found := apcore.AsError(err)
			if found == nil || found.Code != test.code || acl != nil {
				t.Fatalf("%v, %v; want %s", acl, err, test.code)
			}
			if found.Details["line"] != test.line || test.key != nil && found.Details["key"] != test.key {
				t.Errorf("details %v, want line %v and key %v: %v", found.Details, test.line, test.key, err)
			}
			if !strings.Contains(found.Message, test.message) {
				t.Errorf("%q does not say %q", found.Message, test.message)
			}
		})
	}
}

func TestParseACLBoundsAliases(t *testing.T) {
	text := "x: &list [" + strings.Repeat("a,", 5000) + "a]\nrules:\n" + strings.Repeat("  - {effect: deny, callers: *list, targets: *list}\n", 5000)
	if _, err := apcore.ParseACL([]byte(text), apcore.ACLOptions{}); !errors.Is(err, apcore.CodeACLRule) {
		t.Errorf("50 million patterns: %v", err)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestLoadACL(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, apcore.ACLFileName)
	if _, err := apcore.LoadACL(path, apcore.ACLOptions{}); !errors.Is(err, apcore.CodeConfigNotFound) || apcore.AsError(err).Details["path"] != path {
		t.Errorf("a missing file: %v", err)
	}
	for _, root := range []string{directory, filepath.Join(directory, "missing")} {
		if acl, err := apcore.DiscoverACL(root, apcore.ACLOptions{}); acl != nil || err != nil {
			t.Errorf("nothing to discover: %v, %v", acl, err)
		}
	}
	if _, err := apcore.LoadACL(directory, apcore.ACLOptions{}); !errors.Is(err, apcore.CodeACLRule) {
		t.Errorf("a directory: %v", err)
	}
	writeFile(t, filepath.Join(directory, "plain"), "")
	if _, err := apcore.DiscoverACL(filepath.Join(directory, "plain"), apcore.ACLOptions{}); !errors.Is(err, apcore.CodeACLRule) {
		t.Errorf("a root that is no directory is no missing file: %v", err)
	}
	writeFile(t, path, "")
	if _, err := apcore.DiscoverACL(directory, apcore.ACLOptions{}); !errors.Is(err, apcore.CodeACLRule) {
		t.Errorf("an empty file is no missing one: %v", err)
	}
	writeFile(t, path, "rules: []\ndefault_effect: 5\n")
	if _, err := apcore.DiscoverACL(directory, apcore.ACLOptions{}); !errors.Is(err, apcore.CodeACLRule) || !strings.Contains(err.Error(), path+":2: default_effect") {
		t.Errorf("a broken file: %v", err)
	}
	writeFile(t, path, "rules: []\n")
	acl, err := apcore.DiscoverACL(directory, apcore.ACLOptions{})
	if err != nil || acl.Check("", "x", nil) {
		t.Errorf("a file without rules denies: %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(directory, "gone"), path); err != nil {
		t.Skip("no symbolic links here")
	}
	if _, err := apcore.DiscoverACL(directory, apcore.ACLOptions{}); !errors.Is(err, apcore.CodeConfigNotFound) {
		t.Errorf("a link into the void is no missing file: %v", err)
	}
}

// TestNilACLIsNone: what DiscoverACL returns for a missing file can go straight
// into the options.
func TestNilACLIsNone(t *testing.T) {
	acl, err := apcore.DiscoverACL(t.TempDir(), apcore.ACLOptions{})
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t, apcore.ExecutorOptions{AccessControl: acl}).module("m", nil)
	_, err = h.call("m", nil, nil)
	h.wants(err, "", 1)
}

func TestACLReload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	writeFile(t, path, "rules:\n  - {callers: ['*'], targets: [a], effect: allow, conditions: {yes: 1}}\n")
	log := &auditLog{}
	acl, err := apcore.LoadACL(path, apcore.ACLOptions{Audit: log.take})
	if err != nil {
		t.Fatal(err)
	}
	if err := acl.RegisterCondition("yes", testConditions["yes"]); err != nil {
		t.Fatal(err)
	}
	if err := acl.AddRule(deny("x", "x")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path, "rules: {}\n")
	if err := acl.Reload(); !errors.Is(err, apcore.CodeACLRule) || len(acl.Rules()) != 2 {
		t.Errorf("a broken file: %v, %d rules", err, len(acl.Rules()))
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := acl.Reload(); !errors.Is(err, apcore.CodeConfigNotFound) || len(acl.Rules()) != 2 {
		t.Errorf("a missing file: %v, %d rules", err, len(acl.Rules()))
	}
	writeFile(t, path, "rules:\n  - {callers: ['*'], targets: [b], effect: allow, conditions: {yes: 1}}\n")
	if err := acl.Reload(); err != nil || len(acl.Rules()) != 1 {
		t.Errorf("reload: %v, %d rules", err, len(acl.Rules()))
	}
	if !acl.CheckAccess(t.Context(), callOf("x", "b", nil)).Allowed || len(log.entries) != 1 {
		t.Errorf("condition and callback must outlive a reload: %+v", log.entries)
	}
	unfiled, _ := newACL(t, nil, "")
	if err := unfiled.Reload(); !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("reload without a file: %v", err)
	}
}

// FuzzParseACL: no text makes it panic, every failure has one of two codes, and
// what is accepted is accepted as rules too.
func FuzzParseACL(f *testing.F) {
	for _, seed := range []string{
		ruleFile, "", "# x", "---\n...\n", "rules: []", "rules: [{}]", `{"rules": [], "audit": {}}`, "rules: &a [*a]",
		"rules:\n  - {callers: [$not, '*'], targets: [$or, a?, '@system'], effect: allow, conditions: &c {$or: [*c], max_call_depth: .nan}}",
		"rules: [{callers: [a], targets: [b], effect: deny, conditions: {a: 0x1F, b: 1e999, c: 99999999999999999999, ? [k] : v}}]",
		"audit: {enabled: false, log_level: error, include_denied: false}\nrules: []", `{"rules": [], "x": "\ud83d\ude00\ud83d"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		options := apcore.ACLOptions{Logger: logTo(&ledger{})}
		acl, err := apcore.ParseACL(text, options)
		if err != nil {
			if code := apcore.CodeOf(err); code != apcore.CodeACLRule && code != apcore.CodeConfigInvalid {
				t.Fatalf("code %q: %v", code, err)
			}
			return
		}
		acl.ValidateRules()
		acl.CheckAccess(t.Context(), callOf("a", "b", nil, "k"))
		options.DefaultEffect = acl.DefaultEffect()
		again, err := apcore.NewACL(acl.Rules(), options)
		if err != nil {
			t.Fatalf("the rules of a legal document are not legal: %v", err)
		}
		if want, got := fmt.Sprint(acl.Rules()), fmt.Sprint(again.Rules()); want != got {
			t.Fatalf("%s became %s", want, got)
		}
	})
}
