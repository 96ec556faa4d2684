package worker_test

import (
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/workflows"
)

// Target 22: programs that share only the request key get one run and one effect,
// at once or one after another, before and after its end.
func TestRequestKeyIsOneCall(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	key := "order-" + uuid.NewString()
	in := workflows.ModuleCallInput{ModuleID: "test.charge", Inputs: json.RawMessage(`{"how":"ok"}`)}
	call := func() (*workflows.ModuleCallOutput, error) {
		caller, err := workflows.NewCaller(s.client, s.queue, workflows.CallerOptions{})
		if err != nil {
			return nil, err
		}
		return caller.Call(t.Context(), key, in)
	}
	var group sync.WaitGroup
	for range 5 {
		group.Go(func() {
			if out, err := call(); err != nil || string(out.Output) != `{"ok":true}` {
				t.Errorf("output %+v, %v", out, err)
			}
		})
	}
	group.Wait()
	if out, err := call(); err != nil || out.Module.ID != "test.charge" {
		t.Errorf("after its end: %+v, %v", out, err)
	}
	if s.ran.Load() != 1 {
		t.Errorf("%d effects of one key", s.ran.Load())
	}
	caller, err := workflows.NewCaller(s.client, s.queue, workflows.CallerOptions{})
	must(t, err)
	for name, other := range map[string]workflows.ModuleCallInput{
		"other inputs": {ModuleID: in.ModuleID, Inputs: json.RawMessage(`{"how":"fail"}`)}, "other module": {ModuleID: "test.read", Inputs: in.Inputs},
	} {
		if _, err := caller.Call(t.Context(), key, other); !errors.Is(err, durable.CodeKeyTaken) {
			t.Errorf("%s under the same key: %v", name, err)
		}
	}
	if _, err := caller.Wait(t.Context(), "nobody-began-this"); !errors.Is(err, durable.CodeRunNotFound) {
		t.Errorf("a key that began nothing: %v", err)
	}
	if _, err := caller.Call(t.Context(), key+"-bad", workflows.ModuleCallInput{ModuleID: "test.charge", Inputs: json.RawMessage(`{"how":"fail"}`)}); !errors.Is(err, apcore.CodeModuleExecuteError) {
		t.Errorf("a call that fails: %v", err)
	}
}

// Target 22: a gated call is decided by whoever knows the key.
func TestRequestKeyOfAGatedCall(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	key := "gated-" + uuid.NewString()
	caller, err := workflows.NewCaller(s.client, s.queue, workflows.CallerOptions{})
	must(t, err)
	must(t, caller.Start(t.Context(), key, workflows.ModuleCallInput{ModuleID: "test.gated"}))
	id := caller.WorkflowID(key)
	must(t, s.approvals.Decide(t.Context(), id, approve(s.pending(id).ApprovalID)))
	if out, err := caller.Wait(t.Context(), key); err != nil || string(out.Output) != `{"ok":true}` || s.ran.Load() != 1 {
		t.Errorf("%+v, %v after %d executions", out, err, s.ran.Load())
	}
}

// One call without a workflow, on the server: its result, its errors, one effect
// for one key, and nothing that waits for an approval nobody could give.
func TestCallOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	opts := temporal.OnceOptions{TaskQueue: s.queue, Key: "once-" + uuid.NewString()}
	for range 3 {
		result, err := temporal.CallOnce(t.Context(), s.client, "test.charge", map[string]any{"how": "ok"}, opts)
		if err != nil || string(result.Output) != `{"ok":true}` || result.Module.ID != "test.charge" {
			t.Fatalf("result %+v, %v", result, err)
		}
	}
	if s.ran.Load() != 1 {
		t.Errorf("%d effects of one key", s.ran.Load())
	}
	c := apcore.NewContext(apcore.ContextOptions{Identity: apcore.NewIdentity("maria", "", nil, nil)})
	who, err := temporal.CallOnce(temporal.WithContext(t.Context(), c), s.client, "test.read", map[string]any{"how": "who"}, opts)
	must(t, err)
	var seen struct {
		TraceID  string `json:"trace_id"`
		Identity struct {
			ID string `json:"id"`
		} `json:"identity"`
	}
	if err := json.Unmarshal(who.Output, &seen); err != nil || seen.TraceID != c.TraceID() || seen.Identity.ID != "maria" {
		t.Errorf("as maria: %+v, %v", seen, err)
	}
	for _, test := range []struct {
		module, how string
		call        temporal.CallOptions
		want        apcore.Code
	}{
		{"test.charge", "fail", temporal.CallOptions{}, apcore.CodeModuleExecuteError},
		{"test.charge", "sleep past the timeout", temporal.CallOptions{StartToClose: time.Second}, durable.CodeOutcomeUnknown},
		{"test.read", "denied, joined", temporal.CallOptions{}, apcore.CodeACLDenied},
		{"test.gated", "ok", temporal.CallOptions{}, apcore.CodeApprovalPending},
		{"no.such", "", temporal.CallOptions{}, apcore.CodeModuleNotFound},
	} {
		before := s.ran.Load()
		opts := temporal.OnceOptions{TaskQueue: s.queue, Key: uuid.NewString(), Call: test.call}
		_, err := temporal.CallOnce(t.Context(), s.client, test.module, map[string]any{"how": test.how}, opts)
		if !errors.Is(err, test.want) {
			t.Errorf("%s %s: %v, want %s", test.module, test.how, err, test.want)
		}
		if ran := s.ran.Load() - before; ran > 1 || (test.want == apcore.CodeApprovalPending && ran > 0) {
			t.Errorf("%s %s: ran %d times", test.module, test.how, ran)
		}
	}
}

func TestBadRequestKeys(t *testing.T) {
	caller, err := workflows.NewCaller(lazyClient(t), "queue", workflows.CallerOptions{})
	must(t, err)
	for _, key := range []string{"", "with space", "ümlaut", "line\nbreak", string(make([]byte, 501))} {
		if err := caller.Start(t.Context(), key, workflows.ModuleCallInput{ModuleID: "a.b"}); !errors.Is(err, apcore.CodeInvalidInput) {
			t.Errorf("key %q: %v", key, err)
		}
		if _, err := temporal.CallOnce(t.Context(), lazyClient(t), "a.b", nil, temporal.OnceOptions{TaskQueue: "q", Key: key}); !errors.Is(err, apcore.CodeInvalidInput) {
			t.Errorf("key %q, once: %v", key, err)
		}
	}
	if err := caller.Start(t.Context(), "key", workflows.ModuleCallInput{ModuleID: "Bad Id"}); !errors.Is(err, apcore.CodeInvalidModuleID) {
		t.Errorf("bad id: %v", err)
	}
	if err := caller.Start(t.Context(), "key", workflows.ModuleCallInput{ModuleID: "a.b", Inputs: json.RawMessage(`[1]`)}); !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("a list for inputs: %v", err)
	}
	if _, err := temporal.CallOnce(t.Context(), lazyClient(t), "a.b", nil, temporal.OnceOptions{Key: "key"}); !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("no queue: %v", err)
	}
}
