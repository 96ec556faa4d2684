package apcore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

func newHistory(t *testing.T, limit int) *apcore.ErrorHistory {
	t.Helper()
	history, err := apcore.NewErrorHistory(limit)
	if err != nil {
		t.Fatal(err)
	}
	return history
}

func TestErrorHistory(t *testing.T) {
	history := newHistory(t, 2)
	h := newHost(t, with(history)).module("ok", nil).module("other", failing(flaky()))
	h.module("m", func(_ context.Context, in obj, _ *apcore.Context) (obj, error) {
		return nil, apcore.NewError("BAD", "%v", in["password"]).WithDetail("n", in["n"]).WithDetail("nested", obj{"list": []any{in["password"]}}).
			WithCause(fmt.Errorf("refused %v", in["password"]))
	})
	for n := range 3 {
		_, err := h.call("m", obj{"n": n, "password": canary}, nil)
		h.wants(err, "BAD", n+1)
	}
	_, _ = h.call("ok", nil, nil)
	_, _ = h.call("other", nil, nil)
	if diff := cmp.Diff([]string{"m", "other"}, history.Modules()); diff != "" {
		t.Errorf("modules (-want +got):\n%s", diff)
	}
	got := history.Errors("m")
	for i, entry := range got {
		for _, key := range []string{"timestamp", "trace_id"} {
			if text(entry[key]) == "" {
				t.Errorf("%d: no %s", i, key)
			}
			delete(entry, key)
		}
	}
	const hidden = "***REDACTED***"
	want := []obj{}
	for n := 1; n <= 2; n++ {
		want = append(want, obj{"code": "BAD", "message": hidden, "cause": "refused " + hidden, "details": obj{
			"n": n, "nested": obj{"list": []any{hidden}}, "module_id": "m", "call_chain": []any{"m"},
		}})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	object(got[0]["details"])["n"] = "changed"
	if n := object(history.Errors("m")[0]["details"])["n"]; n != 1 {
		t.Errorf("a copy reaches into the history: %v", n)
	}
	history.Clear("m")
	if len(history.Errors("m")) != 0 || len(history.Errors("none")) != 0 || len(history.Errors("other")) != 1 {
		t.Errorf("after Clear: %v", history.Modules())
	}
}

func TestErrorHistoryIsBounded(t *testing.T) {
	for _, limit := range []int{-1, 10_001} {
		_, err := apcore.NewErrorHistory(limit)
		invalidOption(t, err, fmt.Sprint(limit), "1 to 10000")
	}
	history := newHistory(t, 0)
	h := newHost(t, with(history))
	var all sync.WaitGroup
	for n := range 1001 {
		h.module(fmt.Sprintf("m%d", n), failing(flaky()))
	}
	for range 60 {
		all.Go(func() { _, _ = h.call("m0", nil, nil) })
	}
	all.Wait()
	if got := len(history.Errors("m0")); got != 50 {
		t.Errorf("%d errors, want 50", got)
	}
	for n := range 1001 {
		_, _ = h.call(fmt.Sprintf("m%d", n), nil, nil)
	}
	if got := strings.Join(history.Modules(), " "); len(history.Modules()) != 1000 || strings.HasPrefix(got, "m0 ") {
		t.Errorf("%d modules, the first of them still there: %t", len(history.Modules()), strings.HasPrefix(got, "m0 "))
	}
}
