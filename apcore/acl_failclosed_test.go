package apcore_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Scenario 85: a condition that cannot be evaluated opens nothing, in neither
// direction, and the audit says so. The module behind it never runs.
func TestBrokenConditionsFailClosed(t *testing.T) {
	user := apcore.NewIdentity("ada", "user", []string{"editor"}, nil)
	for name, condition := range map[string]obj{
		"handler panics":           {"panics": 1},
		"handler fails":            {"fails": 1},
		"nobody knows it":          {"nonsense": 1},
		"depth 5.5":                {"max_call_depth": 5.5},
		"depth text":               {"max_call_depth": "5"},
		"depth NaN":                {"max_call_depth": math.NaN()},
		"depth infinite":           {"max_call_depth": math.Inf(1)},
		"depth null":               {"max_call_depth": nil},
		"not of a panic":           {"$not": obj{"panics": 1}},
		"not of a failure":         {"$not": obj{"fails": 1}},
		"not of the unknown":       {"$not": obj{"nonsense": 1}},
		"not of a bad depth":       {"$not": obj{"max_call_depth": 5.5}},
		"not of not":               {"$not": obj{"$not": obj{"panics": 1}}},
		"or with a panic first":    {"$or": []any{obj{"panics": 1}, obj{"no": 1}}},
		"or with a panic last":     {"$or": []any{obj{"no": 1}, obj{"panics": 1}}},
		"not of or with a panic":   {"$not": obj{"$or": []any{obj{"no": 1}, obj{"panics": 1}}}},
		"beside one that holds":    {"yes": 1, "panics": 1},
		"beside one that does not": {"no": 1, "panics": 1},
	} {
		t.Run(name, func(t *testing.T) {
			guarded := allow("*", "*")
			guarded.Conditions = condition
			refusing := deny("*", "*")
			refusing.Conditions = condition
			for kind, rules := range map[string][]apcore.ACLRule{"allow": {guarded}, "deny": {refusing, allow("*", "*")}} {
				acl, log := newACL(t, rules, map[string]apcore.ACLEffect{"allow": apcore.ACLDeny, "deny": apcore.ACLAllow}[kind])
				h := newHost(t, apcore.ExecutorOptions{AccessControl: acl}).module("m", nil)
				_, err := h.call("m", nil, apcore.NewContext(apcore.ContextOptions{Identity: user}))
				h.wants(err, apcore.CodeACLDenied, 0)
				if len(log.entries) != 1 || log.entries[0].Decision != apcore.ACLDeny || log.entries[0].HandlerError == nil {
					t.Errorf("%s rule: audit %+v", kind, log.entries)
				}
			}
		})
	}
}

// Scenario 85: a negative depth is a number that no chain can meet, not an error.
func TestNegativeDepth(t *testing.T) {
	acl, log := newACL(t, []apcore.ACLRule{when(allow("*", "*"), "max_call_depth", -1)}, apcore.ACLDeny)
	h := newHost(t, apcore.ExecutorOptions{AccessControl: acl}).module("m", nil)
	_, err := h.call("m", nil, nil)
	h.wants(err, apcore.CodeACLDenied, 0)
	if len(log.entries) != 1 || log.entries[0].HandlerError != nil {
		t.Errorf("audit %+v", log.entries)
	}
}

// Scenario 85: an empty list matches nothing, because it is never accepted: not
// from code, not from a file, not later.
func TestEmptyListsAreRefused(t *testing.T) {
	acl, _ := newACL(t, nil, "")
	for _, lists := range [][2][]string{{nil, {"*"}}, {{"*"}, nil}, {{}, {}}, {{"$or"}, {"*"}}, {{""}, {"*"}}} {
		rule := apcore.ACLRule{Callers: lists[0], Targets: lists[1], Effect: apcore.ACLAllow}
		_, err := apcore.NewACL([]apcore.ACLRule{rule}, apcore.ACLOptions{})
		if !errors.Is(err, apcore.CodeACLRule) || !errors.Is(acl.AddRule(rule), apcore.CodeACLRule) {
			t.Errorf("%q: %v", lists, err)
		}
		text := fmt.Sprintf("rules: [{callers: %s, targets: %s, effect: allow}]", yamlList(lists[0]), yamlList(lists[1]))
		if _, err := apcore.ParseACL([]byte(text), apcore.ACLOptions{}); !errors.Is(err, apcore.CodeACLRule) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if got := acl.Rules(); len(got) != 0 {
		t.Errorf("rules %+v", got)
	}
}

func yamlList(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = fmt.Sprintf("%q", text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// Scenario 85: a missing file attaches no access control; one that is there and
// empty, or broken, is an error and never an open door.
func TestMissingAndBrokenFiles(t *testing.T) {
	const rules = "rules: [{callers: ['*'], targets: [other], effect: allow}]\n"
	for name, test := range map[string]struct {
		text string
		code apcore.Code // of loading; empty: a call is then denied
	}{
		"empty":         {"", apcore.CodeACLRule},
		"a comment":     {"# nothing\n", apcore.CodeACLRule},
		"null":          {"null\n", apcore.CodeACLRule},
		"no rules key":  {"default_effect: allow\n", apcore.CodeACLRule},
		"unknown key":   {"rules: [{callers: ['*'], targets: ['*'], effect: allow, priority: 1}]\n", apcore.CodeACLRule},
		"wrong effect":  {"rules: [{callers: ['*'], targets: ['*'], effect: Allow}]\n", apcore.CodeACLRule},
		"wrong default": {"default_effect: permit\n" + rules, apcore.CodeACLRule},
		"cut off":       {"rules: [{callers: ['*'], targets: ['*'", apcore.CodeACLRule},
		"bad audit":     {rules + "audit: {enable: true}\n", apcore.CodeConfigInvalid},
		"no rules":      {"rules: []\n", ""},
		"other rules":   {rules, ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			must(t, os.WriteFile(filepath.Join(root, apcore.ACLFileName), []byte(test.text), 0o600))
			acl, err := apcore.DiscoverACL(root, apcore.ACLOptions{Logger: logTo(&ledger{})})
			if apcore.CodeOf(err) != test.code {
				t.Fatalf("%v, want %q", err, test.code)
			}
			if err != nil {
				if acl != nil {
					t.Error("an error and rules")
				}
				return
			}
			h := newHost(t, apcore.ExecutorOptions{AccessControl: acl}).module("m", nil)
			_, err = h.call("m", nil, nil)
			h.wants(err, apcore.CodeACLDenied, 0)
		})
	}
	acl, err := apcore.DiscoverACL(t.TempDir(), apcore.ACLOptions{})
	must(t, err)
	h := newHost(t, apcore.ExecutorOptions{AccessControl: acl}).module("m", nil)
	_, err = h.call("m", nil, nil)
	h.wants(err, "", 1)
}

// Scenario 85: rules that a handler changes in the middle of its own check do
// not take part in it.
func TestRulesChangeDuringACheck(t *testing.T) {
	var acl *apcore.ACL
	var log auditLog
	acl, err := apcore.NewACL([]apcore.ACLRule{when(allow("*", "*"), "changes", 1), deny("*", "*")}, apcore.ACLOptions{
		Audit: log.take,
		Conditions: map[string]apcore.ACLCondition{"changes": func(context.Context, any, apcore.AccessRequest) (bool, error) {
			acl.RemoveRule([]string{"*"}, []string{"*"}, obj{})
			return false, acl.AddRule(allow("*", "*"))
		}},
	})
	must(t, err)
	h := newHost(t, apcore.ExecutorOptions{AccessControl: acl}).module("m", nil)
	_, err = h.call("m", nil, nil)
	h.wants(err, apcore.CodeACLDenied, 0)
	_, err = h.call("m", nil, nil)
	h.wants(err, "", 1)
	if got := []apcore.ACLEffect{log.entries[0].Decision, log.entries[1].Decision}; !slices.Equal(got, []apcore.ACLEffect{apcore.ACLDeny, apcore.ACLAllow}) {
		t.Errorf("audit %v", got)
	}
}
