package worker_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// hop is what a module sees of its caller.
type hop struct {
	Who    string   `json:"who"`
	Roles  []string `json:"roles"`
	Tenant string   `json:"tenant"`
	Trace  string   `json:"trace"`
	Chain  []string `json:"chain"`
	Note   string   `json:"note"`
	Nested *hop     `json:"nested,omitempty"`
}

func hopOf(ctx context.Context) hop {
	c, _ := apcore.FromContext(ctx)
	h := hop{Trace: c.TraceID(), Chain: c.CallChain()}
	if identity := c.Identity(); identity != nil {
		h.Who, h.Roles = identity.ID(), identity.Roles()
		h.Tenant, _ = identity.Attrs()["tenant"].(string)
	}
	h.Note, _ = apcore.NewKey[string]("note").Get(c)
	return h
}

// newHopExecutor hosts hop.a, which calls hop.b in process, hop.gated and
// hop.admin, which only admins may call.
func newHopExecutor(t *testing.T, access apcore.AccessControl) (*apcore.Executor, *atomic.Int64) {
	t.Helper()
	ran := &atomic.Int64{}
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	var executor *apcore.Executor
	see := func(ctx context.Context, _ map[string]any) (hop, error) {
		ran.Add(1)
		return hopOf(ctx), nil
	}
	must(t, errors.Join(
		apcore.Register(registry, "hop.a", func(ctx context.Context, _ map[string]any) (hop, error) {
			c, _ := apcore.FromContext(ctx)
			apcore.NewKey[string]("note").Set(c, "from a")
			h := hopOf(ctx)
			var inner hop
			outcome, err := executor.Call(ctx, "hop.b", map[string]any{}, c)
			if err != nil {
				return h, err
			}
			text, err := apcore.EncodeJSON(outcome)
			if err == nil {
				err = json.Unmarshal(text, &inner)
			}
			h.Nested = &inner
			return h, err
		}, apcore.Spec{Description: "Calls b", Annotations: apcore.Annotations{Readonly: true}}),
		apcore.Register(registry, "hop.b", see, apcore.Spec{Description: "Sees", Annotations: apcore.Annotations{Readonly: true}}),
		apcore.Register(registry, "hop.gated", see, apcore.Spec{Description: "Sees", Annotations: apcore.Annotations{RequiresApproval: true}}),
		apcore.Register(registry, "hop.admin", see, apcore.Spec{Description: "Sees", Annotations: apcore.Annotations{Readonly: true}}),
	))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{
		AccessControl: access, ApprovalHandler: temporal.NewApprovalHandler(), Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	return executor, ran
}

// hopRun is one worker with a client that sends contexts along.
func hopRun(t *testing.T, executor *apcore.Executor, opts worker.Options, fns ...any) *site {
	t.Helper()
	c := testsuite.DevServer(t).Client(t, client.Options{Interceptors: []interceptor.ClientInterceptor{temporal.NewClientInterceptor()}})
	return serve(t, c, executor, opts, fns...)
}

// Hops takes every way that a context may go and reports what each module saw.
func Hops(ctx workflow.Context, run int, seen []hop) ([]hop, error) {
	if run == 2 {
		after, err := temporal.Call[hop](ctx, "hop.b", nil)
		return append(seen, after), err
	}
	first, err := temporal.Call[hop](ctx, "hop.a", nil)
	if err != nil {
		return nil, err
	}
	var child hop
	if err := workflow.ExecuteChildWorkflow(ctx, HopChild).Get(ctx, &child); err != nil {
		return nil, err
	}
	gated, err := temporal.Call[hop](ctx, "hop.gated", nil)
	if err != nil {
		return nil, err
	}
	return nil, workflow.NewContinueAsNewErrorWithOptions(ctx, workflow.ContinueAsNewErrorOptions{}, Hops, 2, []hop{first, child, gated})
}

// HopChild is the child workflow of Hops.
func HopChild(ctx workflow.Context) (hop, error) { return temporal.Call[hop](ctx, "hop.b", nil) }

// Scenario 83: client, module, nested module, child workflow, an approval by
// signal and a successor all act for the same caller in the same trace; public
// data goes along. The approver never takes the caller's place.
func TestContextOnEveryHop(t *testing.T) {
	t.Parallel()
	executor, _ := newHopExecutor(t, apcore.AllowAll{})
	s := hopRun(t, executor, worker.Options{}, Hops, HopChild)
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	caller := apcore.NewContext(apcore.ContextOptions{
		Identity:    apcore.NewIdentity("maria", apcore.IdentityUser, []string{"clerk"}, map[string]any{"tenant": "acme"}),
		TraceParent: &apcore.TraceParent{TraceID: trace},
	})
	id := "hops-" + uuid.NewString()
	run, err := s.client.ExecuteWorkflow(temporal.WithContext(t.Context(), caller), client.StartWorkflowOptions{ID: id, TaskQueue: s.queue}, Hops, 1, nil)
	must(t, err)
	approval := s.pending(id)
	other := apcore.NewContext(apcore.ContextOptions{Identity: apcore.NewIdentity("ana", apcore.IdentityUser, []string{"boss"}, nil)})
	must(t, s.approvals.Send(temporal.WithContext(t.Context(), other), id, approve(approval.ApprovalID)))
	var seen []hop
	must(t, s.end(run, &seen))
	maria := func(note string, chain ...string) hop {
		return hop{Who: "maria", Roles: []string{"clerk"}, Tenant: "acme", Trace: trace, Chain: chain, Note: note}
	}
	nested, first := maria("from a", "hop.a", "hop.b"), maria("from a", "hop.a")
	first.Nested = &nested
	want := []hop{first, maria("from a", "hop.b"), maria("from a", "hop.gated"), maria("from a", "hop.b")}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("seen by client's module, nested, child, approved, successor (-want +got):\n%s", diff)
	}
}

// Scenario 83, the runs that nobody sent a context along with, or a bad one.
func TestContextsOfStrangers(t *testing.T) {
	t.Parallel()
	executor, _ := newHopExecutor(t, apcore.AllowAll{})
	s := hopRun(t, executor, worker.Options{}, HopChild)
	plain := testsuite.DevServer(t).Client(t, client.Options{})
	start := func(c client.Client, caller *apcore.Context) (hop, string, error) {
		run, err := c.ExecuteWorkflow(temporal.WithContext(t.Context(), caller), client.StartWorkflowOptions{ID: "hop-" + uuid.NewString(), TaskQueue: s.queue}, HopChild)
		must(t, err)
		var seen hop
		err = s.end(run, &seen)
		return seen, strings.ReplaceAll(run.GetRunID(), "-", ""), err
	}
	seen, runID, err := start(plain, nil)
	must(t, err)
	if diff := cmp.Diff(hop{Trace: runID, Roles: []string{}, Chain: []string{"hop.b"}}, seen); diff != "" {
		t.Errorf("without a header (-want +got):\n%s", diff)
	}
	for _, bad := range []string{"ABCDEF0123456789ABCDEF0123456789", strings.Repeat("0", 32), "short"} {
		caller := apcore.DeserializeContext(map[string]any{"trace_id": bad, "call_chain": []any{}, "identity": map[string]any{"id": "m", "type": "user"}})
		seen, runID, err := start(s.client, caller)
		must(t, err)
		if seen.Trace != runID || seen.Who != "m" {
			t.Errorf("trace id %q: seen %+v", bad, seen)
		}
	}
	incomplete := apcore.DeserializeContext(map[string]any{"call_chain": []any{}})
	if _, _, err := start(s.client, incomplete); !strings.Contains(temporal.AsError(err).Message, "trace_id must be a text") {
		t.Errorf("without a trace id: %v", err)
	}
}

var signingKey = []byte("the key of whoever authenticates callers")

func signatureOf(identity *apcore.Identity) string {
	mac := hmac.New(sha256.New, signingKey)
	mac.Write([]byte(identity.Type() + "\n" + identity.ID() + "\n" + strings.Join(identity.Roles(), "\n")))
	return hex.EncodeToString(mac.Sum(nil))
}

// signed is an identity with its authenticator's signature among its attributes.
func signed(id string, roles ...string) *apcore.Identity {
	bare := apcore.NewIdentity(id, apcore.IdentityUser, roles, nil)
	return apcore.NewIdentity(id, apcore.IdentityUser, roles, map[string]any{"signature": signatureOf(bare)})
}

func verifySignature(_ context.Context, claim durable.Claim) error {
	identity := claim.Context.Identity()
	if identity == nil {
		return nil // anonymous callers claim nothing
	}
	if given, _ := identity.Attrs()["signature"].(string); !hmac.Equal([]byte(given), []byte(signatureOf(identity))) {
		return errors.New("its signature does not fit")
	}
	return nil
}

// Scenario 84: what counts is the caller's right, checked where the module runs,
// with the identity that came from the client. Inputs never become an identity,
// and a claim that nobody signed is refused before the module runs.
func TestConfusedDeputy(t *testing.T) {
	t.Parallel()
	access, err := apcore.NewACL([]apcore.ACLRule{
		{Callers: []string{"*"}, Targets: []string{"hop.admin"}, Effect: apcore.ACLAllow, Conditions: map[string]any{"roles": []any{"admin"}}},
	}, apcore.ACLOptions{DefaultEffect: apcore.ACLDeny})
	must(t, err)
	tampered := apcore.NewIdentity("otto", apcore.IdentityUser, []string{"reader", "admin"}, signed("otto", "reader").Attrs())
	for name, test := range map[string]struct {
		access   apcore.AccessControl
		identity *apcore.Identity
		want     apcore.Code
	}{
		"admin":                           {access, signed("maria", "admin"), ""},
		"reader":                          {access, signed("otto", "reader"), apcore.CodeACLDenied},
		"nobody":                          {access, nil, apcore.CodeACLDenied},
		"reader with a role added":        {access, tampered, apcore.CodeACLDenied},
		"added role, no rules on workers": {apcore.AllowAll{}, tampered, apcore.CodeACLDenied},
		"claimed without signature":       {access, apcore.NewIdentity("eve", apcore.IdentityUser, []string{"admin"}, nil), apcore.CodeACLDenied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			executor, ran := newHopExecutor(t, test.access)
			s := hopRun(t, executor, worker.Options{PluginOptions: worker.PluginOptions{Invoker: durable.InvokerOptions{VerifyContext: verifySignature}}}, Call)
			admin := map[string]any{"id": "root", "type": "user", "roles": []any{"admin"}}
			inputs := map[string]any{
				"identity": admin, "roles": []any{"admin"}, "caller_id": "hop.a", "context": map[string]any{"identity": admin}, "trace_id": "x",
			}
			caller := apcore.NewContext(apcore.ContextOptions{Identity: test.identity})
			run := s.start(temporal.WithContext(t.Context(), caller), Call, "hop.admin", inputs, temporal.CallOptions{})
			var seen hop
			err := s.end(run, &seen)
			if e := temporal.AsError(err); (test.want == "") != (e == nil) || e != nil && e.Code != test.want {
				t.Errorf("ended with %v, want %q", err, test.want)
			}
			if want := int64(1); test.want == "" && (ran.Load() != want || seen.Who != test.identity.ID()) || test.want != "" && ran.Load() != 0 {
				t.Errorf("%d executions, seen %+v", ran.Load(), seen)
			}
		})
	}
}
