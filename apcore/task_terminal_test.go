package apcore_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// byModule approves calls of work.approved and lets the others wait.
type byModule struct{}

func (byModule) RequestApproval(_ context.Context, request *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
	if request.ModuleID == "work.approved" {
		return &apcore.ApprovalResult{Status: apcore.ApprovalApproved}, nil
	}
	return &apcore.ApprovalResult{Status: apcore.ApprovalPending, ApprovalID: "id"}, nil
}

func (byModule) CheckApproval(context.Context, string) (*apcore.ApprovalResult, error) {
	return &apcore.ApprovalResult{Status: apcore.ApprovalRejected}, nil
}

// Scenario 78: 1,000 rounds of cancel racing with completion, failure, approval
// and timeout. Exactly one end sticks, the return value of Cancel tells whether
// it was this call, and a module that has run is never shown as one that did not.
// Run with -race.
func TestTaskCancelRacesWithTheEnd(t *testing.T) {
	ends := []struct {
		id  string
		end apcore.TaskStatus
	}{
		{"work.quick", apcore.TaskCompleted}, {"work.fails", apcore.TaskFailed}, {"work.approved", apcore.TaskCompleted},
		{"work.pending", apcore.TaskFailed}, {"work.late", apcore.TaskFailed},
	}
	var ran sync.Map // rounds whose module was entered
	effect := func(failure error) execute {
		return func(_ context.Context, in obj, _ *apcore.Context) (obj, error) {
			ran.Store(in["round"], true)
			return obj{}, failure
		}
	}
	h := newHost(t, apcore.ExecutorOptions{ApprovalHandler: byModule{}})
	h.module("work.quick", effect(nil)).module("work.fails", effect(apcore.NewError("WORK_FAILED", "failed"))).
		module("work.approved", effect(nil), gated).module("work.pending", effect(nil), gated)
	must(t, apcore.Register(h.registry, "work.late", func(ctx context.Context, in obj) (obj, error) {
		ran.Store(in["round"], true)
		<-ctx.Done()
		return nil, ctx.Err()
	}, apcore.Spec{Description: "Is late", Timeout: time.Microsecond}))
	m := newTaskManager(t, h, apcore.AsyncTaskOptions{Store: yieldingTaskStore{apcore.NewInMemoryTaskStore()}})
	seen, firsts := map[string]int{}, []apcore.TaskInfo{}
	for round := range 1000 {
		kind := ends[round%len(ends)]
		task, err := m.Submit(t.Context(), kind.id, obj{"round": round}, nil, nil)
		must(t, err)
		cancelled := raceToCancel(t, m, task, round)
		first := wantTerminal(t, m, task)
		want := kind.end
		if cancelled == 1 {
			want = apcore.TaskCancelled
		}
		if cancelled > 1 || first.Status != want {
			t.Fatalf("round %d, %s: cancelled %d times, then %s", round, kind.id, cancelled, first.Status)
		}
		if _, entered := ran.Load(round); entered && first.StartedAt == nil {
			t.Fatalf("round %d, %s: the module ran but the record says it never started: %v", round, kind.id, wire(first))
		}
		seen[kind.id+" "+string(first.Status)]++
		firsts = append(firsts, first)
	}
	if err := m.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	for round, first := range firsts {
		if last := wantTerminal(t, m, first.TaskID); !equalJSON(last, first) {
			t.Errorf("round %d: %v became %v", round, wire(first), wire(last))
		}
	}
	t.Logf("ends: %v", seen)
}

// raceToCancel lets two goroutines cancel a task, at once or, in every other group
// of rounds, a little after it has started. It returns how many of them did.
func raceToCancel(t *testing.T, m *apcore.AsyncTaskManager, task string, round int) int {
	t.Helper()
	var cancelled atomic.Int32
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for started := round/5%2 == 0; !started; {
				info, err := m.GetStatus(t.Context(), task)
				started = err != nil || info.Status != apcore.TaskPending
			}
			for range round % 10 {
				runtime.Gosched() // moves the race along
			}
			did, err := m.Cancel(t.Context(), task)
			if err != nil {
				t.Error(err)
			}
			if did {
				cancelled.Add(1)
			}
		})
	}
	group.Wait()
	return int(cancelled.Load())
}
