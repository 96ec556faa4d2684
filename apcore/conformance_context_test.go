package apcore_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

var hex32 = regexp.MustCompile(`^[0-9a-f]{32}$`)

// driveContextCreate has one function per case: the fixture describes what to do
// in words.
func driveContextCreate(_ *fixture, test map[string]any) error {
	run, ok := contextCases[text(test["id"])]
	if !ok {
		return fmt.Errorf("no driver for this case")
	}
	c := &check{}
	run(c, object(test["input"]))
	return c.err()
}

var contextCases = map[string]func(*check, map[string]any){
	"create_minimal_all_defaults": func(c *check, _ map[string]any) {
		fresh := apcore.NewContext(apcore.ContextOptions{})
		_, limited := fresh.GlobalDeadline()
		c.that(hex32.MatchString(fresh.TraceID()), "trace id %q", fresh.TraceID())
		c.that(fresh.Identity() == nil && fresh.Executor() == nil && fresh.CancelToken() == nil && fresh.Services() == nil && !limited, "something is set")
		c.that(fresh.CallerID() == "" && len(fresh.CallChain()) == 0 && fresh.Data().Len() == 0, "chain or data is not empty")
	},
	"create_with_identity_only": func(c *check, in map[string]any) {
		made := apcore.NewContext(apcore.ContextOptions{Identity: apcore.IdentityFromMap(object(in["identity"]))})
		c.that(made.Identity().ID() == "user-42" && hex32.MatchString(made.TraceID()), "identity %v", made.Identity())
	},
	"create_with_cancel_token": func(c *check, _ map[string]any) {
		token := apcore.NewCancelToken()
		made := apcore.NewContext(apcore.ContextOptions{CancelToken: token})
		c.that(made.CancelToken() == token && made.Executor() == nil, "token is another one")
	},
	"create_with_global_deadline": func(c *check, in map[string]any) {
		seconds, _ := in["global_deadline"].(float64)
		deadline := time.UnixMilli(int64(seconds * 1000))
		got, ok := apcore.NewContext(apcore.ContextOptions{GlobalDeadline: deadline}).GlobalDeadline()
		c.that(ok && got.Equal(deadline), "deadline %v", got)
	},
	"create_rejects_executor_input":  func(c *check, _ map[string]any) { noField(c, "Executor") },
	"create_rejects_caller_id_input": func(c *check, _ map[string]any) { noField(c, "CallerID") },
	"executor_binds_on_first_call_local": func(c *check, _ map[string]any) {
		executor, made := echoExecutor(), apcore.NewContext(apcore.ContextOptions{})
		_, err := executor.Call(context.Background(), "test.echo", nil, made)
		c.that(err == nil && made.Executor() == executor, "after the call: %v, %v", err, made.Executor())
	},
	"executor_binds_idempotent_same_instance": func(c *check, _ map[string]any) {
		executor, made := echoExecutor(), apcore.NewContext(apcore.ContextOptions{})
		for range 3 {
			_, err := executor.Call(context.Background(), "test.echo", nil, made)
			c.that(err == nil && made.Executor() == executor, "call: %v", err)
		}
	},
	"executor_rejects_cross_executor_rebind": func(c *check, _ map[string]any) {
		a, b, made := echoExecutor(), echoExecutor(), apcore.NewContext(apcore.ContextOptions{})
		_, err := a.Call(context.Background(), "test.echo", nil, made)
		c.that(err == nil, "first executor: %v", err)
		_, err = b.Call(context.Background(), "test.echo", nil, made)
		c.that(apcore.CodeOf(err) == apcore.CodeContextBinding, "second executor: %v", err)
	},
	"child_propagates_executor": func(c *check, _ map[string]any) {
		executor, made := echoExecutor(), apcore.NewContext(apcore.ContextOptions{})
		_, _ = executor.Call(context.Background(), "test.echo", nil, made)
		child := made.Child("test.parent").Child("test.target")
		c.that(child.Executor() == executor, "executor %v", child.Executor())
		c.that(child.CallerID() == "test.parent" && cmp.Equal(child.CallChain(), []string{"test.parent", "test.target"}), "child %q %v", child.CallerID(), child.CallChain())
	},
	"child_propagates_cancel_token": func(c *check, _ map[string]any) {
		token := apcore.NewCancelToken()
		child := apcore.NewContext(apcore.ContextOptions{CancelToken: token}).Child("test.target")
		token.Cancel()
		c.that(child.CancelToken() != nil && child.CancelToken().Cancelled(), "the child does not see the cancellation")
	},
	"deserialize_then_call_binds_local_executor": func(c *check, in map[string]any) {
		executor := echoExecutor()
		made := apcore.DeserializeContext(object(in["serialized_context"]))
		_, limited := made.GlobalDeadline()
		c.that(made.Executor() == nil && made.CancelToken() == nil && made.Services() == nil && !limited, "something crossed the boundary")
		c.that(made.CallerID() == "remote.caller", "caller %q", made.CallerID())
		_, err := executor.Call(context.Background(), "local.target", nil, made)
		c.that(err == nil && made.Executor() == executor, "after the call: %v", err)
	},
	"distributed_cancel_token_synthesized_locally": func(c *check, _ map[string]any) {
		made := apcore.DeserializeContext(map[string]any{"call_chain": []any{"remote.a"}})
		seen := calleeOf(c, made)
		c.that(made.CancelToken() == nil && seen.CancelToken() != nil, "no token of its own")
	},
	"distributed_global_deadline_recomputed_locally": func(c *check, _ map[string]any) {
		made := apcore.DeserializeContext(map[string]any{"call_chain": []any{"remote.a"}})
		begin := time.Now()
		deadline, ok := calleeOf(c, made).GlobalDeadline()
		rest := deadline.Sub(begin)
		c.that(ok && rest > 50*time.Second && rest < 90*time.Second, "deadline in %v", rest)
	},
	"tracestate_carried_inside_traceparent": func(c *check, in map[string]any) {
		given := object(in["trace_parent"])
		parent := &apcore.TraceParent{TraceID: text(given["trace_id"]), ParentID: text(given["parent_id"]), Flags: text(given["trace_flags"])}
		for _, pair := range list(given["tracestate"]) {
			parent.State = append(parent.State, [2]string{text(list(pair)[0]), text(list(pair)[1])})
		}
		made := apcore.NewContext(apcore.ContextOptions{TraceParent: parent})
		headers, err := apcore.InjectTraceParent(made, "00f067aa0ba902b7")
		c.that(err == nil && made.TraceID() == parent.TraceID, "trace id %q, %v", made.TraceID(), err)
		c.that(headers["tracestate"] == "vendor1=value1,vendor2=value2", "tracestate %q", headers["tracestate"])
		c.that(headers["traceparent"] == "00-"+parent.TraceID+"-00f067aa0ba902b7-01", "traceparent %q", headers["traceparent"])
		noField(c, "TraceState")
	},
}

// noField proves that a context cannot be created with such an input.
func noField(c *check, name string) {
	_, exists := reflect.TypeFor[apcore.ContextOptions]().FieldByName(name)
	c.that(!exists, "ContextOptions has a field %s", name)
}

func echoExecutor() *apcore.Executor {
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	for _, id := range []string{"test.echo", "local.target"} {
		if err := apcore.Register(registry, id, func(_ context.Context, in map[string]any) (map[string]any, error) { return in, nil }, apcore.Spec{Description: "Echoes"}); err != nil {
			panic(err)
		}
	}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	return executor
}

// calleeOf runs a call and returns the context its module saw.
func calleeOf(c *check, caller *apcore.Context) *apcore.Context {
	outcome, err := echoExecutor().Do(context.Background(), apcore.Request{ModuleID: "test.echo", Context: caller})
	c.that(err == nil, "call: %v", err)
	return outcome.Context
}

func driveContextSerialization(_ *fixture, test map[string]any) error {
	c := &check{}
	if given := list(test["input_identities"]); given != nil {
		for i, identity := range given {
			got := apcore.IdentityFromMap(object(identity)).Map()
			c.that(got["type"] == list(test["expected_types"])[i], "type %v", got["type"])
		}
		return c.err()
	}
	if given := object(test["input"]); given != nil {
		got := wire(apcore.DeserializeContext(given))
		if diff := cmp.Diff(object(test["expected"]), got); diff != "" {
			return fmt.Errorf("wire form (-want +got):\n%s", diff)
		}
		return nil
	}
	given := object(test["serialized"])
	logs := captureLogs(func() {
		made := apcore.DeserializeContext(given)
		c.that(made.TraceID() == text(test["expected_trace_id"]), "trace id %q", made.TraceID())
		if want, ok := test["expected_caller_id"]; ok {
			c.that(made.CallerID() == want, "caller %q", made.CallerID())
			c.that(cmp.Equal(made.CallChain(), texts(test["expected_call_chain"])), "chain %v", made.CallChain())
			c.that(made.Identity().ID() == text(test["expected_identity_id"]), "identity %v", made.Identity())
			_, ok := made.Data().Get(text(test["expected_data_key"]))
			c.that(ok, "data lacks %v", test["expected_data_key"])
		}
	})
	c.that((test["expected_behavior"] == "warn_and_proceed") == strings.Contains(logs, "level=WARN"), "logged %q", logs)
	return c.err()
}

// captureLogs returns what fn logs through slog's default logger.
func captureLogs(fn func()) string {
	var buffer bytes.Buffer
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(slog.New(slog.NewTextHandler(&buffer, nil)))
	fn()
	return buffer.String()
}

func driveTraceParent(_ *fixture, test map[string]any) error {
	c := &check{}
	want := object(test["expected"])
	var parent *apcore.TraceParent
	given, present := object(test["input"])["trace_parent_trace_id"].(string)
	if present {
		parent = &apcore.TraceParent{TraceID: given}
	}
	var buffer bytes.Buffer
	made := apcore.NewContext(apcore.ContextOptions{TraceParent: parent, Logger: slog.New(slog.NewTextHandler(&buffer, nil))})
	regenerated := !present || made.TraceID() != given
	c.that(regenerated == want["regenerated"], "regenerated = %t (%q)", regenerated, made.TraceID())
	c.that(hex32.MatchString(made.TraceID()), "trace id %q", made.TraceID())
	c.that(strings.Contains(buffer.String(), "level=WARN") == want["warn_logged"], "logged %q", buffer.String())
	if id, ok := want["trace_id"]; ok {
		c.that(made.TraceID() == id, "trace id %q", made.TraceID())
	}
	return c.err()
}

func driveIdentity(_ *fixture, test map[string]any) error {
	c := &check{}
	roles, attrs := texts(test["input_roles"]), object(test["input_attrs"])
	identity := apcore.NewIdentity(text(test["input_id"]), text(test["input_type"]), roles, attrs)
	c.that(identity.ID() == text(test["input_id"]), "id %q", identity.ID())
	if want, ok := test["expected_type"]; ok {
		c.that(identity.Type() == want, "type %q", identity.Type())
	}
	if want, ok := test["expected_roles"]; ok {
		if len(roles) > 0 {
			roles[0] = "spoilt"
			identity.Roles()[0] = "spoilt"
		}
		c.that(cmp.Equal(identity.Roles(), texts(want)), "roles %v", identity.Roles())
	}
	if want, ok := test["expected_attrs"]; ok {
		identity.Attrs()["more"] = true
		c.that(cmp.Equal(identity.Attrs(), object(want)), "attrs %v", identity.Attrs())
	}
	if target, ok := test["child_module_id"].(string); ok {
		parent := apcore.NewContext(apcore.ContextOptions{Identity: identity})
		c.that(parent.Child(target).Identity() == identity, "the child has another identity")
	}
	return c.err()
}

func driveCallChain(_ *fixture, test map[string]any) error {
	depth, repeat := apcore.DefaultMaxCallDepth, apcore.DefaultMaxModuleRepeat
	if limit, ok := test["max_call_depth"].(float64); ok {
		depth = int(limit)
	}
	if limit, ok := test["max_module_repeat"].(float64); ok {
		repeat = int(limit)
	}
	err := apcore.GuardCallChain(text(test["module_id"]), texts(test["call_chain"]), depth, repeat)
	want := text(test["expected_error"])
	if want == "INVALID_LIMIT" { // the fixture's own word for an input refused before the chain is looked at
		want = string(apcore.CodeInvalidInput)
	}
	if got := apcore.CodeOf(err); string(got) != want {
		return fmt.Errorf("code %s, want %q", string(got), want)
	}
	return nil
}
