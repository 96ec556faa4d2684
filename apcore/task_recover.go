package apcore

import (
	"context"
	"time"
)

// TaskRecovery says what becomes of a task that an earlier process left unfinished.
type TaskRecovery string

// The policies.
const (
	// RecoverIgnore leaves the record as it is.
	RecoverIgnore TaskRecovery = "ignore"
	// RecoverFail ends the task as failed.
	RecoverFail TaskRecovery = "fail"
	// RecoverResubmit ends the task as failed and submits the call again, as a new
	// task.
	RecoverResubmit TaskRecovery = "resubmit"
)

// Resubmission is what a record does not hold and a new submission needs; the
// application keeps it (apcore, durability pattern B).
type Resubmission struct {
	Inputs  map[string]any
	Context *Context
	Retry   *RetryConfig
}

// RecoveryPlan decides about one task that is pending or running in the store.
// The resubmission is read for [RecoverResubmit] only. An error ends the recovery.
type RecoveryPlan func(ctx context.Context, info TaskInfo) (TaskRecovery, Resubmission, error)

// Recovered reports what a recovery did; resubmitted tasks map the old id to the
// new one.
type Recovered struct {
	Ignored     []string
	Failed      []string
	Resubmitted map[string]string
}

// Recover applies a plan to every task that is pending or running in the store and
// that this manager does not run itself: step 3 of the standard's durability
// pattern B. Call it at start-up, before other processes of the same store could
// own what it finds: a record does not say who works on it.
//
// A record that ended meanwhile is left alone. The first error of plan or store
// ends it; what was done until then is reported all the same, and calling it again
// goes on with the rest. Running a task again may repeat an effect: only the plan
// knows whether that is all right. An unknown policy fails with
// GENERAL_INVALID_INPUT.
func (m *AsyncTaskManager) Recover(ctx context.Context, plan RecoveryPlan) (Recovered, error) {
	done := Recovered{Resubmitted: map[string]string{}}
	infos, err := m.ListTasks(ctx, nil)
	if err != nil {
		return done, err
	}
	for i := range infos {
		if infos[i].Status.Terminal() || m.task(infos[i].TaskID) != nil {
			continue
		}
		if err := m.recoverTask(ctx, infos[i], plan, &done); err != nil {
			return done, err
		}
	}
	return done, nil
}

func (m *AsyncTaskManager) recoverTask(ctx context.Context, info TaskInfo, plan RecoveryPlan, done *Recovered) error {
	policy, again, err := plan(ctx, info)
	if err != nil {
		return err
	}
	switch policy {
	case RecoverIgnore:
		done.Ignored = append(done.Ignored, info.TaskID)
		return nil
	case RecoverFail:
		ended, err := m.abandon(ctx, info.TaskID, "interrupted: the process that ran the task is gone")
		if ended {
			done.Failed = append(done.Failed, info.TaskID)
		}
		return err
	case RecoverResubmit:
		return m.resubmit(ctx, info, again, done)
	default:
		return NewError(CodeInvalidInput, "the plan for task %s is %q: give ignore, fail or resubmit", info.TaskID, policy)
	}
}

// resubmit ends the old task first, so that a crash in between leaves one that
// failed rather than one that runs twice.
func (m *AsyncTaskManager) resubmit(ctx context.Context, info TaskInfo, again Resubmission, done *Recovered) error {
	ended, err := m.abandon(ctx, info.TaskID, "interrupted: the process that ran the task is gone; it is submitted again")
	if err != nil || !ended {
		return err
	}
	id, err := m.Submit(ctx, info.ModuleID, again.Inputs, again.Context, again.Retry)
	if err != nil {
		return err
	}
	done.Resubmitted[info.TaskID] = id
	return nil
}

func (m *AsyncTaskManager) abandon(ctx context.Context, id, why string) (bool, error) {
	return m.update(ctx, m.foreign, id, func(info *TaskInfo) {
		info.Status, info.CompletedAt, info.Error = TaskFailed, new(epochSeconds(time.Now())), &why
	})
}
