package temporal_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	ossignal "os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// Environment of a worker process.
const (
	killWorkerEnv = "TASK_TEST_WORKER" // the server's address
	killQueueEnv  = "TASK_TEST_QUEUE"
	killLedgerEnv = "TASK_TEST_LEDGER"
	// A lost worker is noticed soon, a slow machine is not taken for one.
	killHeartbeatMS = 4000
)

func TestMain(m *testing.M) {
	if address := os.Getenv(killWorkerEnv); address != "" {
		if err := runKillWorker(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

type killInput struct {
	Key string `json:"key"`
}

// runKillWorker is a worker process whose modules write a line into a file that
// outlives it: that line is their effect.
func runKillWorker(address string) error {
	quiet := slog.New(slog.DiscardHandler)
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	act := func(_ context.Context, in killInput) (map[string]any, error) {
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond) //nolint:gosec // kills fall before, in and after the effect
		file, err := os.OpenFile(os.Getenv(killLedgerEnv), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		_, err = file.WriteString(in.Key + "\n")
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond) //nolint:gosec // as above
		return map[string]any{"key": in.Key}, errors.Join(err, file.Close())
	}
	extra := map[string]any{durable.ModuleSettingsKey: map[string]any{"heartbeat_ms": killHeartbeatMS}}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{Logger: quiet})
	err = errors.Join(err,
		apcore.Register(registry, "kill.once", act, apcore.Spec{Description: "Acts once", Annotations: apcore.Annotations{Extra: extra}}),
		apcore.Register(registry, "kill.again", act, apcore.Spec{Description: "Acts again", Annotations: apcore.Annotations{Idempotent: true, Extra: extra}}))
	if err != nil {
		return err
	}
	c, err := client.Dial(client.Options{HostPort: address, Logger: log.NewStructuredLogger(quiet)})
	if err != nil {
		return err
	}
	defer c.Close()
	w, err := worker.New(c, os.Getenv(killQueueEnv), executor, worker.Options{})
	if err != nil {
		return err
	}
	ctx, stop := ossignal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return w.Run(ctx)
}

// killSite is a server on a file and one worker process at a time.
type killSite struct {
	t      *testing.T
	server *testsuite.Server
	opts   testsuite.ServerOptions
	ledger string
	queue  string
	worker *exec.Cmd
}

func (k *killSite) spawn() {
	k.t.Helper()
	k.worker = exec.CommandContext(context.WithoutCancel(k.t.Context()), os.Args[0])
	k.worker.Env = append(os.Environ(), killWorkerEnv+"="+k.server.Address(), killQueueEnv+"="+k.queue, killLedgerEnv+"="+k.ledger)
	k.worker.Stderr = os.Stderr
	must(k.t, k.worker.Start())
}

func (k *killSite) kill() {
	if k.worker != nil {
		_ = k.worker.Process.Kill()
		_ = k.worker.Wait() // how it ended is known
		k.worker = nil
	}
}

func (k *killSite) lines() map[string]int {
	k.t.Helper()
	text, err := os.ReadFile(k.ledger)
	must(k.t, err)
	lines := map[string]int{}
	for line := range strings.Lines(string(text)) {
		lines[strings.TrimSpace(line)]++
	}
	return lines
}

// Target 26 for tasks: workers and server die with SIGKILL again and again under
// 150 tasks. Every task ends, its record agrees with the ledger of the effects,
// none is lost, and none that must not runs twice.
func TestTasksSurviveKills(t *testing.T) {
	const tasks = 150
	directory := t.TempDir()
	k := &killSite{t: t, ledger: filepath.Join(directory, "ledger"), queue: "kill", opts: testsuite.ServerOptions{DBFile: filepath.Join(directory, "temporal.db")}}
	must(t, os.WriteFile(k.ledger, nil, 0o600))
	k.server = fileServer(t, k.opts)
	k.opts.Address = k.server.Address()
	manager, err := temporal.NewTaskManager(k.server.Client(t, client.Options{}), temporal.TaskManagerOptions{
		TaskStoreOptions: temporal.TaskStoreOptions{TaskQueue: k.queue, Timeout: 2 * time.Minute},
	})
	must(t, err)
	k.spawn()
	t.Cleanup(k.kill)

	ids := make([]string, tasks)
	var submitting sync.WaitGroup
	submitting.Go(func() {
		for i := range ids {
			ids[i] = k.submit(manager, i)
		}
	})
	for range 3 {
		time.Sleep(time.Duration(300+rand.IntN(700)) * time.Millisecond) //nolint:gosec // at a random moment
		k.kill()
		k.spawn()
	}
	k.server.Kill()
	k.server = fileServer(t, k.opts)
	submitting.Wait()
	time.Sleep(time.Second)
	k.kill()
	k.spawn()

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	outcomes := map[string]int{}
	for i, id := range ids {
		record, err := waitThrough(ctx, manager, id)
		must(t, err)
		outcomes[record.Task.ModuleID+" "+string(record.Task.Status)+" "+string(record.ErrorCode)]++
		k.check(record, key(i))
	}
	t.Log(outcomes)
	if n, err := manager.Store().Count(t.Context(), nil); err != nil || n != tasks {
		t.Errorf("%d tasks are counted, %v", n, err)
	}
}

func key(i int) string { return fmt.Sprintf("task-%03d", i) }

// submit goes on through the restart of the server; the request key keeps it from
// starting a task twice.
func (k *killSite) submit(manager *temporal.TaskManager, i int) string {
	module := []string{"kill.once", "kill.again"}[i%2]
	for {
		id, err := manager.Start(k.t.Context(), temporal.TaskSubmission{ModuleID: module, Inputs: map[string]any{"key": key(i)}, RequestKey: key(i)})
		if err == nil {
			time.Sleep(15 * time.Millisecond) // the tasks are spread over the kills
			return id
		}
		if k.t.Context().Err() != nil || !errors.Is(err, apcore.CodeTaskStoreUnavailable) {
			k.t.Errorf("submit: %v", err)
			return ""
		}
	}
}

func waitThrough(ctx context.Context, manager *temporal.TaskManager, id string) (*durable.TaskRecord, error) {
	for {
		record, err := manager.Wait(ctx, id)
		if err == nil || ctx.Err() != nil || !errors.Is(err, apcore.CodeTaskStoreUnavailable) {
			return record, err
		}
	}
}

// check compares a record with the effects.
func (k *killSite) check(record *durable.TaskRecord, key string) {
	k.t.Helper()
	effects := k.lines()[key]
	switch {
	case record.Task.Status == apcore.TaskCompleted && record.Task.Result["key"] == key && effects >= 1:
	case record.Task.Status == apcore.TaskFailed && record.ErrorCode == durable.CodeOutcomeUnknown && record.Task.ModuleID == "kill.once":
	default:
		k.t.Errorf("%s: %s with %d effects, %+v", key, record.Task.Status, effects, record)
	}
	if record.Task.ModuleID == "kill.once" && effects > 1 {
		k.t.Errorf("%s: a module that runs at most once had %d effects", key, effects)
	}
}
