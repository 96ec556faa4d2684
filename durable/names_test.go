package durable_test

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/durable"
)

var moduleIDs = rapid.StringMatching(`[a-z][a-z0-9_]{0,8}(\.[a-z][a-z0-9_]{0,8}){0,5}`)

// Target 1: names are one to one with ids and reversible.
func TestUnitNamesAreReversible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var namer durable.Namer
		operation := rapid.SampledFrom([]durable.Operation{durable.OperationCall, durable.OperationStream, durable.OperationPreview}).Draw(t, "operation")
		id := moduleIDs.Draw(t, "id")
		unit := namer.Unit(operation, id)
		if strings.Contains(unit, ".") {
			t.Fatalf("name %q of module %q contains a dot", unit, id)
		}
		gotOperation, gotID, ok := namer.ParseUnit(unit)
		if !ok || gotOperation != operation || gotID != id {
			t.Fatalf("ParseUnit(%q) = %q, %q, %t; want %q, %q", unit, gotOperation, gotID, ok, operation, id)
		}
	})
}

func TestUnitNamesAreInjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var namer durable.Namer
		a, b := moduleIDs.Draw(t, "a"), moduleIDs.Draw(t, "b")
		if equal := namer.Unit(durable.OperationCall, a) == namer.Unit(durable.OperationCall, b); equal != (a == b) {
			t.Fatalf("names of %q and %q: equal = %t", a, b, equal)
		}
	})
}

func TestParseUnitRefuses(t *testing.T) {
	for _, name := range []string{
		"", "apcore", "apcore/call", "apcore/call/", "apcore/call/payments.refund", "apcore/call/Payments",
		"apcore/other/payments/refund", "call/payments/refund", "apcore/catalog", "xapcore/call/a", "apcore/call//a", "apcore/call/a/",
	} {
		if operation, id, ok := (durable.Namer{}).ParseUnit(name); ok {
			t.Errorf("ParseUnit(%q) = %q, %q, true; want false", name, operation, id)
		}
	}
}

// A prefix keeps two installations in one namespace apart.
func TestPrefix(t *testing.T) {
	namer := durable.Namer{Prefix: "acme"}
	if got, want := namer.Unit(durable.OperationCall, "a.b"), "acme/call/a/b"; got != want {
		t.Errorf("Unit = %q, want %q", got, want)
	}
	if _, _, ok := namer.ParseUnit("apcore/call/a/b"); ok {
		t.Error("a name of another prefix was accepted")
	}
}

// An approval id is the same for one call and round, and different for others.
func TestApprovalID(t *testing.T) {
	form := regexp.MustCompile(`^apr-[0-9a-f]{20}$`)
	seen := map[string]string{}
	for _, call := range []string{"w/r/1", "w/r/2", "w/r2/1", "w2/r/1", "w/r/11"} {
		for round := range 3 {
			id := durable.ApprovalID(call, round)
			if !form.MatchString(id) || id != durable.ApprovalID(call, round) {
				t.Errorf("ApprovalID(%q, %d) = %q", call, round, id)
			}
			if other, dup := seen[id]; dup {
				t.Errorf("%q of round %d has the id of %q", call, round, other)
			}
			seen[id] = call
		}
	}
}
