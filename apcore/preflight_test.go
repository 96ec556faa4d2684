package apcore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

func outline(result *apcore.PreflightResult) []string {
	var lines []string
	for _, check := range result.Checks {
		code := ""
		if check.Error != nil {
			code = " " + string(check.Error.Code)
		}
		lines = append(lines, fmt.Sprintf("%s %t%s", check.Check, check.Passed, code))
	}
	return lines
}

// Every check is made and reported, nothing is disclosed to a caller whom the
// rules deny, and nobody is asked (apcore §12.8; scenario 60).
func TestValidateCall(t *testing.T) {
	advice := chunked{warn: []string{"slow"}, changes: []apcore.Change{{Action: "update", Target: "x", Summary: "changes x", Extra: map[string]any{"x-cost": 1, "bad": 2}}}}
	gated := advice
	gated.annots = apcore.Annotations{RequiresApproval: true}
	broken := chunked{fail: errors.New("no advice")}
	base := []string{"module_id true", "context true", "call_chain true", "module_lookup true", "acl true", "approval true"}
	all := func(more ...string) []string { return append(append([]string{}, base...), more...) }
	for name, test := range map[string]struct {
		module   chunked
		id       string
		inputs   map[string]any
		opts     apcore.ExecutorOptions
		want     []string
		approval bool
		changes  int
	}{
		"fine":          {module: advice, inputs: q, want: all("schema true", "module_preflight true", "module_preview true"), changes: 1},
		"bad inputs":    {module: advice, want: all("schema false SCHEMA_VALIDATION_ERROR", "module_preflight true", "module_preview true"), changes: 1},
		"gated":         {module: gated, inputs: q, want: all("schema true", "module_preflight true", "module_preview true"), approval: true, changes: 1},
		"token":         {module: gated, inputs: map[string]any{"q": 1, "_approval_token": 7}, want: all("schema true", "module_preflight true", "module_preview true"), approval: true, changes: 1},
		"broken advice": {module: broken, inputs: q, want: all("schema true", "module_preflight true", "module_preview true")},
		"no module":     {module: advice, id: "no.such", want: []string{"module_id true", "context true", "call_chain true", "module_lookup false MODULE_NOT_FOUND", "acl true"}},
		"bad id":        {module: advice, id: "No", want: []string{"module_id false INVALID_MODULE_ID"}},
		"denied": {module: advice, opts: apcore.ExecutorOptions{AccessControl: forbids{}}, want: []string{
			"module_id true", "context true", "call_chain true", "module_lookup true", "acl false ACL_DENIED", "approval true", "schema false SCHEMA_VALIDATION_ERROR",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			test.module.asked = &asked
			handler := &recordingHandler{}
			test.opts.ApprovalHandler = handler
			executor, events := streaming(t, test.module, test.opts)
			id := test.id
			if id == "" {
				id = "test.stream"
			}
			before := fmt.Sprint(test.inputs)
			result := executor.Validate(t.Context(), id, test.inputs, nil)
			if diff := cmp.Diff(test.want, outline(result)); diff != "" {
				t.Errorf("checks (-want +got):\n%s", diff)
			}
			failed := 0
			for _, check := range result.Checks {
				if !check.Passed {
					failed++
				}
			}
			if result.Valid != (failed == 0) || len(result.Errors) != failed || result.RequiresApproval != test.approval || len(result.PredictedChanges) != test.changes {
				t.Errorf("result %+v", result)
			}
			if len(handler.requests) > 0 || len(*events) > 0 || fmt.Sprint(test.inputs) != before {
				t.Errorf("%d requests, events %v, inputs %v", len(handler.requests), *events, test.inputs)
			}
			if name == "denied" && asked > 0 {
				t.Error("the module was asked on behalf of a caller that may not call it")
			}
		})
	}
}

func TestValidateOnAnotherExecutor(t *testing.T) {
	executor, _ := streaming(t, chunked{}, apcore.ExecutorOptions{})
	c := apcore.NewContext(apcore.ContextOptions{})
	_, _ = echoExecutor().Call(t.Context(), "test.echo", nil, c)
	result := executor.Validate(t.Context(), "test.stream", q, c)
	want := []string{
		"executor_binding false CONTEXT_BINDING_ERROR", "module_id true", "context true", "call_chain true", "module_lookup true",
		"acl true", "approval true", "schema true", "module_preflight true",
	}
	if diff := cmp.Diff(want, outline(result)); diff != "" || result.Valid || len(result.Errors) != 1 {
		t.Errorf("errors %v, checks (-want +got):\n%s", result.Errors, diff)
	}
}

func TestPreflightWire(t *testing.T) {
	executor, _ := streaming(t, chunked{warn: []string{"slow"}, changes: []apcore.Change{{Action: "a", Target: "t", Summary: "s", Extra: map[string]any{"x-cost": 1, "bad": 2}}}}, apcore.ExecutorOptions{})
	got := wire(executor.Validate(t.Context(), "test.stream", q, nil))
	if diff := cmp.Diff([]any{map[string]any{"action": "a", "target": "t", "summary": "s", "x-cost": 1.0}}, got["predicted_changes"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if errs, ok := got["errors"].([]any); !ok || len(errs) != 0 || got["valid"] != true {
		t.Errorf("result %v", got)
	}
}

// forbids lets nobody pass.
type forbids struct{}

func (forbids) CheckAccess(context.Context, apcore.AccessRequest) apcore.AccessDecision {
	return apcore.AccessDecision{}
}
