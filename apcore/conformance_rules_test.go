package apcore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// recordingHandler answers with a fixed result and keeps the requests.
type recordingHandler struct {
	result   apcore.ApprovalResult
	requests []*apcore.ApprovalRequest
}

func (h *recordingHandler) RequestApproval(_ context.Context, request *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
	h.requests = append(h.requests, request)
	return &h.result, nil
}

func (h *recordingHandler) CheckApproval(context.Context, string) (*apcore.ApprovalResult, error) {
	return nil, errors.New("not asked in these cases")
}

func driveApprovalGate(_ *fixture, test map[string]any) error {
	c := &check{}
	want, ran := object(test["expected"]), false
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	needs, _ := test["module_requires_approval"].(bool)
	err := apcore.Register(registry, "gated.module", func(context.Context, map[string]any) (map[string]any, error) {
		ran = true
		return map[string]any{}, nil
	}, apcore.Spec{Description: "Is gated", Annotations: apcore.Annotations{RequiresApproval: needs}})
	c.that(err == nil, "register: %v", err)
	handler := &recordingHandler{}
	if given, ok := test["approval_result"].(map[string]any); ok {
		data, _ := json.Marshal(given)
		c.that(json.Unmarshal(data, &handler.result) == nil, "result %s", data)
	}
	opts := apcore.ExecutorOptions{Logger: slog.New(slog.DiscardHandler)}
	if test["approval_handler_configured"] == true {
		opts.ApprovalHandler = handler
	}
	executor, err := apcore.NewExecutor(registry, opts)
	c.that(err == nil, "executor: %v", err)
	_, err = executor.Call(context.Background(), "gated.module", nil, nil)
	c.that((len(handler.requests) > 0) == want["gate_invoked"], "gate invoked %d times", len(handler.requests))
	c.that(ran == (want["outcome"] == "proceed"), "module ran = %t", ran)
	c.that(string(apcore.CodeOf(err)) == text(want["error_code"]), "error %v", err)
	if id, ok := want["approval_id"]; ok {
		got, _ := apcore.PendingApproval(err)
		details := object(wire(apcore.AsError(err))["details"])
		c.that(got == id && details["approval_id"] == id, "approval id %q, details %v", got, details)
	}
	return c.err()
}

func driveApprovalRequest(_ *fixture, test map[string]any) error {
	c := &check{}
	target, caller := text(test["target_id"]), text(test["caller_id"])
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	handler := &recordingHandler{result: apcore.ApprovalResult{Status: apcore.ApprovalApproved}}
	err := errors.Join(
		apcore.Register(registry, target, func(context.Context, map[string]any) (map[string]any, error) { return map[string]any{}, nil },
			apcore.Spec{Description: "Target", Annotations: apcore.Annotations{RequiresApproval: true}}),
		apcore.Register(registry, "module.caller", func(ctx context.Context, _ map[string]any) (map[string]any, error) {
			return apcore.Call[map[string]any](ctx, target, map[string]any{})
		}, apcore.Spec{Description: "Caller"}))
	c.that(err == nil, "register: %v", err)
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{ApprovalHandler: handler, Logger: slog.New(slog.DiscardHandler)})
	c.that(err == nil, "executor: %v", err)
	first := target
	if caller != "" {
		first = caller
	}
	_, err = executor.Call(context.Background(), first, nil, nil)
	c.that(err == nil && len(handler.requests) == 1, "call: %v, %d requests", err, len(handler.requests))
	if len(handler.requests) == 1 {
		got := handler.requests[0]
		c.that(got.CallerID == text(test["expected_request_caller_id"]), "caller %q", got.CallerID)
		c.that(got.Action == text(test["expected_request_action"]), "action %q", got.Action)
	}
	return c.err()
}

func driveAnnotations(_ *fixture, test map[string]any) error {
	given := object(test["input"])
	if given == nil {
		given = object(test["input_serialized"])
	}
	annotations, err := apcore.AnnotationsFromMap(given)
	if err != nil {
		return err
	}
	got := wire(annotations)
	if want := object(test["expected_deserialized_extra"]); want != nil {
		if diff := cmp.Diff(want, object(got["extra"])); diff != "" {
			return fmt.Errorf("extra (-want +got):\n%s", diff)
		}
	}
	for _, key := range texts(test["forbidden_root_keys"]) {
		if _, there := got[key]; there {
			return fmt.Errorf("root key %q is written", key)
		}
	}
	want := object(test["expected_serialized"])
	if want == nil {
		want = object(test["expected_reserialized"])
	}
	if want == nil {
		return nil
	}
	if got["discoverable"] != true {
		return fmt.Errorf("discoverable is %v", got["discoverable"])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		rest := map[string]any{}
		for key, value := range got {
			if key != "discoverable" {
				rest[key] = value
			}
		}
		if unexpected := cmp.Diff(want, rest); unexpected != "" {
			panic("beyond the stale field: " + unexpected) // no baseline entry may hide this
		}
		return fmt.Errorf("serialised (-want +got):\n%s", diff)
	}
	return nil
}

func driveErrorCodes(f *fixture, test map[string]any) error {
	var registry apcore.ErrorCodeRegistry
	steps := list(test["steps"])
	if steps == nil {
		steps = []any{test}
	}
	var last error
	for _, s := range steps {
		step := object(s)
		if text(step["action"]) == "unregister" {
			registry.Unregister(text(step["module_id"]))
			continue
		}
		last = registry.Register(text(step["module_id"]), apcore.Code(text(step["error_code"])))
	}
	if got, want := string(apcore.CodeOf(last)), text(test["expected_error"]); got != want {
		return fmt.Errorf("code %q, want %q", got, want)
	}
	for _, prefix := range texts(f.whole["framework_prefixes"]) {
		if err := registry.Register("mod_x", apcore.Code(prefix+"OF_MINE")); apcore.CodeOf(err) != apcore.CodeErrorCodeCollision {
			return fmt.Errorf("prefix %s is free: %w", prefix, err)
		}
	}
	return nil
}

func driveErrorDetails(f *fixture, test map[string]any) error {
	c := &check{}
	contract := object(f.whole["module_contract"])
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	module, err := apcore.NewRawFunc(func(context.Context, map[string]any) (map[string]any, error) {
		return map[string]any{"ok": true}, nil
	}, apcore.Spec{Description: "Orders", InputSchema: object(contract["input_schema"]), OutputSchema: object(contract["output_schema"])})
	c.that(err == nil, "module: %v", err)
	id := text(contract["module_id"])
	c.that(registry.Register(id, module, apcore.RegisterOptions{}) == nil, "register")
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{Logger: slog.New(slog.DiscardHandler)})
	c.that(err == nil, "executor: %v", err)
	input, want := object(test["input"]), object(test["expected"])
	if other, ok := input["call_module_id"].(string); ok {
		id = other
	}
	_, err = executor.Call(context.Background(), id, object(input["inputs"]), nil)
	got := wire(apcore.AsError(err))
	details := object(got["details"])
	c.that(got["code"] == want["error_code"], "code %v", got["code"])
	items := list(details["errors"])
	for _, item := range items {
		o := object(item)
		c.that(len(o) == 3 && text(o["message"]) != "" && text(o["keyword"]) != "", "item %v", o)
	}
	if count, ok := want["error_count"].(float64); ok {
		c.that(len(items) == int(count), "%d items, want %v", len(items), count)
	}
	for _, w := range list(want["errors"]) {
		c.that(containsItem(items, object(w)), "no item %v in %v", w, items)
	}
	for _, key := range texts(want["detail_keys_present"]) {
		_, there := details[key]
		c.that(there, "details lack %q", key)
	}
	for _, key := range texts(want["detail_keys_absent"]) {
		_, there := details[key]
		c.that(!there, "details hold %q", key)
	}
	return c.err()
}

func containsItem(items []any, want map[string]any) bool {
	for _, item := range items {
		if o := object(item); o["path"] == want["path"] && o["keyword"] == want["keyword"] {
			return true
		}
	}
	return false
}

func driveErrorMetadata(_ *fixture, test map[string]any) error {
	c := &check{}
	got := wire(apcore.NewError(apcore.Code(text(test["code"])), "text"))
	for key, want := range object(test["expected"]) {
		c.that(got[key] == want, "%s is %v, want %v", key, got[key], want)
	}
	return c.err()
}

func driveErrorSerialization(_ *fixture, test map[string]any) error {
	c := &check{}
	input := object(test["input"])
	built := apcore.NewError(apcore.Code(text(input["code"])), "%s", text(input["message"]))
	built.TraceID, built.AIGuidance, built.Details = text(input["trace_id"]), text(input["ai_guidance"]), object(input["details"])
	for key, field := range map[string]**bool{"retryable": &built.Retryable, "user_fixable": &built.UserFixable} {
		if given, ok := input[key].(bool); ok {
			*field = &given
		}
	}
	got := wire(built)
	for prefix, from := range map[string]map[string]any{"": got, "detail_": object(got["details"])} {
		for _, key := range texts(test["expected_"+prefix+"keys_present"]) {
			_, there := from[key]
			c.that(there, "%q is missing", key)
		}
		for _, key := range texts(test["expected_"+prefix+"keys_absent"]) {
			_, there := from[key]
			c.that(!there, "%q is there", key)
		}
	}
	return c.err()
}

func driveNormalizeID(_ *fixture, test map[string]any) error {
	if got := apcore.NormalizeID(text(test["local_id"]), text(test["language"])); got != test["expected"] {
		return fmt.Errorf("%q, want %q", got, test["expected"])
	}
	return nil
}

func driveCanonicalName(_ *fixture, test map[string]any) error {
	got := wire(apcore.CanonicalizeName(text(object(test["input"])["name"])))
	if diff := cmp.Diff(object(test["expected"]), got); diff != "" {
		return fmt.Errorf("(-want +got):\n%s", diff)
	}
	return nil
}
