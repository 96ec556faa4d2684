package temporal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	sdktestsuite "go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

// storm is the state of a run that makes many gated calls and continues as new
// now and then, in the middle of whatever is going on.
type storm struct {
	Seed  uint64  `json:"seed"`
	Run   int     `json:"run"`
	Next  int64   `json:"next"`
	Total int64   `json:"total"`
	Open  []int64 `json:"open"` // amounts whose call is not done
	Paid  int     `json:"paid"`
	No    int     `json:"no"`
}

const stormWidth = 20

// Storm keeps up to twenty calls open. After a random number of them is done it
// hands the rest over.
func Storm(ctx workflow.Context, s storm) (storm, error) {
	random := rand.New(rand.NewPCG(s.Seed, uint64(s.Run))) //nolint:gosec // from the input: the same on replay
	calls := map[int64]*temporal.Future[map[string]any]{}
	for {
		for len(s.Open) < stormWidth && s.Next < s.Total {
			s.Open = append(s.Open, s.Next)
			s.Next++
		}
		if len(s.Open) == 0 {
			return s, nil
		}
		selector := workflow.NewSelector(ctx)
		for _, amount := range s.Open {
			if calls[amount] == nil {
				calls[amount] = temporal.CallAsync[map[string]any](ctx, "pay.transfer", transfer{To: "A", Amount: amount})
			}
			selector.AddFuture(calls[amount].Done(), func(workflow.Future) {})
		}
		selector.Select(ctx)
		var open []int64
		for _, amount := range s.Open {
			if !calls[amount].IsReady() {
				open = append(open, amount)
				continue
			}
			switch _, err := calls[amount].Get(ctx); {
			case err == nil:
				s.Paid++
			case errors.Is(err, apcore.CodeApprovalDenied):
				s.No++
			default:
				return s, err
			}
		}
		s.Open = open
		if random.IntN(25) == 0 {
			s.Run++
			return s, temporal.ContinueAsNew(ctx, Storm, s)
		}
	}
}

// crowd decides about every approval that was asked, once or more, at random
// moments; what it says first counts.
type crowd struct {
	durable.ApprovalHandler
	mu     sync.Mutex
	random *rand.Rand
	asked  []string
	old    []string // about which something was said
}

// RequestApproval notes who asks.
func (c *crowd) RequestApproval(ctx context.Context, request *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
	result, err := c.ApprovalHandler.RequestApproval(ctx, request)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, result.ApprovalID)
	return result, err
}

// speak says something about each new approval sooner or later, and something
// else about old ones.
func (c *crowd) speak(env *sdktestsuite.TestWorkflowEnvironment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var silent []string
	for _, id := range c.asked {
		if c.random.IntN(3) > 0 {
			silent = append(silent, id)
			continue
		}
		status := apcore.ApprovalApproved
		if c.random.IntN(10) == 0 {
			status = apcore.ApprovalRejected
		}
		env.SignalWorkflow("apcore/approval", decision(id, status))
		c.old = append(c.old, id)
	}
	c.asked = silent
	for range min(len(c.old), c.random.IntN(4)) {
		id := c.old[len(c.old)-1-c.random.IntN(min(len(c.old), stormWidth))]
		env.SignalWorkflow("apcore/approval", decision(id, apcore.ApprovalApproved))
	}
}

// repeat says the latest things once more: the test environment drops signals
// that arrive while a run ends, which a server does not.
func (c *crowd) repeat() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, c.old[max(0, len(c.old)-2*stormWidth):]...)
}

// Target 37, scenario 16, pitfall 17: decisions arrive at random while runs
// continue as new: none is lost, nothing happens twice, and nothing happens that
// nobody approved.
func TestDecisionStormOverContinueAsNew(t *testing.T) {
	t.Parallel()
	total := int64(10_000)
	if testing.Short() || underRace {
		total = 1000
	}
	book := &ledger{}
	people := &crowd{random: rand.New(rand.NewPCG(1, 2))} //nolint:gosec // a test that can be repeated
	state, runs := storm{Seed: 7, Total: total}, 0
	var header = (*workflow.ContinueAsNewError)(nil)
	for {
		env := testsuite.NewEnvironment(t, newExecutor(t, book, apcore.ExecutorOptions{ApprovalHandler: people}))
		env.RegisterWorkflow(Storm)
		env.SetStartWorkflowOptions(client.StartWorkflowOptions{ID: fmt.Sprintf("storm-%d", runs), WorkflowRunTimeout: 24 * time.Hour})
		env.SetTestTimeout(time.Minute)
		if header != nil {
			env.SetHeader(header.Header)
			people.repeat()
		}
		var tick func()
		tick = func() {
			people.speak(env)
			env.RegisterDelayedCallback(tick, time.Second)
		}
		env.RegisterDelayedCallback(tick, time.Duration(people.random.IntN(1000))*time.Millisecond)
		env.ExecuteWorkflow(Storm, state)
		runs++
		err := env.GetWorkflowError()
		if header = nil; errors.As(err, &header) {
			must(t, converter.GetDefaultDataConverter().FromPayloads(header.Input, &state))
			continue
		}
		must(t, err)
		must(t, env.GetWorkflowResult(&state))
		break
	}
	lines := map[string]int{}
	for _, line := range book.all() {
		if lines[line]++; lines[line] > 1 {
			t.Errorf("%s happened twice", line)
		}
	}
	if int64(state.Paid+state.No) != total || len(lines) != state.Paid || state.No == 0 {
		t.Errorf("%d paid, %d rejected, %d effects, of %d calls", state.Paid, state.No, len(lines), total)
	}
	if int64(runs) < total/1000 {
		t.Errorf("only %d runs", runs)
	}
	t.Logf("%d calls in %d runs, %d rejected", total, runs, state.No)
}
