package apcore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// drawError makes any error that is within the rules: a code, a time in
// milliseconds, details of JSON values.
func drawError(t *rapid.T) *apcore.Error {
	flag := rapid.SampledFrom([]*bool{nil, new(true), new(false)})
	e := &apcore.Error{
		Code:        apcore.Code(rapid.StringMatching(`[A-Z][A-Z_]{0,20}`).Draw(t, "code")),
		Message:     rapid.String().Draw(t, "message"),
		TraceID:     rapid.String().Draw(t, "trace id"),
		AIGuidance:  rapid.String().Draw(t, "guidance"),
		Suggestion:  rapid.String().Draw(t, "suggestion"),
		Retryable:   flag.Draw(t, "retryable"),
		UserFixable: flag.Draw(t, "user fixable"),
		Timestamp:   time.UnixMilli(rapid.Int64Range(0, 4e12).Draw(t, "time")).UTC(),
	}
	if rapid.Bool().Draw(t, "has details") {
		e.Details = map[string]any{
			"text":  rapid.String().Draw(t, "detail"),
			"count": json.Number(fmt.Sprint(rapid.Int64().Draw(t, "number"))),
			"list":  []any{nil, rapid.Bool().Draw(t, "item"), map[string]any{"x": "y"}},
		}
	}
	if cause := rapid.String().Draw(t, "cause"); cause != "" {
		e.Cause = errors.New(cause)
	}
	return e
}

var sameErrors = cmp.Options{cmpopts.EquateEmpty(), cmp.Comparer(func(a, b error) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Error() == b.Error()
})}

// TestErrorRoundTrip is scenario 41: everything survives the boundary, unknown
// codes and unset flags included.
func TestErrorRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := drawError(t)
		got := apcore.ErrorFromMap(e.Map())
		if diff := cmp.Diff(*e, *got, sameErrors); diff != "" {
			t.Errorf("through Map (-want +got):\n%s", diff)
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		read := &apcore.Error{}
		if err := json.Unmarshal(text, read); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(*e, *read, sameErrors); diff != "" {
			t.Errorf("through %s (-want +got):\n%s", text, diff)
		}
	})
}

// TestEveryCodeCrosses is scenario 41 for each class of the standard.
func TestEveryCodeCrosses(t *testing.T) {
	h := newHost(t, apcore.ExecutorOptions{})
	var give apcore.Code
	h.module("m", func(context.Context, obj, *apcore.Context) (obj, error) {
		return nil, apcore.NewError(give, "failed: %w", apcore.NewError("INNER", "cause")).WithDetail("extra", "x").WithSuggestion("do")
	})
	for _, code := range append(apcore.FrameworkCodes(), "FUTURE_CODE") {
		give = code
		_, err := h.call("m", nil, nil)
		e := apcore.AsError(err)
		if e == nil || e.TraceID == "" {
			t.Fatalf("%s: %v", code, err)
		}
		got := apcore.ErrorFromMap(e.Map())
		want := *e
		want.Timestamp = e.Timestamp.Truncate(time.Millisecond)
		if diff := cmp.Diff(want, *got, sameErrors); diff != "" || !errors.Is(got, code) {
			t.Errorf("%s (-want +got):\n%s", code, diff)
		}
		if diff := cmp.Diff(code.DefaultRetryable(), got.Retryable); diff != "" {
			t.Errorf("%s retryable (-want +got):\n%s", code, diff)
		}
	}
}

func TestErrorFromMapIsLenient(t *testing.T) {
	nested := apcore.ErrorFromMap(obj{"code": "A", "cause": obj{"code": "B", "message": "inner"}, "retryable": "yes", "new_key": 1})
	if !errors.Is(nested, apcore.Code("B")) || nested.Retryable != nil {
		t.Errorf("%+v", nested)
	}
	for _, wire := range []obj{nil, {}, {"code": 7}, {"code": ""}} {
		if got := apcore.ErrorFromMap(wire); got.Code != apcore.CodeInternal {
			t.Errorf("%v gives %v", wire, got)
		}
	}
	if err := json.Unmarshal([]byte(`[]`), &apcore.Error{}); err == nil {
		t.Error("a list was read as an error")
	}
}

func TestCodeOf(t *testing.T) {
	denied := apcore.NewError(apcore.CodeACLDenied, "no")
	tests := []struct {
		name string
		err  error
		want apcore.Code
	}{
		{"nil", nil, ""},
		{"own", denied, apcore.CodeACLDenied},
		{"wrapped twice", fmt.Errorf("a: %w", fmt.Errorf("b: %w", denied)), apcore.CodeACLDenied},
		{"joined", errors.Join(io.EOF, denied), apcore.CodeACLDenied},
		{"approval", &apcore.ApprovalError{Err: apcore.NewError(apcore.CodeApprovalTimeout, "late")}, apcore.CodeApprovalTimeout},
		{"bare code", fmt.Errorf("x: %w", apcore.CodeModuleDisabled), apcore.CodeModuleDisabled},
		{"cancelled", fmt.Errorf("x: %w", context.Canceled), apcore.CodeExecutionCancelled},
		{"deadline", context.DeadlineExceeded, apcore.CodeModuleTimeout},
		{"foreign", io.EOF, apcore.CodeModuleExecuteError},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := apcore.CodeOf(test.err); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if found := apcore.AsError(test.err); found != nil && !errors.Is(test.err, test.want) {
				t.Errorf("errors.Is does not find %s in %v", test.want, test.err)
			}
		})
	}
}

// TestNonRetryableSurvives is the unit part of scenario 39.
func TestNonRetryableSurvives(t *testing.T) {
	denied := apcore.NewError(apcore.CodeACLDenied, "no")
	busy := apcore.NewError(apcore.CodeInternal, "busy") // retryable
	tests := map[string]error{
		"plain":                   denied,
		"wrapped twice":           fmt.Errorf("a: %w", fmt.Errorf("b: %w", denied)),
		"joined":                  errors.Join(io.EOF, denied),
		"retryable cause beneath": denied.WithCause(busy),
	}
	for name, failure := range tests {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, apcore.ExecutorOptions{}).module("outer", calls("m")).module("m", func(context.Context, obj, *apcore.Context) (obj, error) {
				return nil, failure
			})
			_, err := h.call("outer", nil, nil)
			h.wants(err, apcore.CodeACLDenied, 2)
			if e := apcore.AsError(err); e.Retryable == nil || *e.Retryable {
				t.Errorf("retryable in %+v", e)
			}
		})
	}
}

// TestPropagation is algorithm A11.
func TestPropagation(t *testing.T) {
	own := apcore.NewError("OWN", "own")
	tests := []struct {
		name    string
		failure error
		code    apcore.Code
		details obj
		is      error
	}{
		{"own error", own, "OWN", obj{}, nil},
		{"own details stay", own.WithDetail("module_id", "else").WithDetail("call_chain", []any{"x"}), "OWN", obj{"module_id": "else", "call_chain": []any{"x"}}, nil},
		{"foreign error", io.ErrUnexpectedEOF, apcore.CodeModuleExecuteError, obj{"reason": "unexpected EOF"}, io.ErrUnexpectedEOF},
		{"wrapped foreign error", fmt.Errorf("read: %w", io.EOF), apcore.CodeModuleExecuteError, obj{"reason": "read: EOF"}, io.EOF},
		{"bare code", apcore.Code("BARE"), "BARE", obj{}, nil},
		{"deadline", fmt.Errorf("dial: %w", context.DeadlineExceeded), apcore.CodeModuleTimeout, obj{"timeout_ms": int64(0)}, context.DeadlineExceeded},
		{"cancelled", context.Canceled, apcore.CodeExecutionCancelled, obj{}, context.Canceled},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHost(t, apcore.ExecutorOptions{}).module("outer", calls("inner")).module("inner", func(context.Context, obj, *apcore.Context) (obj, error) {
				return nil, test.failure
			})
			root := apcore.NewContext(apcore.ContextOptions{})
			_, err := h.call("outer", nil, root)
			h.wants(err, test.code, 2)
			want := obj{"module_id": "inner", "call_chain": []any{"outer", "inner"}}
			for key, value := range test.details {
				want[key] = value
			}
			e := apcore.AsError(err)
			if diff := cmp.Diff(want, e.Details); diff != "" {
				t.Errorf("details (-want +got):\n%s", diff)
			}
			if e.TraceID != root.TraceID() || test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("trace %q, want %q; is %v", e.TraceID, root.TraceID(), test.is)
			}
		})
	}
	if own.TraceID != "" || own.Details != nil {
		t.Errorf("the module's own error was changed: %+v", own)
	}
}

func TestErrorCopies(t *testing.T) {
	e := apcore.NewError(apcore.CodeInternal, "a %d: %w", 1, io.EOF)
	if e.Error() != "[GENERAL_INTERNAL_ERROR] a 1: EOF" || !errors.Is(e, io.EOF) || e.Retryable == nil || !*e.Retryable {
		t.Errorf("%+v", e)
	}
	changed := e.WithDetail("k", 1).WithRetryable(nil).WithSuggestion("s").WithCause(nil)
	if changed.Retryable != nil || changed.Suggestion != "s" || changed.Cause != nil || changed.Details["k"] != 1 {
		t.Errorf("%+v", changed)
	}
	if e.Details != nil || e.Retryable == nil || e.Suggestion != "" || e.Cause == nil {
		t.Errorf("the original changed: %+v", e)
	}
	if both := apcore.NewError("X", "%w and %w", io.EOF, io.ErrNoProgress); !errors.Is(both, io.EOF) || !errors.Is(both, io.ErrNoProgress) {
		t.Errorf("two causes: %+v", both)
	}
}
