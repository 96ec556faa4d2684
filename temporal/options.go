package temporal

import (
	"cmp"
	"strconv"
	"time"
	"unicode/utf8"

	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// CallOptions changes how the calls made with a context are run; set them with
// [WithCallOptions]. The zero value leaves everything to the module, and so does
// each zero field. No option makes a module run more than once that is neither
// readonly nor idempotent, but for AcceptRepeatedEffects.
type CallOptions struct {
	// TaskQueue of the workers that host the module; empty means what the module
	// says, or else the workflow's.
	TaskQueue string
	// StartToClose bounds one attempt; zero means the module's timer and a margin.
	StartToClose time.Duration
	// ScheduleToStart bounds the wait for a worker; zero means 1 h for a module that
	// runs at most once and none for others.
	ScheduleToStart time.Duration
	// ScheduleToClose bounds everything, waits and attempts; zero means 1 h or one
	// attempt for a module that repeats and none for others, which have but one.
	ScheduleToClose time.Duration
	// Heartbeat is how long a worker may give no sign of life; zero means 10 s.
	Heartbeat time.Duration
	// Attempts bounds the attempts of a safe or idempotent module; zero means 6.
	// It changes nothing for a module that runs at most once.
	Attempts int
	// RetryPolicy changes the back-off and names further error types that are never
	// retried; those of durable.NeverRetried stay. It is read, never written.
	// Its zero fields leave the default, so MaximumAttempts zero is not unlimited;
	// Attempts goes before MaximumAttempts.
	RetryPolicy *sdktemporal.RetryPolicy
	// Priority orders the waiting units of a queue, 1 first; FairnessKey and
	// FairnessWeight share its workers between those who wait. Zero means the
	// workflow's.
	Priority       int
	FairnessKey    string
	FairnessWeight float64
	// Execution says where the unit runs; a TaskQueue here means
	// durable.ExecutionActivity. It belongs to the workflow's code: changing it
	// under a run needs workflow.GetVersion.
	Execution durable.Execution
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
	// ApproveAtRoot shows the call's approvals at the root of the tree of workflows
	// too, where they can be decided as well as here.
	ApproveAtRoot bool
	// ParkUnknownOutcome makes a call whose outcome is unknown wait for an
	// operator's verdict (retry, done with this output, fail) instead of failing
	// with OUTCOME_UNKNOWN. The question is answered like an approval.
	ParkUnknownOutcome bool
	// ParkTimeout bounds that wait, after which the call fails with
	// OUTCOME_UNKNOWN; zero waits for ever.
	ParkTimeout time.Duration
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

// settings is the part that says how the unit is run.
func (o CallOptions) settings() durable.Settings {
	settings := durable.Settings{
		StartToClose: o.StartToClose, ScheduleToStart: o.ScheduleToStart, ScheduleToClose: o.ScheduleToClose, Heartbeat: o.Heartbeat,
		Attempts: o.Attempts, TaskQueue: o.TaskQueue, Priority: o.Priority, FairnessKey: o.FairnessKey, FairnessWeight: o.FairnessWeight,
		Execution: o.Execution,
	}
	if o.RetryPolicy == nil {
		return settings
	}
	settings.Backoff, settings.MaxBackoff = o.RetryPolicy.InitialInterval, o.RetryPolicy.MaximumInterval
	settings.BackoffCoefficient = o.RetryPolicy.BackoffCoefficient
	settings.Attempts = cmp.Or(o.Attempts, int(o.RetryPolicy.MaximumAttempts))
	for _, code := range o.RetryPolicy.NonRetryableErrorTypes {
		settings.NeverRetry = append(settings.NeverRetry, apcore.Code(code))
	}
	return settings
}

// optionNames maps the fields of settings that have another name here.
var optionNames = map[string]string{
	"Backoff": "RetryPolicy.InitialInterval", "MaxBackoff": "RetryPolicy.MaximumInterval",
	"BackoffCoefficient": "RetryPolicy.BackoffCoefficient", "NeverRetry": "RetryPolicy.NonRetryableErrorTypes",
}

// check finds options out of bounds before anything is scheduled: the server
// would refuse the command, and the workflow task would fail over and over.
func (o CallOptions) check(moduleID string, class durable.Class) error {
	for _, problem := range o.settings().Problems(class) {
		return badOption(moduleID, problem.Text(cmp.Or(optionNames[problem.Field], problem.Field)))
	}
	if o.ApprovalTimeout < 0 && o.ApprovalTimeout != durable.NoDeadline {
		return badOption(moduleID, "ApprovalTimeout is "+o.ApprovalTimeout.String()+": give zero for the worker's, NoDeadline for none or a positive one")
	}
	if o.ParkTimeout < 0 {
		return badOption(moduleID, "ParkTimeout is "+o.ParkTimeout.String()+": give zero to wait for ever or a positive one")
	}
	if text := o.IdempotencyKey; len(text) > maxKey || !utf8.ValidString(text) {
		return badOption(moduleID, "IdempotencyKey is a text of "+strconv.Itoa(len(text))+" bytes: give UTF-8 of at most "+strconv.Itoa(maxKey))
	}
	return nil
}

// maxKey keeps a business key below what other systems take as one.
const maxKey = 1000

func badOption(moduleID, why string) error {
	return apcore.NewError(apcore.CodeInvalidInput, "call of module %q: CallOptions.%s", moduleID, why).WithDetail("module_id", moduleID)
}

// over puts the options over what the module says of itself: a queue of the
// caller's takes the unit out of the workflow's worker.
func (o CallOptions) over(module durable.Settings) durable.Settings {
	settings := o.settings()
	settings.Execution = o.execution()
	return settings.Over(module)
}

// execution is where the caller wants the unit to run, empty if it does not say.
func (o CallOptions) execution() durable.Execution {
	if o.Execution == "" && o.TaskQueue != "" {
		return durable.ExecutionActivity
	}
	return o.Execution
}

// policy is how the call is run. Only the option that says so lets an
// at-most-once module repeat.
func (o CallOptions) policy(base durable.Policy, settings durable.Settings) durable.Policy {
	if o.AcceptRepeatedEffects {
		base = base.Accept()
	}
	policy := settings.Apply(base)
	policy.Park, policy.ParkTimeout = o.ParkUnknownOutcome, o.ParkTimeout
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
func activityOptions(policy durable.Policy, settings durable.Settings, summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              settings.TaskQueue,
		StartToCloseTimeout:    policy.StartToClose,
		ScheduleToStartTimeout: policy.ScheduleToStart,
		ScheduleToCloseTimeout: policy.ScheduleToClose,
		HeartbeatTimeout:       policy.Heartbeat,
		WaitForCancellation:    true,
		Summary:                summary,
		RetryPolicy:            retryPolicy(policy),
		Priority: sdktemporal.Priority{
			PriorityKey: settings.Priority, FairnessKey: settings.FairnessKey, FairnessWeight: float32(settings.FairnessWeight),
		},
	}
}

// localOptions is the same for a unit that runs in the workflow's own worker.
func localOptions(policy durable.Policy, summary string) workflow.LocalActivityOptions {
	return workflow.LocalActivityOptions{
		StartToCloseTimeout:    policy.StartToClose,
		ScheduleToCloseTimeout: policy.ScheduleToClose,
		RetryPolicy:            retryPolicy(policy),
		Summary:                summary,
	}
}

func retryPolicy(policy durable.Policy) *sdktemporal.RetryPolicy {
	return &sdktemporal.RetryPolicy{
		InitialInterval:        policy.Backoff,
		BackoffCoefficient:     policy.BackoffCoefficient,
		MaximumInterval:        policy.MaxBackoff,
		MaximumAttempts:        int32(policy.Attempts), //nolint:gosec // at most durable.MaxAttempts
		NonRetryableErrorTypes: policy.NonRetryable(),
	}
}
