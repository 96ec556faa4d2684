package apcore_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

func TestErrorFormatters(t *testing.T) {
	var r apcore.ErrorFormatterRegistry
	short := apcore.ErrorFormatterFunc(func(err *apcore.Error, context map[string]any) map[string]any {
		err.Details["changed"], context["changed"] = true, true
		return obj{"title": string(err.Code), "status": context["status"]}
	})
	must(t, r.Register("http", short))
	must(t, r.Register("broken", apcore.ErrorFormatterFunc(func(*apcore.Error, map[string]any) map[string]any { panic("no") })))
	must(t, r.Register("silent", apcore.ErrorFormatterFunc(func(*apcore.Error, map[string]any) map[string]any { return nil })))
	for name, err := range map[string]error{
		"http": r.Register("http", short), "": r.Register("", short), "nil": r.Register("nil", nil),
		"typed nil": r.Register("nil", apcore.ErrorFormatterFunc(nil)),
	} {
		want := apcore.CodeInvalidInput
		if name == "http" {
			want = apcore.CodeErrorFormatterDuplicate
		}
		if apcore.CodeOf(err) != want {
			t.Errorf("register %q: %v, want %s", name, err, want)
		}
	}
	failure := apcore.NewError("BAD", "it is bad").WithDetail("n", 1)
	context := obj{"status": 418}
	wrapped := fmt.Errorf("outer: %w", failure)
	if diff := cmp.Diff(obj{"title": "BAD", "status": 418}, r.FormatError(wrapped, "http", context)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, adapter := range []string{"broken", "silent", "unknown"} {
		if diff := cmp.Diff(failure.Map(), r.FormatError(wrapped, adapter, context)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", adapter, diff)
		}
	}
	if len(failure.Details) != 1 || len(context) != 1 {
		t.Errorf("a formatter changed %v, %v", failure.Details, context)
	}
	foreign := r.FormatError(errors.New("dial pg://u:hunter2@db"), "unknown", nil)
	if message := text(foreign["message"]); foreign["code"] != "MODULE_EXECUTE_ERROR" || strings.Contains(message, "hunter2") || !strings.Contains(message, "*errors.errorString") {
		t.Errorf("a foreign error: %v", foreign)
	}
	if got := r.FormatError(nil, "http", nil); got != nil {
		t.Errorf("no error: %v", got)
	}
	if !r.Unregister("http") || r.Unregister("http") || r.Get("http") != nil || r.Get("broken") == nil {
		t.Error("unregister")
	}
}

// One registration of a name wins, and reading meanwhile is safe.
func TestErrorFormattersInParallel(t *testing.T) {
	var r apcore.ErrorFormatterRegistry
	var won atomic.Int32
	var group sync.WaitGroup
	for range 32 {
		group.Go(func() {
			if r.Register("a", apcore.ErrorFormatterFunc(func(e *apcore.Error, _ map[string]any) map[string]any { return e.Map() })) == nil {
				won.Add(1)
			}
			r.FormatError(apcore.NewError("X", "x"), "a", nil)
		})
	}
	group.Wait()
	if won.Load() != 1 {
		t.Errorf("%d registrations won", won.Load())
	}
	if first := apcore.ErrorFormatters(); first != apcore.ErrorFormatters() {
		t.Error("the registry of the process is not one")
	}
}

func TestErrorHints(t *testing.T) {
	plain := apcore.NewError(apcore.CodeSchemaValidation, "x")
	e := plain.WithAIGuidance("ask for a number").WithUserFixable(nil).WithRetryable(new(true)).WithSuggestion("give a number")
	wire := e.Map()
	if wire["ai_guidance"] != "ask for a number" || wire["suggestion"] != "give a number" || wire["retryable"] != true {
		t.Errorf("wire form %v", wire)
	}
	if _, there := wire["user_fixable"]; there || plain.UserFixable == nil || plain.AIGuidance != "" {
		t.Errorf("wire form %v, of %v", wire, plain.Map())
	}
}
