package apcore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// fixture is one file of the standard's test data.
type fixture struct {
	t     *testing.T // for synctest
	name  string
	whole map[string]any
	cases []map[string]any
}

// driver runs one case through the public interface; an error says what is not
// as the standard wants it.
type driver func(f *fixture, test map[string]any) error

// drivers names the fixtures that this package claims to satisfy.
var drivers = map[string]driver{
	"acl_evaluation":               driveACLEvaluation,
	"acl_handler_error":            driveACLHandlerError,
	"annotations_extra_round_trip": driveAnnotations,
	"approval_gate":                driveApprovalGate,
	"approval_request_fields":      driveApprovalRequest,
	"async_task_cancellation":      driveTaskCancellation,
	"async_task_evolution":         driveTaskEvolution,
	"call_chain":                   driveCallChain,
	"canonicalize_name":            driveCanonicalName,
	"context_create":               driveContextCreate,
	"context_serialization":        driveContextSerialization,
	"context_trace_parent":         driveTraceParent,
	"error_codes":                  driveErrorCodes,
	"error_details_shape":          driveErrorDetails,
	"error_recovery_metadata":      driveErrorMetadata,
	"error_serialization":          driveErrorSerialization,
	"executor_trace_cancellation":  driveTraceCancellation,
	"pipeline_hardening":           drivePipelineHardening,
	"registry_load_ordering":       driveLoadOrdering,
	"storage_backend":              driveStorage,
	"identity_system":              driveIdentity,
	"middleware_hardening":         driveMiddleware,
	"middleware_on_error_recovery": driveRecovery,
	"normalize_id":                 driveNormalizeID,
	"glob_matching":                driveGlob,
	"id_conflict_reserved_words":   driveIDConflict,
	"schema_content_hash":          driveContentHash,
	"schema_hardening_constraints": driveSchemaConstraints,
	"schema_hardening_formats":     driveSchemaFormats,
	"schema_validation":            driveSchemaValidation,
	"sensitive_keys_default":       driveSensitiveKeys,
}

// notClaimed names fixtures of areas that the standard calls optional and this
// package leaves out, by pattern.
var notClaimed = map[string]string{
	"binding_*":                "bindings need dynamic import, which Go has not",
	"config_*":                 "there is no configuration bus",
	"event_*":                  "there is no event bus",
	"multi_*_discovery":        "discovery needs dynamic import, which Go has not",
	"usage_*":                  "there are no system modules",
	"system_modules_hardening": "there are no system modules",
	"error_fingerprinting":     "belongs to the event bus",
	"tracing_from_config":      "there is no configuration bus",
	"overrides_store":          "there is no configuration bus",
	"reload_path_filter":       "there are no files to load modules from",
}

// tally counts the cases of a fixture, or of all.
type tally struct{ passed, stale, failed int }

func (n *tally) add(more tally) {
	n.passed += more.passed
	n.stale += more.stale
	n.failed += more.failed
}

func (n *tally) String() string {
	return fmt.Sprintf("%3d passed / %2d stale-as-listed / %d failed", n.passed, n.stale, n.failed)
}

// TestConformance runs every fixture of the standard, case by case, prints what
// came of each, and fails on a file that nobody drives. Cases that are older than
// the standard stand in testdata/baseline.json with the reason; one that passes
// all the same is reported, so that the list shrinks.
func TestConformance(t *testing.T) {
	directory, stale := fixtureDirectory(t), readBaseline(t)
	files, err := filepath.Glob(filepath.Join(directory, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	var total tally
	missing := maps.Clone(drivers)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		delete(missing, name)
		if reason := unclaimed(name); drivers[name] == nil && reason != "" {
			t.Logf("%-30s not claimed: %s", name, reason)
			continue
		}
		t.Run(name, func(t *testing.T) {
			if drivers[name] == nil {
				total.failed++
				t.Fatal("this fixture is driven by no test")
			}
			one := runFixture(t, readFixture(t, directory, name), stale)
			total.add(one)
			t.Logf("%-30s %s", name, &one)
		})
	}
	for name := range missing {
		t.Errorf("fixture %s is gone: take its driver out", name)
	}
	for key := range stale {
		t.Errorf("the baseline lists %s, which is no case", key)
	}
	t.Logf("%-30s %s", fmt.Sprintf("total of %d files", len(files)), &total)
}

// runFixture runs the cases of one fixture and takes those it saw out of stale.
func runFixture(t *testing.T, f *fixture, stale map[string]string) (n tally) {
	t.Helper()
	for i, test := range f.cases {
		id := caseID(test, i)
		err := drivers[f.name](f, test)
		reason, listed := stale[f.name+"/"+id]
		delete(stale, f.name+"/"+id)
		switch {
		case err == nil && listed:
			n.failed++
			t.Errorf("%s passes but stands in the baseline (%s): take it out", id, reason)
		case err == nil:
			n.passed++
		case listed:
			n.stale++
		default:
			n.failed++
			t.Errorf("%s: %v", id, err)
		}
	}
	return n
}

// unclaimed says why a fixture is left out, empty if it is not.
func unclaimed(name string) (reason string) {
	for pattern, why := range notClaimed {
		if apcore.MatchGlob(pattern, name) {
			return why
		}
	}
	return ""
}

func fixtureDirectory(t *testing.T) string {
	t.Helper()
	root := os.Getenv("APCORE_SPEC_REPO")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "apcore")
	}
	directory := filepath.Join(root, "conformance", "fixtures")
	if _, err := os.Stat(directory); err != nil {
		if testing.Short() {
			t.Skip("the standard's fixtures are not here and -short is set")
		}
		t.Fatalf("the standard's fixtures are not at %s: check the apcore specification out (github.com/aiperceivable/apcore) and set APCORE_SPEC_REPO to it, or run with -short", directory)
	}
	return directory
}

func readFixture(t *testing.T, directory, name string) *fixture {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(directory, name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, name: name}
	if err := json.Unmarshal(text, &f.whole); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for _, test := range list(f.whole["test_cases"]) {
		f.cases = append(f.cases, object(test))
	}
	if len(f.cases) == 0 {
		t.Fatalf("%s has no cases", name)
	}
	return f
}

func readBaseline(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "baseline.json"))
	if err != nil {
		t.Fatal(err)
	}
	var entries []struct {
		Fixture string   `json:"fixture"`
		Cases   []string `json:"cases"`
		Reason  string   `json:"reason"`
	}
	if err := json.Unmarshal(text, &entries); err != nil {
		t.Fatalf("baseline: %v", err)
	}
	stale := map[string]string{}
	for _, entry := range entries {
		for _, id := range entry.Cases {
			stale[entry.Fixture+"/"+id] = entry.Reason
		}
	}
	return stale
}

func caseID(test map[string]any, index int) string {
	if id, ok := test["id"].(string); ok {
		return id
	}
	return fmt.Sprintf("case %d", index)
}

func object(value any) map[string]any { m, _ := value.(map[string]any); return m }

func list(value any) []any { l, _ := value.([]any); return l }

func text(value any) string { s, _ := value.(string); return s }

func texts(value any) []string {
	out := []string{}
	for _, item := range list(value) {
		out = append(out, text(item))
	}
	return out
}

// wire writes a value as JSON and reads it back, as another language would see it.
func wire(value any) map[string]any {
	data, err := json.Marshal(value)
	if err != nil {
		return map[string]any{"unwritable": err.Error()}
	}
	var read map[string]any
	if err := json.Unmarshal(data, &read); err != nil {
		return map[string]any{"unreadable": err.Error()}
	}
	return read
}

// check collects what differs.
type check struct{ errs []error }

func (c *check) that(ok bool, format string, args ...any) {
	if !ok {
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	}
}

func (c *check) err() error { return errors.Join(c.errs...) }
