package compat

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// classesTable is the table of the three classes.
func classesTable() string {
	when := map[durable.Class]string{
		durable.ClassSafe: "`readonly` and not `destructive`", durable.ClassIdempotent: "`idempotent`, and not safe", durable.ClassAtMostOnce: "everything else",
	}
	var table strings.Builder
	table.WriteString("| class | when | attempts | back-off | one attempt | waits for a worker | altogether | heartbeat | units before the start | after a failure of its own |\n")
	table.WriteString("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, class := range []durable.Class{durable.ClassSafe, durable.ClassIdempotent, durable.ClassAtMostOnce} {
		p := durable.PolicyFor(class, 30*time.Second)
		again := "never repeated"
		if class.Repeats() {
			again = "repeated"
		}
		fmt.Fprintf(&table, "| `%s` | %s | %d | %v × %v up to %v | %s | %s | %s | %v | %d | %s |\n", class, when[class], p.Attempts, p.Backoff, p.BackoffCoefficient, p.MaxBackoff,
			"the module's timer + 10s", orNone(p.ScheduleToStart), orNone(p.ScheduleToClose), p.Heartbeat, 1+p.Redos, again)
	}
	return table.String()
}

func orNone(d time.Duration) string {
	if d == 0 {
		return "no bound of its own"
	}
	return d.String()
}

func codesTable() string {
	var table strings.Builder
	table.WriteString("| code | repeated | arises |\n| --- | --- | --- |\n")
	for _, verdict := range durable.Verdicts() {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", verdict.Code, verdict.Repeat, verdict.Stage)
	}
	return table.String()
}

func expectedList() string {
	var list strings.Builder
	for _, verdict := range durable.Verdicts() {
		if durable.Expected(verdict.Code) {
			fmt.Fprintf(&list, "- `%s`\n", verdict.Code)
		}
	}
	return list.String()
}

// setting is one row of the settings: the field of CallOptions beside the key.
type setting struct{ key, option, meaning, fallback, bound string }

func settings() []setting {
	p := durable.PolicyFor(durable.ClassSafe, 30*time.Second)
	ms := func(low, high time.Duration) string { return fmt.Sprintf("%v to %v", low, high) }
	return []setting{
		{"start_to_close_ms", "StartToClose", "one attempt", "the module's timer + 10s", ms(time.Millisecond, durable.MaxTimeout)},
		{"schedule_to_start_ms", "ScheduleToStart", "the wait for a worker", "see classes", ms(time.Millisecond, durable.MaxTimeout)},
		{"schedule_to_close_ms", "ScheduleToClose", "waits and attempts together", "see classes", ms(time.Millisecond, durable.MaxTimeout)},
		{"heartbeat_ms", "Heartbeat", "silence of a worker that counts as its loss", p.Heartbeat.String(), ms(durable.MinHeartbeat, durable.MaxTimeout)},
		{"attempts", "Attempts", "attempts of a safe or idempotent module", fmt.Sprint(p.Attempts), fmt.Sprintf("1 to %d", durable.MaxAttempts)},
		{"backoff_ms", "RetryPolicy.InitialInterval", "the wait before the second attempt", p.Backoff.String(), ms(time.Millisecond, durable.MaxBackoffSetting)},
		{"max_backoff_ms", "RetryPolicy.MaximumInterval", "the longest wait", p.MaxBackoff.String(), ms(time.Millisecond, durable.MaxBackoffSetting)},
		{"backoff_coefficient", "RetryPolicy.BackoffCoefficient", "the growth of the wait", fmt.Sprint(p.BackoffCoefficient), fmt.Sprintf("1 to %v", durable.MaxCoefficient)},
		{"never_retry", "RetryPolicy.NonRetryableErrorTypes", "further codes that are never repeated", "none", fmt.Sprintf("up to %d codes", durable.MaxNeverRetry)},
		{"task_queue", "TaskQueue", "the workers that host the module", "the workflow's", fmt.Sprintf("up to %d bytes, not `/_sys/…`", durable.MaxQueueName)},
		{"priority", "Priority", "order of waiting units, 1 first", "the workflow's", fmt.Sprintf("1 to %d", durable.MaxPriority)},
		{"fairness_key", "FairnessKey", "who shares workers with whom, such as a tenant", "the workflow's", fmt.Sprintf("up to %d bytes", durable.MaxFairnessKey)},
		{"fairness_weight", "FairnessWeight", "the share of the key", "the workflow's", fmt.Sprintf("%v to %v", durable.MinFairnessWeight, durable.MaxFairnessWeight)},
		{"execution", "Execution", "where units run, see below", "`activity`", "`activity`, or `local` for a class that repeats"},
	}
}

func settingsTable() string {
	var table strings.Builder
	table.WriteString("| `x-temporal` | `CallOptions` | bounds | default | may be |\n| --- | --- | --- | --- | --- |\n")
	for _, s := range settings() {
		fmt.Fprintf(&table, "| `%s` | `%s` | %s | %s | %s |\n", s.key, s.option, s.meaning, s.fallback, s.bound)
	}
	return table.String()
}

// fill puts a table between its markers; ok is false if they are not there.
func fill(text, name, table string) (filled string, ok bool) {
	begin, end := "<!-- begin: "+name+" -->\n", "<!-- end: "+name+" -->"
	before, rest, opened := strings.Cut(text, begin)
	_, after, closed := strings.Cut(rest, end)
	return before + begin + "\n" + table + "\n" + end + after, opened && closed
}

// Pitfall 46: docs/retries.md says what the code does.
func TestRetriesDocument(t *testing.T) {
	path := filepath.Join("..", "docs", "retries.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for name, table := range map[string]string{"classes": classesTable(), "codes": codesTable(), "expected": expectedList(), "settings": settingsTable()} {
		var ok bool
		if want, ok = fill(want, name, table); !ok {
			t.Errorf("%s lacks the place of table %q", path, name)
		}
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := gocmp.Diff(want, string(text)); diff != "" {
		t.Errorf("%s differs from the code; -update writes its tables anew (-code +document):\n%s", path, diff)
	}
}

// The rows of the settings are those that are read, and their options exist.
func TestSettingsRows(t *testing.T) {
	var keys []string
	options := reflect.TypeFor[temporal.CallOptions]()
	for _, s := range settings() {
		keys = append(keys, s.key)
		name, inner, nested := strings.Cut(s.option, ".")
		field, found := options.FieldByName(name)
		if nested && found {
			_, found = field.Type.Elem().FieldByName(inner)
		}
		if !found {
			t.Errorf("CallOptions has no %s", s.option)
		}
		if cmp.Or(s.meaning, s.bound, s.fallback) == "" {
			t.Errorf("%s says nothing", s.key)
		}
	}
	if diff := gocmp.Diff(durable.SettingNames(), keys); diff != "" {
		t.Errorf("settings (-read +rows):\n%s", diff)
	}
}
