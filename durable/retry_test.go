package durable_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// annotationTable is every combination of what retries depend on, and a module
// that nobody knows.
func annotationTable() (names []string, rows []*apcore.Annotations) {
	for bits := range 16 {
		a := apcore.Annotations{Readonly: bits&8 > 0, Destructive: bits&4 > 0, Idempotent: bits&2 > 0, RequiresApproval: bits&1 > 0}
		names = append(names, fmt.Sprintf("%t %t %t %t", a.Readonly, a.Destructive, a.Idempotent, a.RequiresApproval))
		rows = append(rows, &a)
	}
	return append(names, "unknown module"), append(rows, nil)
}

// Target 24, scenario 36: the whole truth table of annotations, with the
// contradictions among them (readonly and destructive). More than one attempt
// needs readonly or idempotent, approval changes nothing, nothing is unlimited.
func TestRetryTable(t *testing.T) {
	var table strings.Builder
	table.WriteString("readonly destructive idempotent requires_approval | class contradictory | attempts redos backoff max_backoff start_to_close schedule_to_start schedule_to_close heartbeat | retried after failures: started/not started\n")
	names, rows := annotationTable()
	for at, annotations := range rows {
		p := durable.PolicyFor(durable.ClassOf(annotations), 30*time.Second)
		contradictory := annotations != nil && durable.Contradiction(*annotations) != ""
		fmt.Fprintf(&table, "%s | %s %t | %d %d %v %v %v %v %v %v | %s\n", names[at], p.Class, contradictory, p.Attempts, p.Redos, p.Backoff, p.MaxBackoff,
			p.StartToClose, p.ScheduleToStart, p.ScheduleToClose, p.Heartbeat, retriedFailures(t, annotations))
		repeats := annotations != nil && (annotations.Readonly && !annotations.Destructive || annotations.Idempotent)
		if p.Attempts > 1 != repeats || p.Attempts < 1 || p.StartToClose <= 0 || p.ScheduleToClose+p.ScheduleToStart <= 0 || p.Heartbeat <= 0 || p.Backoff <= 0 {
			t.Errorf("%s: %+v", names[at], p)
		}
	}
	if diff := cmp.Diff(string(golden(t, "retry.txt", []byte(table.String()))), table.String()); diff != "" {
		t.Errorf("(-golden +got):\n%s", diff)
	}
}

// drawSettings makes settings whose fields are each within bounds.
func drawSettings(t *rapid.T) durable.Settings {
	duration := func(name string, low int64) time.Duration {
		ms := rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(low, 80_000_000)).Draw(t, name)
		return time.Duration(ms) * time.Millisecond
	}
	return durable.Settings{
		StartToClose: duration("start to close", 1), ScheduleToStart: duration("schedule to start", 1), ScheduleToClose: duration("schedule to close", 1),
		Heartbeat: duration("heartbeat", 100), Attempts: rapid.IntRange(0, 1000).Draw(t, "attempts"),
		Backoff: duration("backoff", 1), MaxBackoff: duration("max backoff", 1), BackoffCoefficient: rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(1, 100)).Draw(t, "coefficient"),
		NeverRetry: rapid.SliceOfN(rapid.SampledFrom([]apcore.Code{"ACME_BUSY", "ACME_GONE", apcore.CodeInternal}), 0, 3).Draw(t, "codes"),
		Execution:  rapid.SampledFrom([]durable.Execution{"", durable.ExecutionActivity}).Draw(t, "execution"),
	}
}

// Target 24, pitfall 24: whatever a module and a caller say, more than one attempt
// needs readonly or idempotent or the option that accepts repeated effects; every
// bound stays finite; the built-in error types stay, and no input is changed.
func TestSettingsNeverRaiseTheClass(t *testing.T) {
	_, rows := annotationTable()
	rapid.Check(t, func(t *rapid.T) {
		annotations := rapid.SampledFrom(rows).Draw(t, "annotations")
		class := durable.ClassOf(annotations)
		accepted := func(s durable.Settings) bool { return len(s.Problems(class)) == 0 }
		settings := rapid.Custom(drawSettings).Filter(accepted) // the others are refused before anything happens
		module, caller := settings.Draw(t, "module"), settings.Draw(t, "caller")
		accepts := rapid.Bool().Draw(t, "accept repeated effects")
		base := durable.PolicyFor(class, 30*time.Second)
		given, givenCaller := base, caller
		if accepts {
			base = base.Accept()
		}
		p := caller.Over(module).Apply(base)
		if p.Attempts > 1 && !class.Repeats() && !accepts {
			t.Fatalf("a %s module may run %d times: %+v", class, p.Attempts, p)
		}
		if p.Attempts < 1 || p.StartToClose <= 0 || p.ScheduleToClose+p.ScheduleToStart <= 0 || p.Heartbeat <= 0 || p.Backoff <= 0 || p.MaxBackoff < p.Backoff {
			t.Fatalf("out of bounds: %+v", p)
		}
		for _, code := range durable.NeverRetried() {
			if !contains(p.NonRetryable(), code) {
				t.Fatalf("%s may be retried", code)
			}
		}
		for _, code := range append(module.NeverRetry, caller.NeverRetry...) {
			if !contains(p.NonRetryable(), string(code)) || p.Allows(&durable.Failure{Err: apcore.NewError(code, "no"), Retry: true}) {
				t.Fatalf("%s may be retried", code)
			}
		}
		if diff := cmp.Diff(durable.PolicyFor(class, 30*time.Second), given); diff != "" || !cmp.Equal(givenCaller, caller, cmpopts.EquateEmpty()) {
			t.Fatalf("an input was changed: %s", diff)
		}
	})
}

// Pitfall 24, the shared list: appending to one policy's error types shows in no
// other policy.
func TestNonRetryableIsACopy(t *testing.T) {
	policy := durable.Settings{NeverRetry: []apcore.Code{"ACME_A"}}.Apply(durable.PolicyFor(durable.ClassSafe, 0))
	_ = append(policy.NonRetryable()[:0], "OVERWRITTEN")
	_ = append(durable.NeverRetried()[:0], "OVERWRITTEN")
	if contains(policy.NonRetryable(), "OVERWRITTEN") || contains(durable.NeverRetried(), "OVERWRITTEN") || !contains(policy.NonRetryable(), "ACME_A") {
		t.Errorf("%q", policy.NonRetryable())
	}
}

// The back-off grows by its factor and stays below its bound, whatever the factor.
func TestBackoff(t *testing.T) {
	for _, test := range []struct {
		policy durable.Policy
		want   []time.Duration
	}{
		{durable.PolicyFor(durable.ClassSafe, 0), []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, time.Minute, time.Minute}},
		{durable.Policy{Backoff: time.Second, BackoffCoefficient: 1, MaxBackoff: time.Minute}, []time.Duration{time.Second, time.Second, time.Second}},
		{durable.Policy{Backoff: time.Hour, BackoffCoefficient: 1e300, MaxBackoff: 24 * time.Hour}, []time.Duration{time.Hour, 24 * time.Hour, 24 * time.Hour}},
	} {
		wait := test.policy.Backoff
		for at, want := range test.want {
			if wait != want {
				t.Errorf("%+v: wait %d is %v, want %v", test.policy, at+1, wait, want)
			}
			wait = test.policy.NextWait(wait)
		}
	}
}

// What a module says bounds attempts, never the class; a longer attempt makes
// room for itself, a shorter whole makes the attempt shorter.
func TestSettingsApply(t *testing.T) {
	settings := durable.Settings{Attempts: 9, StartToClose: 5 * time.Second, Heartbeat: 500 * time.Millisecond}
	once := settings.Apply(durable.PolicyFor(durable.ClassAtMostOnce, apcore.NoTimeout))
	if once.Attempts != 1 || once.StartToClose != 5*time.Second || once.Heartbeat != 500*time.Millisecond {
		t.Errorf("at most once: %+v", once)
	}
	if safe := settings.Apply(durable.PolicyFor(durable.ClassSafe, 0)); safe.Attempts != 9 {
		t.Errorf("safe: %+v", safe)
	}
	long := durable.Settings{StartToClose: 3 * time.Hour}.Apply(durable.PolicyFor(durable.ClassSafe, 0))
	if long.ScheduleToClose != 3*time.Hour {
		t.Errorf("a long attempt: %+v", long)
	}
	short := durable.Settings{ScheduleToClose: 2 * time.Second}.Apply(durable.PolicyFor(durable.ClassSafe, 0))
	if short.ScheduleToClose != 2*time.Second || short.StartToClose != 2*time.Second {
		t.Errorf("a short whole: %+v", short)
	}
}

func contains(list []string, item string) bool {
	for _, other := range list {
		if other == item {
			return true
		}
	}
	return false
}
