package temporal_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// benchSizesEnv lists how many records the store holds, "1000,10000" by default.
const benchSizesEnv = "TASK_BENCH_SIZES"

// BenchmarkTasks measures the store and the manager at growing numbers of records
// on a server with a file, each operation in turn with the raw Temporal calls that
// do the same. It reports medians, since means move with the machine.
func BenchmarkTasks(b *testing.B) {
	sizes := os.Getenv(benchSizesEnv)
	if sizes == "" {
		sizes = "1000,10000"
	}
	bench := newTaskBench(b)
	for text := range strings.SplitSeq(sizes, ",") {
		size, err := strconv.Atoi(text)
		must(b, err)
		bench.fill(b, size)
		b.Run(fmt.Sprintf("records=%d/save", size), bench.save)
		b.Run(fmt.Sprintf("records=%d/get", size), bench.get)
		b.Run(fmt.Sprintf("records=%d/page", size), bench.page)
		b.Run(fmt.Sprintf("records=%d/count", size), bench.count)
		b.Run(fmt.Sprintf("records=%d/submit-to-result", size), bench.submit)
		b.Run(fmt.Sprintf("records=%d/list", size), bench.list)
	}
}

type taskBench struct {
	client  client.Client
	queue   string
	manager *temporal.TaskManager
	store   *temporal.TaskStore
	filled  int
}

func newTaskBench(b *testing.B) *taskBench {
	b.Helper()
	attributes := map[string]string{}
	for name, kind := range temporal.SearchAttributes() {
		attributes[name] = kind.String()
	}
	server := testsuite.StartServer(b, testsuite.ServerOptions{
		DBFile: b.TempDir() + "/temporal.db", SearchAttributes: attributes, DynamicConfig: map[string]string{"frontend.namespaceRPS.visibility": "10000"},
	})
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	must(b, apcore.Register(registry, "bench.echo", func(_ context.Context, in map[string]any) (map[string]any, error) { return in, nil }, apcore.Spec{Description: "Echoes"}))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{Logger: slog.New(slog.DiscardHandler)})
	must(b, err)
	t := &taskBench{client: server.Client(b, client.Options{}), queue: "bench"}
	w, err := worker.New(t.client, t.queue, executor, worker.Options{StopTimeout: time.Second})
	must(b, err)
	w.Registry().RegisterWorkflowWithOptions(bareRecord, workflow.RegisterOptions{Name: "bare-record"})
	w.Registry().RegisterWorkflowWithOptions(bareTask, workflow.RegisterOptions{Name: "bare-task"})
	w.Registry().RegisterActivityWithOptions(func(_ context.Context, in map[string]any) (map[string]any, error) { return in, nil }, activity.RegisterOptions{Name: "bare-echo"})
	must(b, w.Start())
	b.Cleanup(w.Stop)
	t.manager, err = temporal.NewTaskManager(t.client, temporal.TaskManagerOptions{TaskStoreOptions: temporal.TaskStoreOptions{TaskQueue: t.queue, Timeout: time.Minute}})
	must(b, err)
	t.store = t.manager.Store()
	return t
}

// bareRecord answers one update and returns what it was started with.
func bareRecord(ctx workflow.Context, value apcore.TaskInfo) (*apcore.TaskInfo, error) {
	done := false
	err := workflow.SetUpdateHandler(ctx, "set", func(_ workflow.Context, _ apcore.TaskInfo) error {
		done = true
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &value, workflow.Await(ctx, func() bool { return done && workflow.AllHandlersFinished(ctx) })
}

// bareTask runs one activity and shows before and after it how it stands.
func bareTask(ctx workflow.Context, in map[string]any) (map[string]any, error) {
	var out map[string]any
	activities := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	err := show(ctx, apcore.TaskRunning)
	if err == nil {
		err = workflow.ExecuteActivity(activities, "bare-echo", in).Get(ctx, &out)
	}
	if err == nil {
		err = show(ctx, apcore.TaskCompleted)
	}
	return out, err
}

func show(ctx workflow.Context, status apcore.TaskStatus) error {
	if err := workflow.UpsertMemo(ctx, map[string]any{"task": endedTask("task", status)}); err != nil {
		return err
	}
	return workflow.UpsertTypedSearchAttributes(ctx, bareStatus.ValueSet(string(status)), bareEnd.ValueSet(1.5))
}

// What the raw calls set is what the store and the tasks set, under other values.
var (
	bareStatus = sdktemporal.NewSearchAttributeKeyKeyword(durable.SearchTaskStatus)
	bareStore  = sdktemporal.NewSearchAttributeKeyKeyword(durable.SearchTaskStore)
	bareModule = sdktemporal.NewSearchAttributeKeyKeyword(durable.SearchModuleID)
	bareEnd    = sdktemporal.NewSearchAttributeKeyFloat64(durable.SearchTaskEnd)
)

func (t *taskBench) bare() client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID: uuid.NewString(), TaskQueue: t.queue, WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		Memo: map[string]any{"task": endedTask("task", apcore.TaskCompleted)},
		TypedSearchAttributes: sdktemporal.NewSearchAttributes(bareStatus.ValueSet("completed"), bareStore.ValueSet("bare"),
			bareModule.ValueSet("bench.echo"), bareEnd.ValueSet(1.5)),
	}
}

// fill brings the store to a number of ended records, 32 at a time.
func (t *taskBench) fill(b *testing.B, size int) {
	b.Helper()
	start, from := time.Now(), t.filled
	next := make(chan int)
	errs := make(chan error, 32)
	for range cap(errs) {
		go func() {
			var failed error
			for i := range next {
				if err := t.store.Save(b.Context(), endedTask("filled-"+strconv.Itoa(i), apcore.TaskCompleted)); err != nil {
					failed = err
				}
			}
			errs <- failed
		}()
	}
	for ; t.filled < size; t.filled++ {
		next <- t.filled
	}
	close(next)
	for range cap(errs) {
		must(b, <-errs)
	}
	took := time.Since(start)
	b.Logf("%d records were saved in %v, %.0f a second", size-from, took, float64(size-from)/took.Seconds())
}

// pair times ours and raw in turn.
func pair(b *testing.B, ours, raw func() error) {
	b.Helper()
	var times [2][]time.Duration
	for b.Loop() {
		for i, do := range []func() error{ours, raw} {
			start := time.Now()
			must(b, do())
			times[i] = append(times[i], time.Since(start))
		}
	}
	a, r := median(times[0]), median(times[1])
	b.ReportMetric(float64(a.Microseconds()), "ours-µs")
	b.ReportMetric(float64(r.Microseconds()), "raw-µs")
	b.ReportMetric(float64(a)/float64(r), "ratio")
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

func (t *taskBench) save(b *testing.B) {
	pair(b, func() error { return t.store.Save(b.Context(), endedTask(uuid.NewString(), apcore.TaskCompleted)) },
		func() error {
			info := endedTask("task", apcore.TaskCompleted)
			start := t.client.NewWithStartWorkflowOperation(t.bare(), "bare-record", info)
			handle, err := t.client.UpdateWithStartWorkflow(b.Context(), client.UpdateWithStartWorkflowOptions{StartWorkflowOperation: start, UpdateOptions: client.UpdateWorkflowOptions{
				UpdateName: "set", Args: []any{info}, WaitForStage: client.WorkflowUpdateStageCompleted,
			}})
			if err != nil {
				return err
			}
			return handle.Get(b.Context(), nil)
		})
}

func (t *taskBench) get(b *testing.B) {
	id := "filled-" + strconv.Itoa(t.filled/2)
	pair(b, func() error {
		_, err := t.store.Get(b.Context(), id)
		return err
	}, func() error {
		_, err := t.client.DescribeWorkflow(b.Context(), durable.Namer{}.TaskID(temporal.DefaultTaskStoreName, id), "")
		return err
	})
}

const benchQuery = "ApcoreTaskStore = 'tasks' AND ExecutionStatus != 'ContinuedAsNew'"

func (t *taskBench) page(b *testing.B) {
	pair(b, func() error {
		for page, err := range t.store.Pages(b.Context(), nil) {
			if err != nil || len(page) < 500 {
				return fmt.Errorf("a page of %d: %w", len(page), err)
			}
			break
		}
		return nil
	}, func() error {
		_, err := t.client.ListWorkflow(b.Context(), &workflowservice.ListWorkflowExecutionsRequest{PageSize: 500, Query: benchQuery})
		return err
	})
}

func (t *taskBench) count(b *testing.B) {
	pair(b, func() error {
		_, err := t.store.Count(b.Context(), nil)
		return err
	}, func() error {
		_, err := t.client.CountWorkflow(b.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: benchQuery})
		return err
	})
}

func (t *taskBench) submit(b *testing.B) {
	inputs := map[string]any{"text": "x"}
	pair(b, func() error {
		id, err := t.manager.Submit(b.Context(), "bench.echo", inputs, nil, nil)
		if err == nil {
			_, err = t.manager.Wait(b.Context(), id)
		}
		return err
	}, func() error {
		run, err := t.client.ExecuteWorkflow(b.Context(), t.bare(), "bare-task", inputs)
		if err != nil {
			return err
		}
		return run.Get(b.Context(), nil)
	})
}

// list reads every record of the store, page by page as the raw calls do.
func (t *taskBench) list(b *testing.B) {
	pair(b, func() error {
		infos, err := t.store.List(b.Context(), nil)
		if err == nil && len(infos) < t.filled {
			err = fmt.Errorf("%d records", len(infos))
		}
		return err
	}, func() error {
		request := &workflowservice.ListWorkflowExecutionsRequest{PageSize: 500, Query: benchQuery}
		for {
			answer, err := t.client.ListWorkflow(b.Context(), request)
			if err != nil || len(answer.GetNextPageToken()) == 0 {
				return err
			}
			request.NextPageToken = answer.GetNextPageToken()
		}
	})
}
