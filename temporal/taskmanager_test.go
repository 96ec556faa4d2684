package temporal_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"go.temporal.io/api/enums/v1"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

// office is a worker whose modules write a ledger, with a task manager.
type office struct {
	*temporal.TaskManager
	clerk     *clerk
	name      string
	executor  *apcore.Executor
	book      ledger
	release   chan struct{}
	approvals *temporal.Approvals
}

type order struct {
	Fail int    `json:"fail,omitempty"` // so many times first
	How  string `json:"how,omitempty"`
	Card string `json:"card,omitempty" apcore:"sensitive"`
}

// newOffice hosts task.once (at most once), task.again (idempotent), task.gated
// (at most once, gated), each of which does what the order says.
func newOffice(t *testing.T, server *testsuite.Server, opts temporal.TaskManagerOptions) *office {
	t.Helper()
	o := &office{release: make(chan struct{}), name: uuid.NewString(), clerk: &clerk{server: server, queue: "office-" + uuid.NewString()}}
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	must(t, errors.Join(
		apcore.Register(registry, "task.once", o.work, apcore.Spec{Description: "Works once"}),
		apcore.Register(registry, "task.again", o.work, apcore.Spec{Description: "Works again", Annotations: apcore.Annotations{Idempotent: true}}),
		apcore.Register(registry, "task.gated", o.work, apcore.Spec{Description: "Is gated", Annotations: apcore.Annotations{RequiresApproval: true}}),
	))
	var err error
	o.executor, err = apcore.NewExecutor(registry, apcore.ExecutorOptions{ApprovalHandler: temporal.NewApprovalHandler(), Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	o.clerk.client = server.Client(t, clientOptions())
	o.clerk.work(t, o.executor)
	o.approvals, err = temporal.NewApprovals(o.clerk.client, temporal.ApprovalsOptions{Timeout: time.Minute})
	must(t, err)
	o.TaskManager = o.manager(t, opts)
	return o
}

func (o *office) manager(t *testing.T, opts temporal.TaskManagerOptions) *temporal.TaskManager {
	t.Helper()
	opts.TaskQueue, opts.Namespace, opts.Name = o.clerk.queue, o.clerk.server.Namespace(), o.name
	if opts.Timeout == 0 {
		opts.Timeout = time.Minute
	}
	m, err := temporal.NewTaskManager(o.clerk.client, opts)
	must(t, err)
	return m
}

func (o *office) work(ctx context.Context, in order) (map[string]any, error) {
	c, _ := apcore.FromContext(ctx)
	key, _ := c.Data().Get(durable.IdempotencyKey)
	o.book.write(fmt.Sprint(key))
	switch {
	case in.How == "wait":
		select {
		case <-o.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case in.How == "deaf":
		<-o.release
	case in.How == "fail", o.book.count() <= in.Fail:
		return nil, errors.New("boom " + in.Card)
	case in.How == "big":
		return map[string]any{"text": strings.Repeat("x", 20_000)}, nil
	}
	who := ""
	if identity := c.Identity(); identity != nil {
		who = identity.ID()
	}
	return map[string]any{"done": true, "who": who}, nil
}

func (o *office) submit(t *testing.T, submission temporal.TaskSubmission) string {
	t.Helper()
	id, err := o.Start(t.Context(), submission)
	must(t, err)
	return id
}

// until polls a task's record.
func (o *office) until(t *testing.T, id string, what func(*durable.TaskRecord) bool) *durable.TaskRecord {
	t.Helper()
	var record *durable.TaskRecord
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var err error
		if record, err = o.Store().Record(t.Context(), id); err == nil && record != nil && what(record) {
			return record
		}
	}
	t.Fatalf("task %s stays at %+v", id, record)
	return nil
}

func has(status apcore.TaskStatus) func(*durable.TaskRecord) bool {
	return func(record *durable.TaskRecord) bool { return record.Task.Status == status }
}

func (o *office) wait(t *testing.T, id string) *durable.TaskRecord {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	record, err := o.Wait(ctx, id)
	must(t, err)
	return record
}

func TestTaskCompletes(t *testing.T) {
	t.Parallel()
	o := newOffice(t, testsuite.DevServer(t), temporal.TaskManagerOptions{})
	maria := apcore.NewContext(apcore.ContextOptions{Identity: apcore.NewIdentity("maria", apcore.IdentityUser, nil, nil)})
	id, err := o.Submit(t.Context(), "task.once", map[string]any{"card": "4242424242424242"}, maria, nil)
	must(t, err)
	record := o.wait(t, id)
	info := &record.Task
	if info.Status != apcore.TaskCompleted || info.TaskID != id || info.ModuleID != "task.once" || info.StartedAt == nil || info.CompletedAt == nil ||
		*info.StartedAt < info.SubmittedAt-1 || *info.CompletedAt < *info.StartedAt || info.Error != nil {
		t.Errorf("record %+v", info)
	}
	result, err := o.GetResult(t.Context(), id)
	if diff := cmp.Diff(map[string]any{"done": true, "who": "maria"}, result); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if n := o.book.count(); n != 1 {
		t.Errorf("%d executions", n)
	}
	parsed, err := uuid.Parse(id)
	if err != nil || parsed.Version() != 4 {
		t.Errorf("task id %s: %v", id, err)
	}
	if text := string(mustEncode(t, record)); strings.Contains(text, "4242") {
		t.Errorf("the record holds an input: %s", text)
	}
	if ended, err := o.Cancel(t.Context(), id); ended || err != nil {
		t.Errorf("cancel of an ended task: %t, %v", ended, err)
	}
}

func mustEncode(t *testing.T, value any) []byte {
	t.Helper()
	text, err := apcore.EncodeJSON(value)
	must(t, err)
	return text
}

// A result larger than a head is listed by reference and read whole.
func TestLargeTaskResult(t *testing.T) {
	t.Parallel()
	o := newOffice(t, testsuite.DevServer(t), temporal.TaskManagerOptions{})
	id := o.submit(t, temporal.TaskSubmission{ModuleID: "task.once", Inputs: map[string]any{"how": "big"}})
	o.wait(t, id)
	result, err := o.GetResult(t.Context(), id)
	if text, _ := result["text"].(string); err != nil || len(text) != 20_000 {
		t.Errorf("a result of %d characters, %v", len(text), err)
	}
	infos, err := o.ListTasks(t.Context(), nil)
	if err != nil || len(infos) != 1 || infos[0].Result[durable.TaskResultRef] == nil {
		t.Errorf("listed %+.300v, %v", infos, err)
	}
}

// Unknown and malformed modules are no errors of the submission; codes arrive.
func TestTaskFails(t *testing.T) {
	t.Parallel()
	o := newOffice(t, testsuite.DevServer(t), temporal.TaskManagerOptions{})
	failing := o.submit(t, temporal.TaskSubmission{ModuleID: "task.once", Inputs: map[string]any{"how": "fail"}})
	malformed := o.submit(t, temporal.TaskSubmission{ModuleID: "No Module!"})
	for id, want := range map[string]apcore.Code{failing: apcore.CodeModuleExecuteError, malformed: apcore.CodeInvalidModuleID} {
		record := o.wait(t, id)
		if record.Task.Status != apcore.TaskFailed || record.ErrorCode != want || record.Task.Error == nil || record.Task.CompletedAt == nil || record.Task.Result != nil {
			t.Errorf("record %+v, want %s", record, want)
		}
		if _, err := o.GetResult(t.Context(), id); !errors.Is(err, apcore.CodeInvalidInput) || !strings.Contains(err.Error(), "is not completed (status=failed)") {
			t.Errorf("result: %v", err)
		}
	}
	if _, err := o.GetResult(t.Context(), "nobody"); !errors.Is(err, apcore.CodeInvalidInput) || !strings.Contains(err.Error(), "Task not found: nobody") {
		t.Errorf("an unknown task: %v", err)
	}
}

// The contract's retries with their exact pauses, one idempotency key, and the
// count to be seen while the task waits.
func TestTaskRetries(t *testing.T) {
	t.Parallel()
	o := newOffice(t, testsuite.DevServer(t), temporal.TaskManagerOptions{})
	retry := apcore.RetryConfig{MaxRetries: 3, RetryDelayMS: 300, BackoffMultiplier: 2, MaxRetryDelayMS: 500}
	id := o.submit(t, temporal.TaskSubmission{ModuleID: "task.again", Inputs: map[string]any{"fail": 2}, Retry: &retry})
	o.until(t, id, func(r *durable.TaskRecord) bool {
		return r.Task.Status == apcore.TaskPending && r.Task.RetryCount > 0 && r.NextAttemptAt != nil && r.Task.StartedAt != nil
	})
	record := o.wait(t, id)
	if record.Task.Status != apcore.TaskCompleted || record.Task.RetryCount != 2 || record.Task.MaxRetries != 3 {
		t.Errorf("record %+v", record)
	}
	lines := o.book.all()
	if len(lines) != 3 || lines[0] != lines[1] || lines[1] != lines[2] {
		t.Errorf("attempts %v", lines)
	}
	if diff := cmp.Diff([]time.Duration{300 * time.Millisecond, 500 * time.Millisecond}, o.timers(t, id)); diff != "" {
		t.Error(diff)
	}
	exhausted := o.submit(t, temporal.TaskSubmission{ModuleID: "task.again", Inputs: map[string]any{"how": "fail"}, Retry: &apcore.RetryConfig{MaxRetries: 1}})
	if record := o.wait(t, exhausted); record.Task.Status != apcore.TaskFailed || record.Task.RetryCount != 1 || o.book.count() != 5 {
		t.Errorf("record %+v after %d executions", record, o.book.count())
	}
}

func (o *office) timers(t *testing.T, id string) []time.Duration {
	t.Helper()
	var pauses []time.Duration
	for _, event := range testsuite.History(t, o.clerk.client, "apcore/tasks/"+o.name+"/"+id).Events {
		if event.EventType == enums.EVENT_TYPE_TIMER_STARTED {
			pauses = append(pauses, event.GetTimerStartedEventAttributes().StartToFireTimeout.AsDuration())
		}
	}
	return pauses
}

// A configured retry repeats no effect of a module that is neither readonly nor
// idempotent, unless the submission says so.
func TestRetryRespectsAtMostOnce(t *testing.T) {
	t.Parallel()
	o := newOffice(t, testsuite.DevServer(t), temporal.TaskManagerOptions{})
	retry := apcore.RetryConfig{MaxRetries: 2}
	inputs := map[string]any{"how": "fail"}
	record := o.wait(t, o.submit(t, temporal.TaskSubmission{ModuleID: "task.once", Inputs: inputs, Retry: &retry}))
	if record.Task.Status != apcore.TaskFailed || record.Task.RetryCount != 0 || o.book.count() != 1 {
		t.Errorf("record %+v after %d executions", record, o.book.count())
	}
	record = o.wait(t, o.submit(t, temporal.TaskSubmission{ModuleID: "task.once", Inputs: inputs, Retry: &retry, AcceptRepeatedEffects: true}))
	if record.Task.Status != apcore.TaskFailed || record.Task.RetryCount != 2 || o.book.count() != 1+3 {
		t.Errorf("record %+v after %d executions", record, o.book.count())
	}
}

// Target 38: a task that waits for an approval is pending and says for what.
func TestTaskWaitsForApproval(t *testing.T) {
	t.Parallel()
	o := newOffice(t, testsuite.DevServer(t), temporal.TaskManagerOptions{})
	id := o.submit(t, temporal.TaskSubmission{ModuleID: "task.gated"})
	record := o.until(t, id, func(r *durable.TaskRecord) bool { return r.InputRequired })
	if record.Task.Status != apcore.TaskPending || record.Approval == nil || record.Approval.ModuleID != "task.gated" || o.book.count() != 0 {
		t.Fatalf("record %+v after %d executions", record, o.book.count())
	}
	pending := apcore.TaskPending
	infos, err := o.ListTasks(t.Context(), &pending)
	if err != nil || len(infos) > 1 {
		t.Errorf("listed %v, %v", infos, err)
	}
	must(t, o.approvals.Decide(t.Context(), record.Approval.WorkflowID, durable.Decision{ApprovalID: record.Approval.ApprovalID, Status: apcore.ApprovalApproved, ApprovedBy: "ana"}))
	if record := o.wait(t, id); record.Task.Status != apcore.TaskCompleted || record.InputRequired || record.Approval != nil || o.book.count() != 1 {
		t.Errorf("record %+v after %d executions", record, o.book.count())
	}
	refused := o.submit(t, temporal.TaskSubmission{ModuleID: "task.gated", Retry: &apcore.RetryConfig{MaxRetries: 5}, AcceptRepeatedEffects: true})
	record = o.until(t, refused, func(r *durable.TaskRecord) bool { return r.InputRequired })
	must(t, o.approvals.Decide(t.Context(), record.Approval.WorkflowID, durable.Decision{ApprovalID: record.Approval.ApprovalID, Status: apcore.ApprovalRejected, ApprovedBy: "ana"}))
	if record := o.wait(t, refused); record.Task.Status != apcore.TaskFailed || record.ErrorCode != apcore.CodeApprovalDenied || record.Task.RetryCount != 0 || o.book.count() != 1 {
		t.Errorf("record %+v after %d executions", record, o.book.count())
	}
}

// One request key is one task, however often and from wherever it is submitted.
func TestRequestKey(t *testing.T) {
	t.Parallel()
	o := newOffice(t, testsuite.DevServer(t), temporal.TaskManagerOptions{})
	submission := temporal.TaskSubmission{ModuleID: "task.once", RequestKey: "invoice 7"}
	ids := make(chan string, 20)
	for range cap(ids) {
		m := o.manager(t, temporal.TaskManagerOptions{})
		go func() {
			id, err := m.Start(t.Context(), submission)
			if err != nil {
				t.Error(err)
			}
			ids <- id
		}()
	}
	first := <-ids
	for range cap(ids) - 1 {
		if id := <-ids; id != first {
			t.Errorf("ids %s and %s", first, id)
		}
	}
	o.wait(t, first)
	id := o.submit(t, submission)
	if o.wait(t, id); id != first || o.book.count() != 1 {
		t.Errorf("id %s after its end, %d executions", id, o.book.count())
	}
	submission.Inputs = map[string]any{"how": "fail"}
	if _, err := o.Start(t.Context(), submission); !errors.Is(err, apcore.CodeInvalidInput) || !strings.Contains(err.Error(), "invoice 7") {
		t.Errorf("the key with other inputs: %v", err)
	}
}

func TestSubmissionsOutOfBounds(t *testing.T) {
	t.Parallel()
	o := newOffice(t, testsuite.DevServer(t), temporal.TaskManagerOptions{})
	for name, test := range map[string]struct {
		submission temporal.TaskSubmission
		want       apcore.Code
	}{
		"no JSON":        {temporal.TaskSubmission{ModuleID: "task.once", Inputs: map[string]any{"x": make(chan int)}}, apcore.CodeInvalidInput},
		"own token":      {temporal.TaskSubmission{ModuleID: "task.once", Inputs: map[string]any{"_approval_token": "x"}}, durable.CodeTokenRefused},
		"too large":      {temporal.TaskSubmission{ModuleID: "task.once", Inputs: map[string]any{"x": strings.Repeat("x", 2<<20)}}, durable.CodePayloadTooLarge},
		"retry":          {temporal.TaskSubmission{ModuleID: "task.once", Retry: &apcore.RetryConfig{MaxRetries: -1}}, apcore.CodeInvalidInput},
		"timeout":        {temporal.TaskSubmission{ModuleID: "task.once", Timeout: -1}, apcore.CodeInvalidInput},
		"priority":       {temporal.TaskSubmission{ModuleID: "task.once", Priority: 9}, apcore.CodeInvalidInput},
		"fairness":       {temporal.TaskSubmission{ModuleID: "task.once", FairnessKey: strings.Repeat("x", 65)}, apcore.CodeInvalidInput},
		"weight":         {temporal.TaskSubmission{ModuleID: "task.once", FairnessWeight: -1}, apcore.CodeInvalidInput},
		"approval":       {temporal.TaskSubmission{ModuleID: "task.once", ApprovalTimeout: -5}, apcore.CodeInvalidInput},
		"long key":       {temporal.TaskSubmission{ModuleID: "task.once", RequestKey: strings.Repeat("x", 1001)}, apcore.CodeInvalidInput},
		"long module id": {temporal.TaskSubmission{ModuleID: strings.Repeat("x", 1001)}, apcore.CodeInvalidInput},
	} {
		if id, err := o.Start(t.Context(), test.submission); !errors.Is(err, test.want) || id != "" {
			t.Errorf("%s: %q, %v", name, id, err)
		}
	}
}
