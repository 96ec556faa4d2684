package refund_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/examples/refund"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// Environment of a worker process.
const (
	workerEnv  = "REFUND_TEST_WORKER" // the server's address
	queueEnv   = "REFUND_TEST_QUEUE"
	ledgerEnv  = "REFUND_TEST_LEDGER"
	killAtEnv  = "REFUND_TEST_KILL_AT"
	heartbeats = 4000 // milliseconds: a lost worker is noticed soon, a slow machine is not taken for one
)

// TestKilledWorker kills the worker process with SIGKILL at five points of an
// approval run. The money moves once each time; a call that was killed after its
// effect and before its answer says that its outcome is unknown, and is not
// repeated (targets 21 and 26).
func TestKilledWorker(t *testing.T) {
	for _, test := range []struct {
		point string
		want  apcore.Code
	}{
		{"lookup", ""},
		{"asking", ""},
		{"waiting", ""},
		{"refunded", durable.CodeOutcomeUnknown},
		{"mailed", ""},
	} {
		t.Run(test.point, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			first := s.spawn(test.point)
			run := s.start(refund.Request{OrderID: test.point, Card: card})
			second := (*exec.Cmd)(nil)
			if test.point == "lookup" || test.point == "asking" {
				waitFor(t, first)
				second = s.spawn("")
			}
			approval := s.pending(run.GetID())
			if test.point == "waiting" {
				must(t, first.Process.Kill())
				waitFor(t, first)
				second = s.spawn("")
			}
			if got := s.lines(); got != 0 {
				t.Fatalf("%d refunds before anybody approved", got)
			}
			s.decide(run.GetID(), approval.ApprovalID, apcore.ApprovalApproved)
			if second == nil {
				waitFor(t, first)
				s.spawn("")
			}
			_, e := s.end(run)
			if got := codeOf(e); got != test.want {
				t.Errorf("ended with %v, want %q", e, test.want)
			}
			if got := s.lines(); got != 1 {
				t.Errorf("%d ledger lines, want exactly one", got)
			}
			if test.want == durable.CodeOutcomeUnknown && !strings.HasPrefix(fmt.Sprint(e.Details["call_id"]), run.GetID()+"/") {
				t.Errorf("the error does not say which call: %v", e.Details)
			}
		})
	}
}

// spawn starts a worker process that kills itself at a point, empty for never.
func (s *shop) spawn(killAt string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerEnv+"="+s.server.Address(), queueEnv+"="+s.queue, ledgerEnv+"="+s.ledger, killAtEnv+"="+killAt)
	cmd.Stderr = os.Stderr
	must(s.t, cmd.Start())
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	})
	return cmd
}

// waitFor waits until a worker process is dead.
func waitFor(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it dies of a signal
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("the worker was not killed at its point")
	}
}

// workerProcess is the main function of a worker process.
func workerProcess() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := workUntilKilled(ctx, os.Getenv(killAtEnv))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker process:", err)
		os.Exit(1)
	}
}

func workUntilKilled(ctx context.Context, killAt string) error {
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	if err := (&refund.Payments{LedgerPath: os.Getenv(ledgerEnv)}).Register(registry); err != nil {
		return err
	}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{
		ApprovalHandler: temporal.NewApprovalHandler(),
		AccessControl:   killer{killAt: killAt},
		Middleware:      []apcore.Middleware{killer{killAt: killAt}},
	})
	if err != nil {
		return err
	}
	c, err := client.DialContext(ctx, client.Options{HostPort: os.Getenv(workerEnv)})
	if err != nil {
		return err
	}
	defer c.Close()
	w, err := worker.New(c, os.Getenv(queueEnv), executor, worker.Options{SDK: sdkworker.Options{StickyScheduleToStartTimeout: time.Second}})
	if err != nil {
		return err
	}
	w.Registry().RegisterWorkflowWithOptions(quickRefund, workflow.RegisterOptions{Name: "Refund"})
	return w.Run(ctx)
}

// quickRefund is the example's workflow with short heartbeats.
func quickRefund(ctx workflow.Context, in refund.Request) (*refund.Receipt, error) {
	return refund.Refund(temporal.WithCallOptions(ctx, temporal.CallOptions{Heartbeat: heartbeats * time.Millisecond}), in)
}

// killer ends its own process where it is told to: at the gate before anybody
// is asked, or after a module has done its work and before the answer is out.
type killer struct {
	apcore.BaseMiddleware
	killAt string
}

func (k killer) CheckAccess(_ context.Context, request apcore.AccessRequest) apcore.AccessDecision {
	if k.killAt == "asking" && request.TargetID == refund.RefundModule {
		die()
	}
	return apcore.AccessDecision{Allowed: true}
}

func (k killer) After(_ context.Context, call *apcore.MiddlewareCall, _ map[string]any) (map[string]any, error) {
	at := map[string]string{"lookup": refund.LookupModule, "refunded": refund.RefundModule, "mailed": refund.EmailModule}
	if call.ModuleID == at[k.killAt] {
		die()
	}
	return nil, nil
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}
