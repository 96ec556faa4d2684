package apcore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// callWithSchema validates inputs the way every call does.
func callWithSchema(t *testing.T, schema, inputs map[string]any) error {
	t.Helper()
	module, err := apcore.NewRawFunc(func(context.Context, map[string]any) (map[string]any, error) {
		return map[string]any{}, nil
	}, apcore.Spec{Description: "accepts what its schema accepts", InputSchema: schema, OutputSchema: map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	if err := registry.Register("test.schema", module, apcore.RegisterOptions{}); err != nil {
		t.Fatal(err)
	}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = executor.Call(t.Context(), "test.schema", inputs, nil)
	return err
}

func failedPlaces(err error) []string {
	found := []string{}
	if err == nil {
		return found
	}
	for _, item := range list(apcore.AsError(err).Details["errors"]) {
		found = append(found, text(object(item)["path"])+" "+text(object(item)["keyword"]))
	}
	return found
}

// The fixture is older than decision D-149: a missing or forbidden property is
// reported at the object, and coercion is not for calls.
func TestSchemaValidationFixture(t *testing.T) {
	f := readFixture(t, fixtureDirectory(t), "schema_validation")
	for i, test := range f.cases {
		want, strict := test["expected_valid"].(bool)
		if !strict {
			want = test["expected_valid_strict"].(bool)
		}
		err := callWithSchema(t, object(test["schema"]), object(test["input"]))
		if (err == nil) != want {
			t.Errorf("%s: %v", caseID(test, i), err)
		}
		keyword := map[string]string{"name": " required", "extra": " additionalProperties"}[text(test["expected_error_path"])]
		if keyword != "" && !slices.Contains(failedPlaces(err), keyword) {
			t.Errorf("%s: %v, want%s", caseID(test, i), failedPlaces(err), keyword)
		}
	}
}

// The fixture names a code that was retired for SCHEMA_VALIDATION_ERROR.
func TestSchemaConstraintsFixture(t *testing.T) {
	f := readFixture(t, fixtureDirectory(t), "schema_hardening_constraints")
	for i, test := range f.cases {
		expected := object(test["expected"])
		err := callWithSchema(t, object(test["schema"]), object(test["input"]))
		if valid := expected["valid"] == true; valid != (err == nil) || !valid && !errors.Is(err, apcore.CodeSchemaValidation) {
			t.Errorf("%s: %v, want valid %v", caseID(test, i), err, valid)
		}
	}
}

// Formats are annotations: every case passes.
func TestSchemaFormatsFixture(t *testing.T) {
	f := readFixture(t, fixtureDirectory(t), "schema_hardening_formats")
	for i, test := range f.cases {
		if err := callWithSchema(t, object(test["schema"]), object(test["input"])); err != nil {
			t.Errorf("%s: %v", caseID(test, i), err)
		}
	}
}

// The fixture records no hashes. These were computed by hand with sha256sum over
// the canonical texts below.
func TestContentHashFixture(t *testing.T) {
	f := readFixture(t, fixtureDirectory(t), "schema_content_hash")
	seen := map[string]string{}
	for i, test := range f.cases {
		hash, err := apcore.ContentHash(test["schema"])
		if err != nil || len(hash) != 64 || strings.ToLower(hash) != hash || seen[hash] != "" {
			t.Errorf("%s: %q, %v, the same as %q", caseID(test, i), hash, err, seen[hash])
		}
		seen[hash] = caseID(test, i)
	}
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"name":{"type":"string"},"count":{"type":"integer"}},"required":["name"]}`: "7d2a526161b8fd53a2661ffad166def49e7167ddbbac3497737c155021dfd09f",
		`{ "maximum": 18446744073709551615, "default": 9007199254740993, "minimum": 1.0 }`:                         "2720fcaefd37f858cfb7fb9ad8333c118f125ab2d5e37246fa4096389207bdf0",
		"{\"δ\":\"\\u03a9≈\\u2028<&>\\n\"}":                                                                        "a578424bc81993b9765b8e74ead7f6c2cb309423a36694f84844af59a32c4d9d",
	} {
		document, err := apcore.DecodeObject([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := apcore.ContentHash(document); err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", schema, got, err, want)
		}
	}
}

func TestSensitiveKeysFixture(t *testing.T) {
	f := readFixture(t, fixtureDirectory(t), "sensitive_keys_default")
	for i, test := range f.cases {
		expected := object(test["expected"])
		if keys, given := expected["sensitive_keys"]; given {
			if diff := cmp.Diff(texts(keys), apcore.DefaultSensitiveKeys()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", caseID(test, i), diff)
			}
			continue
		}
		var config apcore.RedactionConfig
		if test["construction"] == "override" {
			config.SensitiveKeys = texts(test["override_sensitive_keys"])
		}
		redactor, err := apcore.NewRedactor(config)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(expected, redactor.Redact(object(test["input"]), nil)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", caseID(test, i), diff)
		}
	}
}
