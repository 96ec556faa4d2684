package worker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// Environment of a worker process that is told to stop while its module runs.
const (
	deployServer  = "WORKER_TEST_SERVER"
	deployQueue   = "WORKER_TEST_QUEUE"
	deployFolder  = "WORKER_TEST_FOLDER"
	deployTimeout = "WORKER_TEST_STOP_TIMEOUT"
	deployDies    = "WORKER_TEST_DIES"
)

// Scenario 48: SIGTERM while a module runs that must not run twice. By default the
// worker waits for it and reports its result; a worker that may not wait so long
// reports an unknown outcome. Either way the next worker does not run it again.
// Target 26: so it is with SIGKILL between the effect and the answer, also while
// the call is being cancelled.
func TestDeployWhileAModuleRuns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		timeout string // of stopping; empty is the default
		dies    string // "1" kills itself after the effect, "later" is killed
		want    apcore.Code
		lines   string
	}{
		{"default", "", "", "", "effect stopping finished"},
		{"no time", "100ms", "", durable.CodeOutcomeUnknown, "effect stopping"},
		{"killed", "", "1", durable.CodeOutcomeUnknown, "effect"},
		{"killed while cancelled", "", "later", durable.CodeOutcomeUnknown, "effect"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newQueue(t)
			folder := t.TempDir()
			first := s.process(folder, test.timeout, test.dies)
			flow, opts := s, temporal.CallOptions{Heartbeat: 4 * time.Second}
			if test.dies == "later" { // the workflow has to be at work while the module's worker is not
				flow, opts = newQueue(t), temporal.CallOptions{Heartbeat: 8 * time.Second, TaskQueue: s.queue}
				flow.work(executorOf(t, apcore.ExecutorOptions{}, module{id: "test.slow", run: slow(folder)}), worker.Options{}, OneCall)
			}
			run := flow.start(t.Context(), OneCall, "test.slow", nil, opts)
			s.until("the module has its effect", func() bool { return strings.Contains(linesIn(t, folder), "effect") })
			if test.dies == "" {
				must(t, first.Process.Signal(syscall.SIGTERM))
				s.until("the module hears that the worker stops", func() bool { return strings.Contains(linesIn(t, folder), "stopping") })
			}
			if test.dies == "later" {
				must(t, first.Process.Signal(syscall.SIGSTOP)) // so that it does not hear of it
				must(t, s.client.CancelWorkflow(t.Context(), run.GetID(), ""))
				s.awaitEvent(run.GetID(), enumspb.EVENT_TYPE_ACTIVITY_TASK_CANCEL_REQUESTED)
				must(t, first.Process.Kill())
			}
			if test.want == "" { // the others wait for what does not come
				must(t, os.WriteFile(filepath.Join(folder, "finish"), nil, 0o600))
			}
			err := first.Wait()
			if exit := (*exec.ExitError)(nil); test.dies == "" && err != nil || test.dies != "" && !errors.As(err, &exit) {
				t.Errorf("the process ended with %v", err)
			}
			second := s.process(folder, "", "")
			if err := s.end(run, nil); codeOf(err) != test.want {
				t.Errorf("ended with %v, want %q", err, test.want)
			}
			must(t, second.Process.Signal(syscall.SIGTERM))
			must(t, second.Wait())
			if got := linesIn(t, folder); got != test.lines {
				t.Errorf("ledger %q, want %q", got, test.lines)
			}
		})
	}
}

// process starts this test binary as a worker and waits until it works.
func (s *site) process(folder, timeout, dies string) *exec.Cmd {
	s.t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestWorkerProcess$", "-test.v")
	cmd.Env = append(os.Environ(), deployServer+"="+testsuite.DevServer(s.t).Address(), deployQueue+"="+s.queue,
		deployFolder+"="+folder, deployTimeout+"="+timeout, deployDies+"="+dies)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(s.t, err)
	must(s.t, cmd.Start())
	s.t.Cleanup(func() { _ = cmd.Process.Kill() }) // it may have ended
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "working" {
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // what the test prints at its end
	return cmd
}

func linesIn(t *testing.T, folder string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "ledger"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// TestWorkerProcess is the main function of the processes above; in an ordinary
// run of the tests it has nothing to do.
func TestWorkerProcess(t *testing.T) {
	if os.Getenv(deployServer) == "" {
		return
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	c, err := client.DialContext(ctx, client.Options{HostPort: os.Getenv(deployServer)})
	must(t, err)
	defer c.Close()
	opts := worker.Options{SDK: sdkworker.Options{StickyScheduleToStartTimeout: time.Second}}
	if text := os.Getenv(deployTimeout); text != "" {
		opts.StopTimeout, err = time.ParseDuration(text)
		must(t, err)
	}
	executor := executorOf(t, apcore.ExecutorOptions{}, module{id: "test.slow", timeout: apcore.NoTimeout, run: slow(os.Getenv(deployFolder))})
	w, err := worker.New(c, os.Getenv(deployQueue), executor, opts)
	must(t, err)
	w.Registry().RegisterWorkflow(OneCall)
	must(t, w.Start())
	fmt.Println("\nworking")
	<-ctx.Done()
	w.Stop()
}

// slow has its effect, waits until its worker stops, and finishes when it may; it
// does not look at its context.
func slow(folder string) moduleFunc {
	write := func(line string) error {
		file, err := os.OpenFile(filepath.Join(folder, "ledger"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = file.WriteString(line + "\n")
		return errors.Join(err, file.Close())
	}
	return func(ctx context.Context, _ map[string]any) (map[string]any, error) {
		if err := write("effect"); err != nil {
			return nil, err
		}
		if os.Getenv(deployDies) == "1" {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		<-activity.GetWorkerStopChannel(ctx)
		if err := write("stopping"); err != nil {
			return nil, err
		}
		for {
			if _, err := os.Stat(filepath.Join(folder, "finish")); err == nil {
				return map[string]any{}, write("finished")
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}
