package apcore_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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
}

// TestConformance runs the standard's fixtures. Cases that are older than the
// standard stand in testdata/baseline.json with the reason; one that passes all
// the same is reported, so that the list shrinks.
func TestConformance(t *testing.T) {
	directory := fixtureDirectory(t)
	stale := readBaseline(t)
	for _, name := range slices.Sorted(mapsKeys(drivers)) {
		t.Run(name, func(t *testing.T) {
			f := readFixture(t, directory, name)
			passed, known := 0, 0
			for i, test := range f.cases {
				id := caseID(test, i)
				err := drivers[name](f, test)
				reason, listed := stale[name+"/"+id]
				delete(stale, name+"/"+id)
				switch {
				case err == nil && listed:
					t.Errorf("%s passes but stands in the baseline (%s): take it out", id, reason)
				case err == nil:
					passed++
				case listed:
					known++
				default:
					t.Errorf("%s: %v", id, err)
				}
			}
			t.Logf("%d passed, %d stale as listed, of %d", passed, known, len(f.cases))
		})
	}
	for key := range stale {
		t.Errorf("the baseline lists %s, which is no case", key)
	}
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

func mapsKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
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

// drivenElsewhere names fixtures that have tests of their own.
var drivenElsewhere = map[string]string{
	"glob_matching":                "TestMatchGlobFixture",
	"id_conflict_reserved_words":   "TestDetectIDConflictFixture",
	"schema_content_hash":          "TestContentHashFixture",
	"schema_hardening_constraints": "TestSchemaConstraintsFixture",
	"schema_hardening_formats":     "TestSchemaFormatsFixture",
	"schema_validation":            "TestSchemaValidationFixture",
	"sensitive_keys_default":       "TestSensitiveKeysFixture",
}

// TestEveryFixtureIsDriven fails on a fixture that nobody reads.
func TestEveryFixtureIsDriven(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(fixtureDirectory(t), "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		if drivers[name] == nil && drivenElsewhere[name] == "" {
			t.Errorf("fixture %s is driven by no test", name)
		}
	}
}
