package durable

import (
	"cmp"
	"slices"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Class says what repeating a call may cost.
type Class string

// The three classes.
const (
	// ClassSafe: readonly and not destructive; repeating changes nothing.
	ClassSafe Class = "safe"
	// ClassIdempotent: repeating with the same idempotency key has one effect.
	ClassIdempotent Class = "idempotent"
	// ClassAtMostOnce: everything else, an unknown module included. A call that
	// may have started is never repeated.
	ClassAtMostOnce Class = "at_most_once"
)

// ClassOf reads the class from a module's annotations; nil means the module is
// unknown. Contradictions fall to the safer class.
func ClassOf(annotations *apcore.Annotations) Class {
	switch {
	case annotations == nil:
		return ClassAtMostOnce
	case annotations.Readonly && !annotations.Destructive:
		return ClassSafe
	case annotations.Idempotent:
		return ClassIdempotent
	default:
		return ClassAtMostOnce
	}
}

// Contradiction names what does not fit together in annotations, empty if all
// does.
func Contradiction(annotations apcore.Annotations) string {
	if annotations.Readonly && annotations.Destructive {
		return "readonly and destructive exclude each other; the module counts as destructive"
	}
	return ""
}

// Repeats reports whether a call of the class may run again after it started.
func (c Class) Repeats() bool { return c == ClassSafe || c == ClassIdempotent }

// Policy is how an engine runs the unit of a call. Nothing in it is unlimited.
type Policy struct {
	Class Class
	// Attempts is how often the engine itself may run the unit; 1 for at most
	// once, whatever failed.
	Attempts int
	// Redos is how often [Run] may schedule the unit anew after a failure that
	// provably came before the module started.
	Redos int
	// Backoff is the wait before the second run; it grows by BackoffCoefficient up
	// to MaxBackoff.
	Backoff            time.Duration
	BackoffCoefficient float64
	MaxBackoff         time.Duration
	// NeverRetry are codes that end the call at once, beside [NeverRetried].
	NeverRetry []apcore.Code
	// StartToClose bounds one attempt.
	StartToClose time.Duration
	// ScheduleToStart bounds the wait for a worker of at-most-once calls: when it
	// runs out, the module certainly did not start.
	ScheduleToStart time.Duration
	// ScheduleToClose bounds all attempts together; zero for at most once.
	ScheduleToClose time.Duration
	// Heartbeat is how long the engine waits for a sign of life.
	Heartbeat time.Duration
	// Park lets [Run] ask an operator about an unknown outcome, at most for
	// ParkTimeout; zero asks for ever.
	Park        bool
	ParkTimeout time.Duration
}

// Defaults of [Policy].
const (
	DefaultAttempts        = 6
	DefaultBackoff         = time.Second
	DefaultCoefficient     = 2.0
	DefaultMaxBackoff      = time.Minute
	DefaultScheduleToClose = time.Hour
	DefaultHeartbeat       = 10 * time.Second
	// timeoutMargin lets the executor's own timer fire first, so that the error
	// is a typed MODULE_TIMEOUT.
	timeoutMargin = 10 * time.Second
)

// PolicyFor derives the policy of a module. moduleTimeout is the module's timer;
// apcore.NoTimeout means it has none.
func PolicyFor(class Class, moduleTimeout time.Duration) Policy {
	policy := Policy{
		Class: class, Attempts: 1, Redos: DefaultAttempts - 1,
		Backoff: DefaultBackoff, BackoffCoefficient: DefaultCoefficient, MaxBackoff: DefaultMaxBackoff, Heartbeat: DefaultHeartbeat,
	}
	policy.StartToClose = DefaultScheduleToClose
	if moduleTimeout > 0 {
		policy.StartToClose = moduleTimeout + timeoutMargin
	}
	if class.Repeats() {
		policy.Attempts, policy.Redos = DefaultAttempts, 0
		policy.ScheduleToClose = max(DefaultScheduleToClose, policy.StartToClose)
	} else {
		policy.ScheduleToStart = DefaultScheduleToClose
	}
	return policy
}

// For returns how the unit of a request is run. Asking for approval has no
// effect, so it is repeated like a safe call even if the module is not.
func (p Policy) For(request CallRequest) Policy {
	if !request.Ask || p.Class.Repeats() {
		return p
	}
	asking := PolicyFor(ClassSafe, NoDeadline)
	asking.StartToClose, asking.Heartbeat = p.StartToClose, p.Heartbeat
	asking.Backoff, asking.BackoffCoefficient, asking.MaxBackoff = p.Backoff, p.BackoffCoefficient, p.MaxBackoff
	asking.NeverRetry = p.NeverRetry
	asking.ScheduleToClose = max(asking.ScheduleToClose, asking.StartToClose)
	return asking
}

// Accept returns the policy of a caller who accepts repeated effects: that of an
// idempotent module, with the bounds of one attempt kept.
func (p Policy) Accept() Policy {
	if p.Class.Repeats() {
		return p
	}
	accepted := PolicyFor(ClassIdempotent, DefaultScheduleToClose)
	accepted.StartToClose, accepted.Heartbeat = p.StartToClose, p.Heartbeat
	accepted.ScheduleToClose = max(DefaultScheduleToClose, p.StartToClose)
	accepted.Backoff, accepted.BackoffCoefficient, accepted.MaxBackoff = p.Backoff, p.BackoffCoefficient, p.MaxBackoff
	accepted.NeverRetry = p.NeverRetry
	return accepted
}

// NextWait is the wait that follows one of length wait.
func (p Policy) NextWait(wait time.Duration) time.Duration {
	next := time.Duration(float64(wait) * cmp.Or(p.BackoffCoefficient, DefaultCoefficient))
	if next <= 0 || next > p.MaxBackoff { // a product beyond what a duration holds is not positive
		return p.MaxBackoff
	}
	return next
}

// NonRetryable returns the error types that an engine must not retry, for those
// that take such a list: [NeverRetried] and the policy's own. It is a new list
// every time.
func (p Policy) NonRetryable() []string {
	types := NeverRetried()
	for _, code := range p.NeverRetry {
		if !slices.Contains(types, string(code)) {
			types = append(types, string(code))
		}
	}
	return types
}

// Allows reports whether the engine may run the unit again after a failure, apart
// from how often it has.
func (p Policy) Allows(failure *Failure) bool {
	return failure.Retry && !slices.Contains(p.NeverRetry, failure.Err.Code)
}

// Expected reports whether an error is an ordinary answer of governance rather
// than a fault; engines log it quietly.
func Expected(code apcore.Code) bool {
	switch code {
	case apcore.CodeApprovalDenied, apcore.CodeApprovalTimeout, apcore.CodeACLDenied, apcore.CodeModuleDisabled,
		apcore.CodeSchemaValidation, apcore.CodeSchemaUnionNoMatch, apcore.CodeSchemaUnionAmbiguous:
		return true
	default:
		return false
	}
}
