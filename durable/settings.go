package durable

import (
	"cmp"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Execution says where the unit of a call runs.
type Execution string

// The ways to run a unit; empty means [ExecutionActivity].
const (
	// ExecutionActivity gives the unit to any worker that hosts the module.
	ExecutionActivity Execution = "activity"
	// ExecutionLocal runs the unit inside the worker that runs the workflow: fewer
	// steps, but no task queue, priority or heartbeat of its own, and the unit may
	// run again when that worker is lost. Only for modules whose class repeats.
	ExecutionLocal Execution = "local"
)

// Settings is how somebody wants a module to be run: the module itself, see
// [SettingsOf], or a caller. Zero fields leave the default. No setting changes
// the [Class].
type Settings struct {
	// StartToClose bounds one attempt.
	StartToClose time.Duration
	// ScheduleToStart bounds the wait for a worker.
	ScheduleToStart time.Duration
	// ScheduleToClose bounds everything: waits and all attempts.
	ScheduleToClose time.Duration
	// Heartbeat is how long a worker may give no sign of life.
	Heartbeat time.Duration
	// Attempts bounds the attempts of a safe or idempotent module.
	Attempts int
	// Backoff is the wait before the second attempt; it grows by
	// BackoffCoefficient up to MaxBackoff.
	Backoff            time.Duration
	MaxBackoff         time.Duration
	BackoffCoefficient float64
	// NeverRetry are codes that are not retried, beside those of [NeverRetried].
	NeverRetry []apcore.Code
	// TaskQueue names the workers that host the module.
	TaskQueue string
	// Priority orders waiting units, 1 first.
	Priority int
	// FairnessKey and FairnessWeight share workers between those who wait, such as
	// tenants.
	FairnessKey    string
	FairnessWeight float64
	// Execution says where the unit runs.
	Execution Execution
}

// Over returns the settings with base's in place of zero fields; NeverRetry is
// the union.
func (s Settings) Over(base Settings) Settings {
	return Settings{
		StartToClose:       cmp.Or(s.StartToClose, base.StartToClose),
		ScheduleToStart:    cmp.Or(s.ScheduleToStart, base.ScheduleToStart),
		ScheduleToClose:    cmp.Or(s.ScheduleToClose, base.ScheduleToClose),
		Heartbeat:          cmp.Or(s.Heartbeat, base.Heartbeat),
		Attempts:           cmp.Or(s.Attempts, base.Attempts),
		Backoff:            cmp.Or(s.Backoff, base.Backoff),
		MaxBackoff:         cmp.Or(s.MaxBackoff, base.MaxBackoff),
		BackoffCoefficient: cmp.Or(s.BackoffCoefficient, base.BackoffCoefficient),
		NeverRetry:         union(base.NeverRetry, s.NeverRetry),
		TaskQueue:          cmp.Or(s.TaskQueue, base.TaskQueue),
		Priority:           cmp.Or(s.Priority, base.Priority),
		FairnessKey:        cmp.Or(s.FairnessKey, base.FairnessKey),
		FairnessWeight:     cmp.Or(s.FairnessWeight, base.FairnessWeight),
		Execution:          cmp.Or(s.Execution, base.Execution),
	}
}

// Apply puts the settings over a copy of a policy. What a bound then leaves no
// room for is bounded too: no wait is longer than MaxBackoff, no attempt longer
// than ScheduleToClose unless the settings raise only the attempt.
func (s Settings) Apply(policy Policy) Policy {
	if s.Attempts > 0 && policy.Class.Repeats() {
		policy.Attempts = s.Attempts
	}
	policy.StartToClose = cmp.Or(s.StartToClose, policy.StartToClose)
	policy.ScheduleToStart = cmp.Or(s.ScheduleToStart, policy.ScheduleToStart)
	policy.Heartbeat = cmp.Or(s.Heartbeat, policy.Heartbeat)
	policy.BackoffCoefficient = cmp.Or(s.BackoffCoefficient, policy.BackoffCoefficient)
	policy.NeverRetry = union(policy.NeverRetry, s.NeverRetry)
	policy.Backoff = cmp.Or(s.Backoff, policy.Backoff)
	policy.MaxBackoff = max(policy.MaxBackoff, policy.Backoff)
	if s.MaxBackoff > 0 {
		policy.MaxBackoff = s.MaxBackoff
		policy.Backoff = min(policy.Backoff, s.MaxBackoff)
	}
	switch {
	case s.ScheduleToClose > 0:
		policy.ScheduleToClose = s.ScheduleToClose
		policy.StartToClose = min(policy.StartToClose, s.ScheduleToClose)
	case policy.ScheduleToClose > 0:
		policy.ScheduleToClose = max(policy.ScheduleToClose, policy.StartToClose)
	}
	return policy
}

// union returns a new list, nil for two empty ones.
func union(a, b []apcore.Code) []apcore.Code {
	var all []apcore.Code
	seen := map[apcore.Code]bool{}
	for _, list := range [][]apcore.Code{a, b} {
		for _, code := range list {
			if !seen[code] {
				seen[code] = true
				all = append(all, code)
			}
		}
	}
	return all
}
