package worker_test

import (
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// gateV1 and gateV2 are two builds of one workflow: the second makes one more
// call before the gate. guarded says that it does so behind a version marker.
func gateV1(ctx workflow.Context) (map[string]any, error) {
	return temporal.Call[map[string]any](ctx, "billing.charge", nil)
}

func gateV2(guarded bool) func(ctx workflow.Context) (map[string]any, error) {
	return func(ctx workflow.Context) (map[string]any, error) {
		if !guarded || workflow.GetVersion(ctx, "read-first", workflow.DefaultVersion, 1) > workflow.DefaultVersion {
			if _, err := temporal.Call[map[string]any](ctx, "no.such", nil); err == nil {
				return nil, errors.New("a module that is not there answered")
			}
		}
		return gateV1(ctx)
	}
}

// build is a worker with one build of the workflow Gate.
func (s *site) build(fn any, deployment worker.Deployment) *worker.Worker {
	s.t.Helper()
	w, err := worker.New(s.client, s.queue, billing(s.t, "billing.charge", &s.ran), worker.Options{
		Deployment: deployment, StopTimeout: time.Second, SDK: sdkworker.Options{StickyScheduleToStartTimeout: time.Second},
	})
	must(s.t, err)
	w.Registry().RegisterWorkflowWithOptions(fn, workflow.RegisterOptions{Name: "Gate"})
	must(s.t, w.Start())
	s.t.Cleanup(w.Stop)
	return w
}

func gateSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t, queue: "deploy-" + uuid.NewString(), client: testsuite.DevServer(t).Client(t, client.Options{})}
	var err error
	s.approvals, err = temporal.NewApprovals(s.client, temporal.ApprovalsOptions{Timeout: time.Minute})
	must(t, err)
	return s
}

// replayGate is the check that a team runs before it deploys.
func replayGate(t *testing.T, history *historypb.History, fn any) error {
	t.Helper()
	plugin, err := worker.NewPlugin(billing(t, "billing.charge", new(atomic.Int64)), worker.PluginOptions{})
	must(t, err)
	replayer, err := sdkworker.NewWorkflowReplayerWithOptions(sdkworker.WorkflowReplayerOptions{Plugins: []sdkworker.Plugin{plugin}})
	must(t, err)
	replayer.RegisterWorkflowWithOptions(fn, workflow.RegisterOptions{Name: "Gate"})
	quiet := log.NewStructuredLogger(slog.New(slog.DiscardHandler))
	for range 2 { // one replayer bears many histories
		err = replayer.ReplayWorkflowHistory(quiet, history)
	}
	return err
}

// Scenario 73: a deploy that adds a call before the gate, while a run waits at
// it. Unversioned it blocks the run, and a rollback frees it with its approval
// still open; behind a version marker it does no harm.
func TestDeployWhileARunWaits(t *testing.T) {
	t.Parallel()
	for _, guarded := range []bool{false, true} {
		s := gateSite(t)
		old := s.build(gateV1, worker.Deployment{})
		run := s.start(t.Context(), "Gate")
		approval := s.pending(run.GetID())
		old.Stop()
		replay := replayGate(t, testsuite.History(t, s.client, run.GetID()), gateV2(guarded))
		if (replay == nil) != guarded {
			t.Errorf("guarded %t: the replay test says %v", guarded, replay)
		}
		newer := s.build(gateV2(guarded), worker.Deployment{})
		if !guarded {
			must(t, s.approvals.Send(t.Context(), run.GetID(), approve("apr-nobody"))) // wakes the run
			s.awaitEvent(run.GetID(), enums.EVENT_TYPE_WORKFLOW_TASK_FAILED)
			newer.Stop()
			s.build(gateV1, worker.Deployment{})
		}
		must(t, s.approvals.Decide(t.Context(), run.GetID(), approve(approval.ApprovalID)))
		must(t, s.end(run, nil))
		if s.ran.Load() != 1 {
			t.Errorf("guarded %t: %d executions", guarded, s.ran.Load())
		}
	}
}

// Scenario 73 (c), target 36: with deployment versions the run stays on the
// build that it began on, without anybody saying pinned; new runs go to the
// current version.
func TestDeploymentVersionPins(t *testing.T) {
	t.Parallel()
	s := gateSite(t)
	name := "shop-" + uuid.NewString()
	current := func(buildID string) {
		s.setCurrent(name, buildID)
	}
	s.build(gateV1, worker.Deployment{Name: name, BuildID: "v1"})
	current("v1")
	run := s.start(t.Context(), "Gate")
	approval := s.pending(run.GetID())
	s.build(gateV2(false), worker.Deployment{Name: name, BuildID: "v2"})
	current("v2")
	must(t, s.approvals.Decide(t.Context(), run.GetID(), approve(approval.ApprovalID)))
	must(t, s.end(run, nil))
	counts := s.events(run.GetID())
	if counts[enums.EVENT_TYPE_WORKFLOW_TASK_FAILED] > 0 || s.ran.Load() != 1 {
		t.Errorf("%d executions, events %v", s.ran.Load(), counts)
	}
	next := s.start(t.Context(), "Gate")
	s.awaitEvent(next.GetID(), enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED)
	for _, event := range testsuite.History(t, s.client, next.GetID()).Events {
		if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled != nil && scheduled.ActivityType.Name != "apcore/call/no/such" {
			t.Errorf("a new run began with %s: it is not on the current version", scheduled.ActivityType.Name)
		}
	}
	must(t, s.client.TerminateWorkflow(t.Context(), next.GetID(), "", "seen enough"))
}

// setCurrent makes a build the current version as soon as the server knows it.
func (s *site) setCurrent(name, buildID string) {
	s.t.Helper()
	handle := s.client.WorkerDeploymentClient().GetHandle(name)
	var err error
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if _, err = handle.SetCurrentVersion(s.t.Context(), client.WorkerDeploymentSetCurrentVersionOptions{BuildID: buildID}); err == nil {
			return
		}
	}
	s.t.Fatalf("%s does not become the current version: %v", buildID, err)
}

func TestBadDeploymentsAreRefused(t *testing.T) {
	versioned := sdkworker.DeploymentOptions{UseVersioning: true, Version: sdkworker.WorkerDeploymentVersion{DeploymentName: "a", BuildID: "b"}}
	for name, test := range map[string]struct {
		opts worker.Options
		want string
	}{
		"no build":        {worker.Options{Deployment: worker.Deployment{Name: "shop"}}, "BuildID"},
		"no name":         {worker.Options{Deployment: worker.Deployment{BuildID: "v1"}}, "Deployment.Name"},
		"behaviour alone": {worker.Options{Deployment: worker.Deployment{AutoUpgrade: true}}, "Deployment.Name"},
		"dot":             {worker.Options{Deployment: worker.Deployment{Name: "shop.de", BuildID: "v1"}}, "shop.de"},
		"reserved":        {worker.Options{Deployment: worker.Deployment{Name: "shop", BuildID: "__v1"}}, "__v1"},
		"long":            {worker.Options{Deployment: worker.Deployment{Name: strings.Repeat("s", 256), BuildID: "v1"}}, "256"},
		"twice":           {worker.Options{Deployment: worker.Deployment{Name: "shop", BuildID: "v1"}, SDK: sdkworker.Options{DeploymentOptions: versioned}}, "both"},
		"the SDK's own":   {worker.Options{SDK: sdkworker.Options{MaxConcurrentWorkflowTaskPollers: 1}}, "MaxConcurrentWorkflowTaskPollers"},
	} {
		_, err := worker.New(lazyClient(t), "queue", billing(t, "billing.charge", new(atomic.Int64)), test.opts)
		if !errors.Is(err, apcore.CodeInvalidInput) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The SDK would refuse workflows without a behaviour.
	w, err := worker.New(lazyClient(t), "queue", billing(t, "billing.charge", new(atomic.Int64)), worker.Options{SDK: sdkworker.Options{DeploymentOptions: versioned}})
	must(t, err)
	w.Registry().RegisterWorkflow(gateV1)
	if err := w.Start(); err == nil || strings.Contains(err.Error(), "versioning behavior") {
		t.Errorf("start: %v", err)
	}
}
