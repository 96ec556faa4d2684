package temporal

import (
	"time"

	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// CallOptions changes how the calls made with a context are run; set them with
// [WithCallOptions]. The zero value leaves everything to the module.
type CallOptions struct {
	// TaskQueue of the workers that host the module; empty means the workflow's.
	TaskQueue string
	// StartToClose bounds one attempt; zero means the module's timer and a margin.
	StartToClose time.Duration
	// Heartbeat is how long a worker may give no sign of life; zero means 10 s.
	Heartbeat time.Duration
	// Attempts bounds the attempts of a safe or idempotent module; zero means 6.
	// It changes nothing for a module that runs at most once.
	Attempts int
	// AcceptRepeatedEffects lets a module that is neither readonly nor idempotent
	// run again after a failure, with Attempts, although its effect may then
	// happen twice.
	AcceptRepeatedEffects bool
	// ApprovalTimeout is how long an approval may take; zero leaves it to the
	// worker (24 h), durable.NoDeadline waits for ever.
	ApprovalTimeout time.Duration
	// IdempotencyKey is a business key that stands for the call; empty means the
	// call id. Set it for one call only.
	IdempotencyKey string
	// VersionHint names a wanted version of the module.
	VersionHint string
}

type callOptionsKey struct{}

// WithCallOptions returns a context whose calls use these options instead of
// those set before. Options out of bounds make the calls fail with
// GENERAL_INVALID_INPUT.
func WithCallOptions(ctx workflow.Context, opts CallOptions) workflow.Context {
	return workflow.WithValue(ctx, callOptionsKey{}, opts)
}

func callOptions(ctx workflow.Context) CallOptions {
	opts, _ := ctx.Value(callOptionsKey{}).(CallOptions)
	return opts
}

func (o CallOptions) validate(moduleID string) error {
	for _, bound := range []struct {
		name  string
		value time.Duration
	}{{"StartToClose", o.StartToClose}, {"Heartbeat", o.Heartbeat}} {
		if bound.value < 0 {
			return apcore.NewError(apcore.CodeInvalidInput, "CallOptions.%s of module %q is %v: give zero for the default or a positive one", bound.name, moduleID, bound.value)
		}
	}
	if o.Attempts < 0 || o.Attempts > maxAttempts {
		return apcore.NewError(apcore.CodeInvalidInput, "CallOptions.Attempts of module %q is %d: give 1 to %d, or zero for %d", moduleID, o.Attempts, maxAttempts, durable.DefaultAttempts)
	}
	if o.ApprovalTimeout < 0 && o.ApprovalTimeout != durable.NoDeadline {
		return apcore.NewError(apcore.CodeInvalidInput, "CallOptions.ApprovalTimeout of module %q is %v: give zero for the worker's, NoDeadline for none or a positive one", moduleID, o.ApprovalTimeout)
	}
	return nil
}

const maxAttempts = 1000

// apply puts the options over a module's policy. Only the option that says so
// lets an at-most-once module repeat.
func (o CallOptions) apply(policy durable.Policy) durable.Policy {
	if o.AcceptRepeatedEffects && !policy.Class.Repeats() {
		accepted := durable.PolicyFor(durable.ClassIdempotent, durable.DefaultScheduleToClose)
		accepted.StartToClose, accepted.Heartbeat = policy.StartToClose, policy.Heartbeat
		policy = accepted
	}
	if o.StartToClose > 0 {
		policy.StartToClose = o.StartToClose
	}
	if o.Heartbeat > 0 {
		policy.Heartbeat = o.Heartbeat
	}
	if o.Attempts > 0 && policy.Class.Repeats() {
		policy.Attempts = o.Attempts
	}
	if policy.ScheduleToClose > 0 {
		policy.ScheduleToClose = max(policy.ScheduleToClose, policy.StartToClose)
	}
	return policy
}

func (o CallOptions) approvalTimeoutMS() int64 {
	if o.ApprovalTimeout == durable.NoDeadline {
		return -1
	}
	return o.ApprovalTimeout.Milliseconds()
}

// activityOptions turns a policy into Temporal's terms. An at-most-once call
// has exactly one attempt, so the server can never run it twice.
func activityOptions(policy durable.Policy, queue, summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              queue,
		StartToCloseTimeout:    policy.StartToClose,
		ScheduleToStartTimeout: policy.ScheduleToStart,
		ScheduleToCloseTimeout: policy.ScheduleToClose,
		HeartbeatTimeout:       policy.Heartbeat,
		WaitForCancellation:    true,
		Summary:                summary,
		RetryPolicy: &sdktemporal.RetryPolicy{
			InitialInterval:        policy.Backoff,
			BackoffCoefficient:     2,
			MaximumInterval:        policy.MaxBackoff,
			MaximumAttempts:        int32(policy.Attempts), //nolint:gosec // at most maxAttempts
			NonRetryableErrorTypes: durable.NeverRetried(),
		},
	}
}
