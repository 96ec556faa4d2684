package apcore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

const masked = "***REDACTED***"

// pathError is typed and has a coded cause.
type pathError struct{ err error }

func (e *pathError) Error() string { return "at path" }

func (e *pathError) Unwrap() error { return e.err }

// Scenario 81: what a module says with an error of its own is cleaned in every
// field, at any depth, of any type; what follows a call stays.
func TestSecretsInOwnErrors(t *testing.T) {
	const secret = "hunter-2-secret"
	inner := apcore.NewError("INNER", "inner %s", secret).WithDetail("why", secret)
	failure := apcore.NewError("OUTER", "bad %s", secret).
		WithDetail("text", "saw "+secret).WithDetail("list", []any{obj{"deep": secret}, 4711, 4712}).
		WithDetail("typed", []string{"a", secret}).WithDetail("bytes", []byte(secret)).WithDetail("error", errors.New(secret)).
		WithDetail("plain", []string{"a"}).WithDetail("pin", 4711).WithDetail("api_key", "of nobody").WithDetail("count", 4711).
		WithDetail("none_token", nil).WithDetail("func", func() {}).WithDetail("struct", struct {
		A string `json:"a"`
	}{secret}).
		WithSuggestion("do not send " + secret).WithAIGuidance("forget " + secret).
		WithCause(fmt.Errorf("one: %w", errors.Join(errors.New("two "+secret), &pathError{inner})))
	h := newHost(t, apcore.ExecutorOptions{})
	h.module("m", failing(failure))
	_, err := h.call("m", obj{"password": secret, "pin_secret": 4711}, nil)
	h.wants(err, "OUTER", 1)
	e := apcore.AsError(err)
	want := obj{
		"text": "saw " + masked, "list": []any{obj{"deep": masked}, masked, 4712}, "typed": []any{"a", masked}, "bytes": masked,
		"error": masked, "plain": []string{"a"}, "pin": masked, "api_key": masked, "count": 4711, "none_token": nil, "func": masked,
		"struct": obj{"a": masked}, "module_id": "m", "call_chain": []any{"m"},
	}
	if diff := cmp.Diff(want, e.Details); diff != "" {
		t.Errorf("details (-want +got):\n%s", diff)
	}
	got := []string{e.Message, e.Suggestion, e.AIGuidance, e.Cause.Error(), fmt.Sprintf("%#v", e.Cause)}
	if diff := cmp.Diff([]string{"bad " + masked, "do not send " + masked, "forget " + masked, "one: two " + masked + "\nat path", fmt.Sprintf("%q", e.Cause.Error())}, got); diff != "" {
		t.Errorf("texts (-want +got):\n%s", diff)
	}
	if errors.Unwrap(e.Cause) != nil {
		t.Errorf("the chain goes on to %v", errors.Unwrap(e.Cause))
	}
	var path *pathError
	if !errors.As(err, &path) || !errors.Is(err, failure.Cause) || !errors.Is(e.Cause, apcore.Code("INNER")) {
		t.Error("errors.Is and errors.As do not reach the cause")
	}
	var coded *apcore.Error
	if !errors.As(e.Cause, &coded) || coded.Message != "inner "+masked || coded.Details["why"] != masked {
		t.Errorf("the coded cause is %+v", coded)
	}
	if failure.Details["text"] != "saw "+secret || inner.Details["why"] != secret {
		t.Error("the module's own value was changed")
	}
	if _, err := json.Marshal(e); err != nil {
		t.Error(err)
	}
}

// A cause without secrets stays the very value it was.
func TestCleanCausesStay(t *testing.T) {
	cause := fmt.Errorf("a: %w", apcore.NewError("INNER", "harmless").WithDetail("list", []string{"b"}))
	h := newHost(t, apcore.ExecutorOptions{}).module("m", failing(apcore.NewError("OUTER", "bad").WithCause(cause)))
	_, err := h.call("m", obj{"password": "hunter-2"}, nil)
	h.wants(err, "OUTER", 1)
	if got := apcore.AsError(err).Cause; got != cause { //nolint:errorlint // the very value
		t.Errorf("cause is %#v", got)
	}
}

// A value that contains itself ends nowhere but in a replacement.
func TestEndlessDetails(t *testing.T) {
	loop := obj{}
	loop["loop"] = loop
	ring := []any{nil}
	ring[0] = ring
	h := newHost(t, apcore.ExecutorOptions{})
	h.module("m", failing(apcore.NewError("OUTER", "bad").WithDetail("loop", loop).WithDetail("ring", ring)))
	_, err := h.call("m", nil, nil)
	h.wants(err, "OUTER", 1)
	if _, err := json.Marshal(apcore.AsError(err)); err != nil {
		t.Error(err)
	}
}

// Module ids are no secrets: an error stays readable when a password is one.
func TestIDsAreNoSecrets(t *testing.T) {
	h := newHost(t, apcore.ExecutorOptions{ApprovalHandler: apcore.ApprovalCallback(
		func(context.Context, *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
			return &apcore.ApprovalResult{Status: apcore.ApprovalPending, ApprovalID: "id-of-billing", Reason: "billing", Metadata: obj{"a": "billing"}}, nil
		},
	)}).module("billing", nil, gated)
	_, err := h.call("billing", obj{"password": "billing"}, nil)
	h.wants(err, apcore.CodeApprovalPending, 0)
	var pending *apcore.ApprovalError
	if !errors.As(err, &pending) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(obj{"module_id": "billing", "call_chain": []any{"billing"}, "approval_id": "id-of-billing"}, pending.Err.Details); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if pending.Reason() != masked || pending.Result.Metadata["a"] != masked || pending.ApprovalID() != "id-of-billing" {
		t.Errorf("answer %+v", pending.Result)
	}
}

// Whatever the secret is and wherever it stands in a text, it is gone.
func TestAnySecretIsHidden(t *testing.T) {
	var failure error
	h := newHost(t, apcore.ExecutorOptions{})
	h.module("m", func(context.Context, obj, *apcore.Context) (obj, error) { return nil, failure })
	rapid.Check(t, func(rt *rapid.T) {
		secret := rapid.StringN(4, 40, -1).Filter(func(s string) bool {
			return utf8.ValidString(s) && !strings.Contains(masked, s) && !strings.Contains(s, "*")
		}).Draw(rt, "secret")
		around := rapid.StringMatching(`[ a-z="/:@%]{0,12}`)
		said := around.Draw(rt, "before") + secret + around.Draw(rt, "after")
		failure = apcore.NewError("BAD", "%s", said).WithDetail("said", []any{said}).WithCause(fmt.Errorf("deep: %w", &spillError{said}))
		_, err := h.call("m", obj{"password": secret}, nil)
		e := apcore.AsError(err)
		for _, text := range []string{e.Message, fmt.Sprint(e.Details["said"]), e.Cause.Error()} {
			if strings.Contains(strings.ReplaceAll(text, masked, "*"), secret) {
				rt.Fatalf("%q shows in %q", secret, text)
			}
		}
	})
}

// What a step says stays in its trace, without secrets; so does the error that
// ends a call with its words.
func TestSecretsInStepTraces(t *testing.T) {
	strategy, err := apcore.NewStrategy("standard")
	must(t, err)
	said := "saw hunter-2-secret"
	must(t, strategy.InsertAfter("input_validation", apcore.Step{Name: "talks", Run: func(context.Context, *apcore.Pipeline) (apcore.StepResult, error) {
		return apcore.StepResult{Action: apcore.StepAbort, Explanation: said, Alternatives: []string{said}}, nil
	}}))
	h := newHost(t, apcore.ExecutorOptions{Strategy: strategy}).module("m", nil)
	_, trace, err := h.CallWithTrace(t.Context(), "m", obj{"password": "hunter-2-secret"}, nil)
	h.wants(err, apcore.CodePipelineAbort, 0)
	last := trace.Steps[len(trace.Steps)-1]
	if last.Name != "talks" || last.Result.Explanation != "saw "+masked || last.Result.Alternatives[0] != "saw "+masked || !strings.Contains(err.Error(), "saw "+masked) {
		t.Errorf("step %+v, %v", last, err)
	}
}
