package oteltemporal_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/apcore/otelapcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/temporal/oteltemporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// refund makes a gated call and one that needs nobody.
func refund(ctx workflow.Context) (map[string]any, error) {
	if _, err := temporal.Call[map[string]any](ctx, "pay.refund", nil); err != nil {
		return nil, err
	}
	return temporal.Call[map[string]any](ctx, "mail.send", nil)
}

// traced is one traced program: a client and its workers.
type traced struct {
	client   client.Client
	executor *apcore.Executor
	spans    *tracetest.InMemoryExporter
	provider *sdktrace.TracerProvider
}

func newTraced(t *testing.T) *traced {
	t.Helper()
	p := &traced{spans: tracetest.NewInMemoryExporter()}
	processor := sdktrace.NewSimpleSpanProcessor(p.spans)
	p.provider = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(processor))
	tracing, err := oteltemporal.NewInterceptor(p.provider)
	must(t, err)
	p.client = testsuite.DevServer(t).Client(t, client.Options{Interceptors: []interceptor.ClientInterceptor{tracing, temporal.NewClientInterceptor()}})
	modules, err := apcore.NewTracingMiddleware(apcore.TracingOptions{Exporters: []apcore.SpanExporter{otelapcore.NewSpanExporter(processor, otelapcore.SpanExporterOptions{})}})
	must(t, err)
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	for id, gated := range map[string]bool{"pay.refund": true, "mail.send": false} {
		must(t, apcore.Register(registry, id, func(context.Context, map[string]any) (map[string]any, error) { return map[string]any{}, nil },
			apcore.Spec{Description: "Is traced", Annotations: apcore.Annotations{RequiresApproval: gated}}))
	}
	p.executor, err = apcore.NewExecutor(registry, apcore.ExecutorOptions{
		ApprovalHandler: temporal.NewApprovalHandler(), Middleware: []apcore.Middleware{modules}, Logger: slog.New(slog.DiscardHandler),
	})
	must(t, err)
	return p
}

func (p *traced) serve(t *testing.T, queue string) *worker.Worker {
	t.Helper()
	w, err := worker.New(p.client, queue, p.executor, worker.Options{StopTimeout: time.Second, SDK: sdkworker.Options{StickyScheduleToStartTimeout: time.Second}})
	must(t, err)
	w.Registry().RegisterWorkflowWithOptions(refund, workflow.RegisterOptions{Name: "Refund"})
	must(t, w.Start())
	return w
}

// tree lists spans of one trace by name, each with its parent's name. Approvals
// asked for and given leave spans of their own, which are not of interest here.
func (p *traced) tree(id trace.TraceID) []string {
	spans := p.spans.GetSpans()
	names := map[trace.SpanID]string{}
	for _, span := range spans {
		names[span.SpanContext.SpanID()] = span.Name
	}
	var lines []string
	for _, span := range spans {
		if span.SpanContext.TraceID() == id && !strings.Contains(span.Name, "Query") && !strings.Contains(span.Name, "Update") {
			lines = append(lines, names[span.Parent.SpanID()]+" > "+span.Name)
		}
	}
	slices.Sort(lines)
	return lines
}

// One trace over client, workflow, activity and module with the apcore trace id;
// a worker that goes while the run waits, and the replay by the next one, add no
// span (pitfall 41); the approved unit has a link to the one that asked.
func TestOneTrace(t *testing.T) {
	t.Parallel()
	p := newTraced(t)
	queue := "trace-" + uuid.NewString()
	first := p.serve(t, queue)
	ctx, root := p.provider.Tracer("test").Start(t.Context(), "request")
	run, err := p.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, "Refund")
	must(t, err)
	root.End()
	approvals, err := temporal.NewApprovals(p.client, temporal.ApprovalsOptions{Timeout: time.Minute})
	must(t, err)
	asked := pending(t, approvals, queue)
	first.Stop() // the run leaves the cache, with it whatever span were open
	t.Cleanup(p.serve(t, queue).Stop)
	must(t, approvals.Decide(t.Context(), queue, durable.Decision{ApprovalID: asked.ApprovalID, Status: apcore.ApprovalApproved, ApprovedBy: "ana"}))
	must(t, run.Get(t.Context(), nil))

	id := root.SpanContext().TraceID()
	want := []string{
		" > request",
		"RunActivity:apcore/call/mail/send > apcore.module.execute",
		"RunActivity:apcore/call/pay/refund > apcore.module.execute",
		"StartActivity:apcore/call/mail/send > RunActivity:apcore/call/mail/send",
		"StartActivity:apcore/call/pay/refund > RunActivity:apcore/call/pay/refund",
		"StartActivity:apcore/call/pay/refund > RunActivity:apcore/call/pay/refund",
		"StartWorkflow:Refund > CompleteWorkflow:Refund", "StartWorkflow:Refund > RunWorkflow:Refund",
		"StartWorkflow:Refund > StartActivity:apcore/call/mail/send",
		"StartWorkflow:Refund > StartActivity:apcore/call/pay/refund", "StartWorkflow:Refund > StartActivity:apcore/call/pay/refund",
		"request > StartWorkflow:Refund",
	}
	if diff := cmp.Diff(want, p.tree(id)); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	p.checkLink(t, id, asked)
	before := len(p.spans.GetSpans())
	for range 3 {
		must(t, replay(p, testsuite.History(t, p.client, queue)))
	}
	if after := len(p.spans.GetSpans()); after != before {
		t.Errorf("%d spans before the replay, %d after", before, after)
	}
}

// checkLink finds the one link of the trace: from the approved unit to the unit
// that asked.
func (p *traced) checkLink(t *testing.T, id trace.TraceID, asked durable.Approval) {
	t.Helper()
	links := 0
	for _, span := range p.spans.GetSpans() {
		for _, link := range span.Links {
			links++
			if span.SpanContext.TraceID() != id || !strings.Contains(asked.AskedIn, link.SpanContext.SpanID().String()) || link.SpanContext.SpanID() == span.SpanContext.SpanID() {
				t.Errorf("span %s links to %s, asked in %s", span.Name, link.SpanContext.SpanID(), asked.AskedIn)
			}
		}
	}
	if links != 1 {
		t.Errorf("%d links", links)
	}
}

// Without a span of the client's the trace has the id of the apcore context it
// gives, and without that of the run.
func TestTraceTakesTheIDOfTheContext(t *testing.T) {
	t.Parallel()
	p := newTraced(t)
	queue := "trace-" + uuid.NewString()
	t.Cleanup(p.serve(t, queue).Stop)
	c := apcore.NewContext(apcore.ContextOptions{})
	for name, ctx := range map[string]context.Context{"given": temporal.WithContext(t.Context(), c), "fresh": t.Context()} {
		run, err := p.client.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: queue + name, TaskQueue: queue}, "apcore/module-call", map[string]any{"module_id": "mail.send"})
		must(t, err)
		must(t, run.Get(t.Context(), nil))
	}
	counts := map[trace.TraceID][]string{}
	for _, span := range p.spans.GetSpans() {
		counts[span.SpanContext.TraceID()] = append(counts[span.SpanContext.TraceID()], span.Name)
	}
	given, err := trace.TraceIDFromHex(c.TraceID())
	must(t, err)
	if len(counts) != 2 || len(counts[given]) != 6 {
		t.Errorf("traces %v, want two of six spans each, one of them %s", counts, given)
	}
}

func pending(t *testing.T, approvals *temporal.Approvals, id string) durable.Approval {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if list, err := approvals.List(t.Context(), id); err == nil && len(list) > 0 {
			return list[0]
		}
	}
	t.Fatal("no approval")
	return durable.Approval{}
}

func TestInterceptorNeedsAProvider(t *testing.T) {
	if _, err := oteltemporal.NewInterceptor(nil); apcore.CodeOf(err) != apcore.CodeInvalidInput {
		t.Errorf("error %v", err)
	}
}
