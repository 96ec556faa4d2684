package apcore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

func TestNewACLFaults(t *testing.T) {
	rule := func(change func(*apcore.ACLRule)) apcore.ACLRule {
		r := allow("a", "b")
		change(&r)
		return r
	}
	everything := rule(func(r *apcore.ACLRule) { *r = apcore.ACLRule{Effect: "x", Approval: "x"} })
	cycle := map[string]any{}
	cycle["$not"] = cycle
	tests := map[string]struct {
		rule   apcore.ACLRule
		effect apcore.ACLEffect
		key    string
	}{
		"default effect first":   {rule: everything, effect: "Deny", key: "default_effect"},
		"then effect":            {rule: everything, key: "effect"},
		"no effect":              {rule: rule(func(r *apcore.ACLRule) { r.Effect = "" }), key: "effect"},
		"then approval":          {rule: rule(func(r *apcore.ACLRule) { r.Approval, r.Callers, r.Targets = "x", nil, nil }), key: "approval"},
		"approval of a denial":   {rule: demanding(deny("a", "b")), key: "approval"},
		"then callers":           {rule: rule(func(r *apcore.ACLRule) { r.Callers, r.Targets = nil, nil }), key: "callers"},
		"then targets":           {rule: rule(func(r *apcore.ACLRule) { r.Targets = []string{} }), key: "targets"},
		"empty pattern":          {rule: rule(func(r *apcore.ACLRule) { r.Callers = []string{"a", ""} }), key: "callers"},
		"$or alone":              {rule: allow("$or", "b"), key: "callers"},
		"$not alone":             {rule: allow("a", "$not"), key: "targets"},
		"$not with two":          {rule: allow("$not a b", "b"), key: "callers"},
		"operator in the middle": {rule: allow("a $not b", "b"), key: "callers"},
		"operator twice":         {rule: allow("$not $or b", "b"), key: "callers"},
		"no operator":            {rule: allow("$and a b", "b"), key: "callers"},
		"endless conditions":     {rule: when(allow("a", "b"), "$not", cycle), key: "conditions"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := apcore.NewACL([]apcore.ACLRule{allow("a", "b"), test.rule}, apcore.ACLOptions{DefaultEffect: test.effect})
			found := apcore.AsError(err)
			if found == nil || found.Code != apcore.CodeACLRule || found.Details["key"] != test.key {
				t.Fatalf("%v, want ACL_RULE_ERROR about %s", err, test.key)
			}
			if want := any(1); test.key != "default_effect" && found.Details["rule_index"] != want {
				t.Errorf("details %v", found.Details)
			}
			if test.effect != "" {
				return
			}
			acl, _ := newACL(t, nil, "")
			if err := acl.AddRule(test.rule); !errors.Is(err, apcore.CodeACLRule) || len(acl.Rules()) != 0 {
				t.Errorf("AddRule: %v, %d rules", err, len(acl.Rules()))
			}
		})
	}
}

func TestACLChanges(t *testing.T) {
	acl, _ := newACL(t, []apcore.ACLRule{deny("*", "t"), when(deny("*", "t"), "roles", []string{"x"})}, "")
	if err := acl.AddRule(allow("a", "t")); err != nil {
		t.Fatal(err)
	}
	if !acl.CheckAccess(t.Context(), callOf("a", "t", nil)).Allowed {
		t.Error("an added rule comes first")
	}
	all := []string{"*"}
	for _, test := range []struct {
		targets    string
		conditions obj
		want       bool
		left       int
	}{
		{targets: "other", left: 3},
		{targets: "t", conditions: obj{"roles": []any{"y"}}, left: 3},
		{targets: "t", conditions: obj{"roles": []any{"x"}}, want: true, left: 2},
		{targets: "t", conditions: obj{}, want: true, left: 1},
		{targets: "t", left: 1},
	} {
		if got := acl.RemoveRule(all, []string{test.targets}, test.conditions); got != test.want || len(acl.Rules()) != test.left {
			t.Errorf("remove %s %v: %t, %d left", test.targets, test.conditions, got, len(acl.Rules()))
		}
	}
	if got := acl.Rules(); got[0].Effect != apcore.ACLAllow {
		t.Errorf("left is %+v", got)
	}
}

// TestACLCopies: nothing that goes in or out shares memory with the rules.
func TestACLCopies(t *testing.T) {
	values := []any{"x"}
	given := when(allow("a", "b"), "roles", values)
	acl, _ := newACL(t, []apcore.ACLRule{given}, "")
	want := acl.Rules()
	spoil := func(rule apcore.ACLRule) {
		rule.Callers[0], rule.Targets[0] = "*", "*"
		for key, value := range rule.Conditions {
			value.([]any)[0] = "spoilt"
			delete(rule.Conditions, key)
		}
	}
	spoil(given)
	spoil(acl.Rules()[0])
	if diff := cmp.Diff(want, acl.Rules()); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}

// TestACLNumbers: the Go types of numbers make no difference.
func TestACLNumbers(t *testing.T) {
	type level int
	acl, _ := newACL(t, []apcore.ACLRule{when(allow("a", "b"), "x", []any{
		level(1), uint8(2), uint64(1 << 63), float32(0.5), json.Number("4"), json.Number("4.5"), json.Number("four"), nil, [1]bool{true},
	})}, "")
	want := []any{int64(1), int64(2), uint64(1 << 63), 0.5, int64(4), 4.5, "four", nil, []any{true}}
	if diff := cmp.Diff(want, acl.Rules()[0].Conditions["x"]); diff != "" {
		t.Errorf("value (-want +got):\n%s", diff)
	}
	if !acl.RemoveRule([]string{"a"}, []string{"b"}, obj{"x": want}) {
		t.Error("equal conditions are not found")
	}
}

func TestACLHandlersGetCopies(t *testing.T) {
	acl, _ := newACL(t, []apcore.ACLRule{when(allow("*", "*"), "greedy", obj{"list": []any{1}})}, "")
	err := acl.RegisterCondition("greedy", func(_ context.Context, value any, r apcore.AccessRequest) (bool, error) {
		list := value.(obj)["list"].([]any)
		ok := list[0] == int64(1) && r.ArgumentKeys[0] == "k" && r.CallerID == apcore.ExternalCaller
		list[0], r.ArgumentKeys[0] = "spoilt", "spoilt"
		return ok, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	request := callOf("", "t", nil, "k")
	for range 2 {
		if !acl.CheckAccess(t.Context(), request).Allowed {
			t.Fatal("a handler changed what the next one sees")
		}
	}
}

func TestRegisterConditionFaults(t *testing.T) {
	acl, _ := newACL(t, nil, "")
	for _, key := range []string{"", "$and", "$or", "roles", "arguments", "max_call_depth", "identity_types", "yes"} {
		if err := acl.RegisterCondition(key, testConditions["no"]); !errors.Is(err, apcore.CodeInvalidInput) {
			t.Errorf("%q: %v", key, err)
		}
		if _, err := apcore.NewACL(nil, apcore.ACLOptions{Conditions: map[string]apcore.ACLCondition{key: testConditions["no"]}}); key != "yes" && !errors.Is(err, apcore.CodeInvalidInput) {
			t.Errorf("%q in the options: %v", key, err)
		}
	}
	if err := acl.RegisterCondition("nil", nil); !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("nil handler: %v", err)
	}
}

func TestValidateRules(t *testing.T) {
	acl, log := newACL(t, []apcore.ACLRule{
		when(allow("*", "*"), "panics", 1),
		{Callers: []string{"*"}, Targets: []string{"*"}, Effect: apcore.ACLDeny, Conditions: obj{
			"$or":            []any{obj{"roles": "x", "yes": 1}, 5, obj{"$not": obj{"geo": 1}}},
			"$not":           nil,
			"arguments":      obj{"has_key": 5, "has_value": []any{}, "has_all_keys": []any{}},
			"max_call_depth": 5.5,
		}},
	}, "")
	type short struct{ Path, Key string }
	var got []short
	for _, f := range acl.ValidateRules() {
		key := "null"
		if f.Key != nil {
			key = *f.Key
		}
		got = append(got, short{f.Path, key})
		if f.RuleIndex != 1 || f.Effect != apcore.ACLDeny || f.SyncResolvable || f.AsyncResolvable || f.Message == "" {
			t.Errorf("finding %+v", f)
		}
	}
	want := []short{
		{"$not.$", "null"},
		{"$or[0].roles", "roles"}, {"$or[1].$", "null"}, {"$or[2].$not.geo", "geo"},
		{"arguments.has_key", "arguments"}, {"arguments.has_value", "arguments"},
		{"max_call_depth", "max_call_depth"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if len(log.entries) != 0 {
		t.Error("validation is no check")
	}
	if err := acl.RegisterCondition("geo", testConditions["yes"]); err != nil {
		t.Fatal(err)
	}
	if n := len(acl.ValidateRules()); n != len(want)-1 {
		t.Errorf("%d findings after the key is known", n)
	}
}

// TestACLReloadUnderLoad: the file says at all times that exactly one of a and b
// may be reached; a check that mixed two versions would see none or both.
func TestACLReloadUnderLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	versions := [2]string{}
	for i, open := range []string{"a", "b"} {
		versions[i] = fmt.Sprintf("rules:\n  - {callers: ['*'], targets: [%s], effect: allow, description: %[1]s}\n  - {callers: ['*'], targets: ['*'], effect: deny, description: %[1]s}\n", open)
	}
	writeFile(t, path, versions[0])
	var mu sync.Mutex
	wrong, checks := 0, 0
	acl, err := apcore.LoadACL(path, apcore.ACLOptions{Audit: func(_ context.Context, e apcore.AuditEntry) {
		mu.Lock()
		defer mu.Unlock()
		checks++
		// A description belongs to the version; its own target is allowed only.
		if (*e.MatchedRule == e.TargetID) != (e.Decision == apcore.ACLAllow) {
			wrong++
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var group sync.WaitGroup
	for _, target := range []string{"a", "b", "a", "b"} {
		group.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
					acl.Check("", target, nil)
					acl.Rules()
				}
			}
		})
	}
	group.Go(func() {
		for i := range 100 {
			if err := errors.Join(acl.AddRule(deny("nobody", "nothing")), acl.RegisterCondition(fmt.Sprint("c", i), testConditions["no"])); err != nil {
				t.Error(err)
			}
			acl.RemoveRule([]string{"nobody"}, []string{"nothing"}, nil)
			acl.ValidateRules()
		}
	})
	for i := range 100 {
		writeFile(t, path, versions[i%2])
		if err := acl.Reload(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	group.Wait()
	if wrong > 0 || checks == 0 {
		t.Errorf("%d of %d checks saw rules of two versions", wrong, checks)
	}
}

func BenchmarkACLCheck(b *testing.B) {
	for _, n := range []int{10, 10_000} {
		b.Run(fmt.Sprint(n, " rules"), func(b *testing.B) {
			rules := make([]apcore.ACLRule, n)
			for i := range rules {
				rules[i] = allow("*", fmt.Sprintf("team%d.*", i))
			}
			acl, err := apcore.NewACL(rules, apcore.ACLOptions{})
			if err != nil {
				b.Fatal(err)
			}
			request := apcore.AccessRequest{CallerID: "a", TargetID: "team9.x"}
			for b.Loop() {
				if !acl.CheckAccess(b.Context(), request).Allowed {
					b.Fatal("denied")
				}
			}
		})
	}
}
