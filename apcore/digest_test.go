package apcore_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// digestChild makes this test program print one digest, see
// TestDigestAcrossProcesses.
const digestChild = "APCORE_TEST_DIGEST_CHILD"

// tenKeys makes an object of ten keys, inserted in a random order, so that maps
// of equal content are laid out differently.
func tenKeys() obj {
	all := obj{
		"amount": json.Number("9007199254740993"), "currency": "EUR", "to": obj{"iban": "DE00", "bic": "X", "name": "Ünal & Söhne <x>"},
		"lines": []any{obj{"n": 1, "text": "a"}, obj{"text": "b", "n": 2.5}}, "note": nil, "urgent": true, "tags": []any{}, "meta": obj{},
		"ratio": json.Number("1.0"), "\u2028": "line",
	}
	keys := make([]string, 0, len(all))
	for key := range all {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	made := obj{}
	for _, i := range rand.Perm(len(keys)) {
		made[keys[i]] = all[keys[i]]
	}
	return made
}

// Scenario 62: one object has one digest, however often it is taken and however
// its maps are laid out; another object has another.
func TestDigestIsStable(t *testing.T) {
	want, err := apcore.ContentHash(tenKeys())
	must(t, err)
	for range 1000 {
		if got, err := apcore.ContentHash(tenKeys()); err != nil || got != want {
			t.Fatalf("%s, %v; want %s", got, err, want)
		}
	}
	for key := range tenKeys() {
		changed := tenKeys()
		changed[key] = "changed"
		if got, err := apcore.ContentHash(changed); err != nil || got == want {
			t.Errorf("another value of %q: %s, %v", key, got, err)
		}
		delete(changed, key)
		if got, err := apcore.ContentHash(changed); err != nil || got == want {
			t.Errorf("without %q: %s, %v", key, got, err)
		}
	}
}

// Scenario 62: another process, with another seed for its maps, finds the same.
func TestDigestAcrossProcesses(t *testing.T) {
	want, err := apcore.ContentHash(tenKeys())
	must(t, err)
	if os.Getenv(digestChild) != "" {
		fmt.Println("digest", want)
		return
	}
	program, err := os.Executable()
	must(t, err)
	for range 3 {
		child := exec.CommandContext(t.Context(), program, "-test.run=^TestDigestAcrossProcesses$")
		child.Env = append(os.Environ(), digestChild+"=1")
		out, err := child.Output()
		must(t, err)
		if !strings.Contains(string(out), "digest "+want+"\n") {
			t.Errorf("another process says %s; want %s", out, want)
		}
	}
}

// Scenario 62: whatever lists modules lists them sorted, in whatever order they
// came.
func TestListingsAreSorted(t *testing.T) {
	const modules = 50
	want := []string{}
	for i := range modules {
		want = append(want, fmt.Sprintf("m.n%02d", i))
	}
	for range 20 {
		r := quiet()
		for _, i := range rand.Perm(modules) {
			must(t, r.Register(want[i], &testModule{}, apcore.RegisterOptions{}))
		}
		var all []string
		for id := range r.All(apcore.ListOptions{}) {
			all = append(all, id)
		}
		if got := r.List(apcore.ListOptions{}); !slices.Equal(got, want) || !slices.Equal(r.IDs(), want) || !slices.Equal(all, want) {
			t.Fatalf("listed %v", got)
		}
		candidates := make([]apcore.Candidate, modules)
		for at, i := range rand.Perm(modules) {
			candidates[at] = apcore.Candidate{ModuleID: want[i]}
		}
		if got, err := apcore.LoadOrder(candidates); err != nil || !slices.Equal(got, want) {
			t.Fatalf("load order %v, %v", got, err)
		}
	}
}
