package apcore_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// auditLog keeps the entries of an ACL.
type auditLog struct{ entries []apcore.AuditEntry }

func (l *auditLog) take(_ context.Context, entry apcore.AuditEntry) {
	l.entries = append(l.entries, entry)
}

// testConditions are handlers of every temper.
var testConditions = map[string]apcore.ACLCondition{
	"yes":   func(context.Context, any, apcore.AccessRequest) (bool, error) { return true, nil },
	"no":    func(context.Context, any, apcore.AccessRequest) (bool, error) { return false, nil },
	"fails": func(context.Context, any, apcore.AccessRequest) (bool, error) { return true, errors.New("cannot tell") },
	"panics": func(context.Context, any, apcore.AccessRequest) (bool, error) {
		panic("secret")
	},
}

func newACL(t *testing.T, rules []apcore.ACLRule, effect apcore.ACLEffect) (*apcore.ACL, *auditLog) {
	t.Helper()
	log := &auditLog{}
	acl, err := apcore.NewACL(rules, apcore.ACLOptions{
		DefaultEffect: effect, Conditions: testConditions, Audit: log.take, Logger: logTo(&ledger{}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return acl, log
}

func allow(callers, targets string) apcore.ACLRule {
	return apcore.ACLRule{Callers: strings.Fields(callers), Targets: strings.Fields(targets), Effect: apcore.ACLAllow}
}

func deny(callers, targets string) apcore.ACLRule {
	rule := allow(callers, targets)
	rule.Effect = apcore.ACLDeny
	return rule
}

func when(rule apcore.ACLRule, key string, value any) apcore.ACLRule {
	rule.Conditions = map[string]any{key: value}
	return rule
}

func demanding(rule apcore.ACLRule) apcore.ACLRule {
	rule.Approval = apcore.ACLApprovalRequired
	return rule
}

// callOf is a request of a call at some depth.
func callOf(caller, target string, identity *apcore.Identity, arguments ...string) apcore.AccessRequest {
	c := apcore.NewContext(apcore.ContextOptions{Identity: identity}).Child(target)
	return apcore.AccessRequest{CallerID: caller, TargetID: target, Context: c, ArgumentKeys: append([]string{}, arguments...)}
}

func TestACLPatterns(t *testing.T) {
	system := apcore.NewIdentity("s", apcore.IdentitySystem, nil, nil)
	tests := []struct {
		rule     apcore.ACLRule
		caller   string
		target   string
		identity *apcore.Identity
		want     bool
	}{
		{rule: allow("a.*", "b.c"), caller: "a.x.y", target: "b.c", want: true},
		{rule: allow("a.*", "b.c"), caller: "a", target: "b.c"},
		{rule: allow("a.*", "b.c"), caller: "a.x", target: "b.cc"},
		{rule: allow("*", "b.*.c d.e"), caller: "a", target: "b.x.y.c", want: true},
		{rule: allow("*", "b.*.c d.e"), caller: "a", target: "d.e", want: true},
		{rule: allow("*", "b.*.c d.e"), caller: "a", target: "d.e.f"},
		{rule: allow("$or a b", "$or x y"), caller: "b", target: "y", want: true},
		{rule: allow("$or a b", "$or x y"), caller: "b", target: "z"},
		{rule: allow("$not a", "$not x.*"), caller: "b", target: "y", want: true},
		{rule: allow("$not a", "$not x.*"), caller: "a", target: "y"},
		{rule: allow("$not a", "$not x.*"), caller: "b", target: "x.y"},
		{rule: allow("@external", "x"), caller: "", target: "x", want: true},
		{rule: allow("@external", "x"), caller: apcore.ExternalCaller, target: "x", want: true},
		{rule: allow("@external", "x"), caller: "a", target: "x"},
		{rule: allow("$not @external", "x"), caller: "", target: "x"},
		{rule: allow("*", "x"), caller: "", target: "x", want: true},
		{rule: allow("@system", "x"), caller: "a", target: "x", identity: system, want: true},
		{rule: allow("@system", "x"), caller: "a", target: "x", identity: apcore.NewIdentity("u", "user", []string{"system"}, nil)},
		{rule: allow("@system", "x"), caller: "@system", target: "x"},
		{rule: allow("$not @system", "x"), caller: "a", target: "x", identity: system},
		{rule: allow("$not @system", "x"), caller: "a", target: "x", want: true},
		{rule: allow("*", "@system"), caller: "a", target: "anything", identity: system, want: true},
		{rule: allow("*", "@system"), caller: "a", target: "system.x"},
		{rule: allow("x?", "*"), caller: "xy", target: "t"},
		{rule: allow("m.self", "m.self"), caller: "m.self", target: "m.self", want: true},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%v %v %s %s", test.rule.Callers, test.rule.Targets, test.caller, test.target), func(t *testing.T) {
			acl, log := newACL(t, []apcore.ACLRule{test.rule}, "")
			got := acl.CheckAccess(t.Context(), callOf(test.caller, test.target, test.identity))
			if got.Allowed != test.want {
				t.Errorf("%+v, want %t", got, test.want)
			}
			if len(log.entries) != 1 {
				t.Errorf("%d audit entries", len(log.entries))
			}
			// The same verdict stands when many other rules are in the index.
			var others []apcore.ACLRule
			for i := range 50 {
				others = append(others, deny("*", fmt.Sprintf("other.n%d.*", i)))
			}
			acl, _ = newACL(t, append(others, test.rule), "")
			if got := acl.CheckAccess(t.Context(), callOf(test.caller, test.target, test.identity)); got.Allowed != test.want {
				t.Errorf("behind other rules: %+v, want %t", got, test.want)
			}
		})
	}
}

func TestACLConditions(t *testing.T) {
	editor := apcore.NewIdentity("u", "user", []string{"editor", "viewer"}, nil)
	const yes, no, broken = "holds", "does not hold", "unevaluable"
	tests := []struct {
		key      string
		value    any
		identity *apcore.Identity
		args     []string
		want     string
		noted    bool // handler_error is set all the same
	}{
		{key: "roles", value: []any{"admin", "editor"}, identity: editor, want: yes},
		{key: "roles", value: []string{"viewer"}, identity: editor, want: yes},
		{key: "roles", value: []any{"admin"}, identity: editor, want: no},
		{key: "roles", value: []any{}, identity: editor, want: no},
		{key: "roles", value: []any{"admin"}, want: no},
		{key: "roles", value: "editor", identity: editor, want: broken},
		{key: "roles", value: []any{"editor", 5}, identity: editor, want: broken},
		{key: "identity_types", value: []any{"service", "user"}, identity: editor, want: yes},
		{key: "identity_types", value: []any{"service"}, identity: editor, want: no},
		{key: "identity_types", value: []any{"user"}, want: no},
		{key: "identity_types", value: nil, identity: editor, want: broken},
		{key: "max_call_depth", value: 1, want: yes},
		{key: "max_call_depth", value: 0, want: no},
		{key: "max_call_depth", value: -1, want: no},
		{key: "max_call_depth", value: 1.0, want: yes},
		{key: "max_call_depth", value: uint64(math.MaxUint64), want: yes},
		{key: "max_call_depth", value: 1e300, want: yes},
		{key: "max_call_depth", value: -1e300, want: no},
		{key: "max_call_depth", value: obj{"lte": 1}, want: yes},
		{key: "max_call_depth", value: obj{"lte": 0}, want: no},
		{key: "max_call_depth", value: obj{"lte": 5, "gte": 1}, want: broken},
		{key: "max_call_depth", value: obj{"lt": 5}, want: broken},
		{key: "max_call_depth", value: obj{"lte": obj{"lte": 5}}, want: broken},
		{key: "max_call_depth", value: 5.5, want: broken},
		{key: "max_call_depth", value: "5", want: broken},
		{key: "max_call_depth", value: true, want: broken},
		{key: "max_call_depth", value: math.NaN(), want: broken},
		{key: "max_call_depth", value: math.Inf(1), want: broken},
		{key: "arguments", value: obj{"has_key": []any{"force", "mirror"}}, args: []string{"force", "ref"}, want: yes},
		{key: "arguments", value: obj{"has_key": []any{"force"}}, args: []string{"ref"}, want: no},
		{key: "arguments", value: obj{"has_key": []any{}}, args: []string{"ref"}, want: no},
		{key: "arguments", value: obj{"has_all_keys": []any{"a", "b"}}, args: []string{"a", "b", "c"}, want: yes},
		{key: "arguments", value: obj{"has_all_keys": []any{"a", "b"}}, args: []string{"a"}, want: no},
		{key: "arguments", value: obj{"has_all_keys": []any{}}, want: yes},
		{key: "arguments", value: obj{"has_none_of": []any{"a", "b"}}, args: []string{"c"}, want: yes},
		{key: "arguments", value: obj{"has_none_of": []any{"a", "b"}}, args: []string{"b"}, want: no},
		{key: "arguments", value: obj{"has_none_of": []any{}}, args: []string{"b"}, want: yes},
		{key: "arguments", value: map[string][]string{"has_key": {"a"}, "has_none_of": {"b"}}, args: []string{"a"}, want: yes},
		{key: "arguments", value: obj{"has_key": []any{"a"}, "has_none_of": []any{"b"}}, args: []string{"a", "b"}, want: no},
		{key: "arguments", value: obj{"has_value": []any{"a"}}, args: []string{"a"}, want: broken},
		{key: "arguments", value: obj{"has_key": "a"}, args: []string{"a"}, want: broken},
		{key: "arguments", value: []any{"a"}, args: []string{"a"}, want: broken},
		{key: "$or", value: []any{obj{"roles": []any{"admin"}}, obj{"yes": 1}}, want: yes},
		{key: "$or", value: []any{obj{"roles": []any{"admin"}}, obj{"no": 1}}, want: no},
		{key: "$or", value: []any{}, want: broken},
		{key: "$or", value: obj{"yes": 1}, want: broken},
		{key: "$or", value: []any{obj{"yes": 1}, "yes"}, want: broken},
		{key: "$or", value: []any{obj{"panics": 1}, obj{"no": 1}}, want: broken},
		{key: "$or", value: []any{obj{"unknown": 1}, obj{"yes": 1}}, want: broken},
		{key: "$not", value: obj{"no": 1}, want: yes},
		{key: "$not", value: obj{"yes": 1}, want: no},
		{key: "$not", value: obj{}, want: no},
		{key: "$not", value: []any{}, want: broken},
		{key: "$not", value: obj{"fails": 1}, want: broken},
		{key: "$not", value: obj{"panics": 1}, want: broken},
		{key: "$not", value: obj{"unknown": 1}, want: broken},
		{key: "$not", value: obj{"max_call_depth": 5.5}, want: broken},
		{key: "$not", value: obj{"$not": obj{"fails": 1}}, want: broken},
		{key: "$not", value: obj{"$or": []any{obj{"no": 1}, obj{"fails": 1}}}, want: broken},
		{key: "$not", value: obj{"fails": 1, "no": 1}, want: broken},
		{key: "yes", want: yes},
		{key: "no", want: no},
		{key: "fails", want: broken},
		{key: "panics", want: broken},
		{key: "unknown", want: broken},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s=%v", test.key, test.value), func(t *testing.T) {
			request := callOf("a", "t", test.identity, test.args...)
			granting, log := newACL(t, []apcore.ACLRule{when(allow("*", "*"), test.key, test.value)}, apcore.ACLDeny)
			if got := granting.CheckAccess(t.Context(), request); got.Allowed != (test.want == yes) {
				t.Errorf("an allow rule: %+v, but the condition is %s", got, test.want)
			}
			refusing, log2 := newACL(t, []apcore.ACLRule{when(deny("*", "*"), test.key, test.value)}, apcore.ACLAllow)
			if got := refusing.CheckAccess(t.Context(), request); got.Allowed != (test.want == no) {
				t.Errorf("a deny rule: %+v, but the condition is %s", got, test.want)
			}
			for _, entry := range append(log.entries, log2.entries...) {
				if (entry.HandlerError != nil) != (test.want == broken || test.noted) {
					t.Errorf("handler_error %v, but the condition is %s", entry.HandlerError, test.want)
				}
				if entry.HandlerError != nil && strings.Contains(*entry.HandlerError, "secret") {
					t.Errorf("handler_error tells the text of a panic: %s", *entry.HandlerError)
				}
			}
		})
	}
}

func decision(allowed, approval bool, rule int) apcore.AccessDecision {
	d := apcore.AccessDecision{Allowed: allowed, ApprovalRequired: approval, Reason: "default_effect"}
	if rule >= 0 {
		d.MatchedRule, d.Reason = &rule, "rule_match"
	}
	return d
}

func TestACLDecisions(t *testing.T) {
	force := obj{"has_key": []any{"force"}}
	scoped := []apcore.ACLRule{demanding(when(allow("*", "*"), "arguments", force)), allow("*", "*")}
	pending := demanding(when(allow("*", "*"), "fails", true))
	without := func(r apcore.AccessRequest) apcore.AccessRequest { r.ArgumentKeys = nil; return r }
	contextless := func(r apcore.AccessRequest) apcore.AccessRequest { r.Context = nil; return r }
	tests := map[string]struct {
		rules   []apcore.ACLRule
		effect  apcore.ACLEffect
		request apcore.AccessRequest
		want    apcore.AccessDecision
		broken  bool
	}{
		"scoped approval, argument there":        {rules: scoped, request: callOf("a", "t", nil, "force"), want: decision(true, true, 0)},
		"scoped approval, argument missing":      {rules: scoped, request: callOf("a", "t", nil, "ref"), want: decision(true, false, 1)},
		"scoped approval, arguments unknown":     {rules: scoped, request: without(callOf("a", "t", nil)), want: decision(true, true, 1), broken: true},
		"scoped approval, no context":            {rules: scoped, request: contextless(callOf("a", "t", nil, "force")), want: decision(true, false, 1)},
		"pending and default allow":              {rules: []apcore.ACLRule{pending}, effect: apcore.ACLAllow, request: callOf("a", "t", nil), want: decision(true, true, -1), broken: true},
		"pending and default deny":               {rules: []apcore.ACLRule{pending}, request: callOf("a", "t", nil), want: decision(false, false, -1), broken: true},
		"pending, then a denial":                 {rules: []apcore.ACLRule{pending, deny("*", "*")}, effect: apcore.ACLAllow, request: callOf("a", "t", nil), want: decision(false, false, 1), broken: true},
		"pending of a rule for others":           {rules: []apcore.ACLRule{demanding(when(allow("b", "*"), "fails", true)), allow("*", "*")}, request: callOf("a", "t", nil), want: decision(true, false, 1)},
		"unevaluable without approval":           {rules: []apcore.ACLRule{when(allow("*", "*"), "fails", true), allow("*", "*")}, request: callOf("a", "t", nil), want: decision(true, false, 1), broken: true},
		"unevaluable denial":                     {rules: []apcore.ACLRule{when(deny("*", "*"), "fails", true), allow("*", "*")}, request: callOf("a", "t", nil), want: decision(false, false, 0), broken: true},
		"conditional denial without context":     {rules: []apcore.ACLRule{when(deny("*", "*"), "yes", true), allow("*", "*")}, request: contextless(callOf("a", "t", nil)), want: decision(true, false, 1)},
		"unknown key in a denial, no context":    {rules: []apcore.ACLRule{when(deny("*", "*"), "unknown", true), allow("*", "*")}, request: contextless(callOf("a", "t", nil)), want: decision(false, false, 0), broken: true},
		"first match wins":                       {rules: []apcore.ACLRule{allow("a", "t"), deny("*", "*")}, request: callOf("a", "t", nil), want: decision(true, false, 0)},
		"first match wins, denial":               {rules: []apcore.ACLRule{deny("*", "*"), allow("a", "t")}, effect: apcore.ACLAllow, request: callOf("a", "t", nil), want: decision(false, false, 0)},
		"first match wins over the index's ways": {rules: []apcore.ACLRule{deny("b", "*"), allow("a", "t.*"), deny("a", "t.x"), deny("a", "*")}, request: callOf("a", "t.x", nil), want: decision(true, false, 1)},
		"approval of an unconditional rule":      {rules: []apcore.ACLRule{demanding(allow("*", "*"))}, request: callOf("a", "t", nil), want: decision(true, true, 0)},
		"no rules":                               {request: callOf("a", "t", nil), want: apcore.AccessDecision{Reason: "no_rules"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			acl, log := newACL(t, test.rules, test.effect)
			got := acl.CheckAccess(t.Context(), test.request)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("decision (-want +got):\n%s", diff)
			}
			if len(log.entries) != 1 || (log.entries[0].HandlerError != nil) != test.broken {
				t.Errorf("audit %+v, want one entry with handler_error: %t", log.entries, test.broken)
			}
		})
	}
}

func TestACLLegacyCheck(t *testing.T) {
	acl, _ := newACL(t, []apcore.ACLRule{demanding(allow("*", "gated")), allow("@external", "free")}, "")
	for target, want := range map[string]bool{"gated": false, "free": true, "other": false} {
		if got := acl.Check("", target, nil); got != want {
			t.Errorf("Check of %s is %t", target, got)
		}
	}
}

func TestACLWithExecutor(t *testing.T) {
	acl, log := newACL(t, []apcore.ACLRule{
		demanding(when(allow("@external", "repo.push"), "arguments", obj{"has_key": []any{"force"}})),
		allow("@external", "repo.*"),
	}, "")
	h := newHost(t, apcore.ExecutorOptions{AccessControl: acl, ApprovalHandler: apcore.AlwaysDeny{}}).module("repo.push", nil).module("admin.drop", nil)
	_, err := h.call("repo.push", obj{"ref": "x", apcore.ApprovalTokenKey: "t"}, nil)
	h.wants(err, "", 1)
	_, err = h.call("repo.push", obj{"force": nil}, nil)
	h.wants(err, apcore.CodeApprovalDenied, 1)
	_, err = h.call("admin.drop", nil, nil)
	h.wants(err, apcore.CodeACLDenied, 1)
	if len(log.entries) != 3 || *log.entries[2].CallDepth != 1 || log.entries[2].Decision != apcore.ACLDeny {
		t.Errorf("audit %+v", log.entries)
	}
}
