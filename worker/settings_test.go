package worker_test

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/client"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

var update = flag.Bool("update", false, "write the golden files anew")

// badSettings are values of x-temporal that make no sense, as a readonly module
// gives them unless the name begins with "once".
var badSettings = []struct {
	name     string
	settings any
}{
	{"a text", "5s"},
	{"a list", []any{1}},
	{"nothing", nil},
	{"no JSON", map[string]any{"attempts": func() {}}},
	{"unknown key", map[string]any{"start_to_close": 5}},
	{"key in another case", map[string]any{"TaskQueue": "q"}},
	{"start_to_close as a duration", map[string]any{"start_to_close_ms": "5s"}},
	{"start_to_close negative", map[string]any{"start_to_close_ms": -1}},
	{"start_to_close zero", map[string]any{"start_to_close_ms": 0}},
	{"start_to_close a fraction", map[string]any{"start_to_close_ms": 1.5}},
	{"start_to_close over 30 days", map[string]any{"start_to_close_ms": 2592000001}},
	{"start_to_close over an int64", map[string]any{"start_to_close_ms": 1e300}},
	{"schedule_to_start null", map[string]any{"schedule_to_start_ms": nil}},
	{"schedule_to_start over 30 days", map[string]any{"schedule_to_start_ms": int64(1) << 60}},
	{"schedule_to_close a list", map[string]any{"schedule_to_close_ms": []any{5}}},
	{"schedule_to_close shorter than an attempt", map[string]any{"schedule_to_close_ms": 1000, "start_to_close_ms": 2000}},
	{"schedule_to_close shorter than the wait", map[string]any{"schedule_to_close_ms": 1000, "schedule_to_start_ms": 2000}},
	{"heartbeat too short", map[string]any{"heartbeat_ms": 99}},
	{"heartbeat a truth value", map[string]any{"heartbeat_ms": true}},
	{"attempts zero, which engines take for unlimited", map[string]any{"attempts": 0}},
	{"attempts negative", map[string]any{"attempts": -1}},
	{"attempts over the bound", map[string]any{"attempts": 1001}},
	{"attempts a text", map[string]any{"attempts": "3"}},
	{"once, and yet attempts", map[string]any{"attempts": 2}},
	{"backoff over a day", map[string]any{"backoff_ms": 86400001}},
	{"backoff over the longest", map[string]any{"backoff_ms": 2000, "max_backoff_ms": 1000}},
	{"max_backoff negative", map[string]any{"max_backoff_ms": -5}},
	{"coefficient below one", map[string]any{"backoff_coefficient": 0.5}},
	{"coefficient over the bound", map[string]any{"backoff_coefficient": 101}},
	{"coefficient a text", map[string]any{"backoff_coefficient": "2"}},
	{"never_retry a text", map[string]any{"never_retry": "ACME_BUSY"}},
	{"never_retry empty", map[string]any{"never_retry": []any{}}},
	{"never_retry of numbers", map[string]any{"never_retry": []any{1}}},
	{"never_retry no codes", map[string]any{"never_retry": []any{"busy!"}}},
	{"never_retry too many", map[string]any{"never_retry": slices.Repeat([]any{"ACME_BUSY"}, 101)}},
	{"task_queue empty", map[string]any{"task_queue": ""}},
	{"task_queue too long", map[string]any{"task_queue": strings.Repeat("q", 1001)}},
	{"task_queue of the server", map[string]any{"task_queue": "/_sys/x"}},
	{"priority zero", map[string]any{"priority": 0}},
	{"priority negative", map[string]any{"priority": -1}},
	{"priority over the bound", map[string]any{"priority": 1001}},
	{"fairness_key too long", map[string]any{"fairness_key": strings.Repeat("k", 65)}},
	{"fairness_weight without a key", map[string]any{"fairness_weight": 2}},
	{"fairness_weight too large", map[string]any{"fairness_key": "k", "fairness_weight": 1001}},
	{"fairness_weight zero", map[string]any{"fairness_key": "k", "fairness_weight": 0}},
	{"execution of another kind", map[string]any{"execution": "remote"}},
	{"once, and yet local", map[string]any{"execution": "local"}},
	{"local with a queue", map[string]any{"execution": "local", "task_queue": "q"}},
	{"local with a heartbeat", map[string]any{"execution": "local", "heartbeat_ms": 500}},
	{"two at once", map[string]any{"attempts": -1, "heartbeat_ms": 5, "colour": "red"}},
}

// Target 29, pitfall 25: each bad value has its error, with module, field, value
// and bound, before anything polls; no two share one.
func TestWorkerRefusesBadSettings(t *testing.T) {
	lazy, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1"}) // nobody is there: nothing may ask
	must(t, err)
	defer lazy.Close()
	var table strings.Builder
	for _, test := range badSettings {
		annotations := apcore.Annotations{Readonly: !strings.HasPrefix(test.name, "once")}
		inMetadata := apcore.Spec{Annotations: annotations, Metadata: map[string]any{"x-temporal": test.settings}}
		annotations.Extra = map[string]any{"x-temporal": test.settings}
		inExtra := apcore.Spec{Annotations: annotations}
		var texts []string
		for _, spec := range []apcore.Spec{inExtra, inMetadata} {
			_, err := worker.New(lazy, "q", host(t, apcore.ExecutorOptions{}, spec), worker.Options{})
			if !errors.Is(err, apcore.CodeConfigInvalid) || !strings.Contains(err.Error(), `x-temporal of module "test.module"`) || apcore.AsError(err).ModuleID() != "test.module" {
				t.Errorf("%s: %v", test.name, err)
				continue
			}
			texts = append(texts, apcore.AsError(err).Message)
		}
		if len(texts) != 2 || texts[0] != texts[1] {
			t.Errorf("%s: extra and metadata differ: %q", test.name, texts)
			continue
		}
		if len(texts[0]) > 500 {
			t.Errorf("%s: the error has %d bytes", test.name, len(texts[0]))
		}
		fmt.Fprintf(&table, "%s\n    %s\n", test.name, texts[0])
	}
	path := filepath.Join("testdata", "bad_settings.txt")
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(path, []byte(table.String()), 0o600))
	}
	want, err := os.ReadFile(path)
	must(t, err)
	if diff := cmp.Diff(string(want), table.String()); diff != "" {
		t.Errorf("(-golden +got):\n%s", diff)
	}
}

// Every setting has at least one bad value above, and a good one that is taken.
func TestEverySettingIsRead(t *testing.T) {
	good := map[string]any{
		"start_to_close_ms": 2000, "schedule_to_start_ms": 3000, "schedule_to_close_ms": 60000, "heartbeat_ms": 1000, "attempts": 4,
		"backoff_ms": 500, "max_backoff_ms": 4000, "backoff_coefficient": 1.5, "never_retry": []any{"ACME_GONE"}, "task_queue": "gpu",
		"priority": 1, "fairness_key": "acme", "fairness_weight": 2.5, "execution": "activity",
	}
	executor := host(t, apcore.ExecutorOptions{}, apcore.Spec{Annotations: apcore.Annotations{Readonly: true}, Metadata: map[string]any{"x-temporal": good}})
	settings, err := durable.SettingsOf(executor.Registry().Definition("test.module"))
	must(t, err)
	if got := fmt.Sprintf("%+v", settings); got != "{StartToClose:2s ScheduleToStart:3s ScheduleToClose:1m0s Heartbeat:1s Attempts:4 Backoff:500ms MaxBackoff:4s BackoffCoefficient:1.5 NeverRetry:[ACME_GONE] TaskQueue:gpu Priority:1 FairnessKey:acme FairnessWeight:2.5 Execution:activity}" {
		t.Errorf("settings %s", got)
	}
	for _, name := range durable.SettingNames() {
		refused := slices.ContainsFunc(badSettings, func(bad struct {
			name     string
			settings any
		}) bool {
			object, _ := bad.settings.(map[string]any)
			_, has := object[name]
			return has
		})
		if _, taken := good[name]; !taken || !refused {
			t.Errorf("%s: tried with a good value %t, with a bad one %t", name, taken, refused)
		}
	}
}
