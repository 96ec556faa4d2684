package apcore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// callWithSchema validates inputs the way every call does.
func callWithSchema(schema, inputs map[string]any) error {
	module, err := apcore.NewRawFunc(func(context.Context, map[string]any) (map[string]any, error) {
		return map[string]any{}, nil
	}, apcore.Spec{Description: "accepts what its schema accepts", InputSchema: schema, OutputSchema: map[string]any{}})
	if err != nil {
		return err
	}
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	if err := registry.Register("test.schema", module, apcore.RegisterOptions{}); err != nil {
		return err
	}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{})
	if err != nil {
		return err
	}
	_, err = executor.Call(context.Background(), "test.schema", inputs, nil)
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

// driveSchemaValidation takes the fixture at its word, error paths included. The
// column of coerced values is not for calls.
func driveSchemaValidation(_ *fixture, test map[string]any) error {
	want, strict := test["expected_valid"].(bool)
	if !strict {
		want, _ = test["expected_valid_strict"].(bool)
	}
	err := callWithSchema(object(test["schema"]), object(test["input"]))
	c := &check{}
	c.that((err == nil) == want && (err == nil || errors.Is(err, apcore.CodeSchemaValidation)), "%v, want valid %t", err, want)
	if path, pinned := test["expected_error_path"].(string); pinned {
		c.that(slices.ContainsFunc(failedPlaces(err), func(place string) bool { return strings.HasPrefix(place, "/"+path+" ") }), "failed at %v, not at %s", failedPlaces(err), path)
	}
	return c.err()
}

// The paths of the fixture are older than decision D-149: a missing or forbidden
// property is reported at the object.
func TestSchemaValidationFixture(t *testing.T) {
	keywords := map[string]string{"missing_required_field": " required", "additional_properties_rejected_when_false": " additionalProperties"}
	for i, test := range readFixture(t, fixtureDirectory(t), "schema_validation").cases {
		want, stale := keywords[caseID(test, i)]
		if !stale {
			continue
		}
		delete(keywords, caseID(test, i))
		err := callWithSchema(object(test["schema"]), object(test["input"]))
		if !errors.Is(err, apcore.CodeSchemaValidation) || !slices.Contains(failedPlaces(err), want) {
			t.Errorf("%s: %v, want%s", caseID(test, i), err, want)
		}
	}
	if len(keywords) > 0 {
		t.Errorf("the fixture lacks %v", keywords)
	}
}

// driveSchemaConstraints takes the fixture at its word, its code included.
func driveSchemaConstraints(_ *fixture, test map[string]any) error {
	expected := object(test["expected"])
	err := callWithSchema(object(test["schema"]), object(test["input"]))
	c := &check{}
	c.that((err == nil) == (expected["valid"] == true), "%v, want valid %v", err, expected["valid"])
	c.that(string(apcore.CodeOf(err)) == text(expected["error_code"]), "code %q, want %v", apcore.CodeOf(err), expected["error_code"])
	return c.err()
}

// The code of the fixture was retired for SCHEMA_VALIDATION_ERROR; all else of
// its cases holds.
func TestSchemaConstraintsFixture(t *testing.T) {
	for i, test := range readFixture(t, fixtureDirectory(t), "schema_hardening_constraints").cases {
		err := callWithSchema(object(test["schema"]), object(test["input"]))
		if valid := object(test["expected"])["valid"] == true; valid != (err == nil) || !valid && !errors.Is(err, apcore.CodeSchemaValidation) {
			t.Errorf("%s: %v, want valid %v", caseID(test, i), err, valid)
		}
	}
}

// driveSchemaFormats: formats are annotations, every case passes.
func driveSchemaFormats(_ *fixture, test map[string]any) error {
	return callWithSchema(object(test["schema"]), object(test["input"]))
}

// driveContentHash: the fixture records no hashes, so they need only be hashes
// and differ.
func driveContentHash(f *fixture, test map[string]any) error {
	hash, err := apcore.ContentHash(test["schema"])
	if err != nil {
		return err
	}
	c := &check{}
	c.that(len(hash) == 64 && strings.ToLower(hash) == hash, "hash %q", hash)
	for _, other := range f.cases {
		same, err := apcore.ContentHash(other["schema"])
		c.that(err == nil && (same == hash) == cmp.Equal(other["schema"], test["schema"]), "%v has the hash %q, %v", other["id"], same, err)
	}
	return c.err()
}

// These hashes were computed by hand with sha256sum over the canonical texts.
func TestContentHash(t *testing.T) {
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

func driveSensitiveKeys(_ *fixture, test map[string]any) error {
	expected, c := object(test["expected"]), &check{}
	if keys, given := expected["sensitive_keys"]; given {
		diff := cmp.Diff(texts(keys), apcore.DefaultSensitiveKeys())
		c.that(diff == "", "(-want +got):\n%s", diff)
		return c.err()
	}
	var config apcore.RedactionConfig
	if test["construction"] == "override" {
		config.SensitiveKeys = texts(test["override_sensitive_keys"])
	}
	redactor, err := apcore.NewRedactor(config)
	if err != nil {
		return err
	}
	diff := cmp.Diff(expected, redactor.Redact(object(test["input"]), nil))
	c.that(diff == "", "(-want +got):\n%s", diff)
	return c.err()
}

func driveGlob(_ *fixture, test map[string]any) error {
	if got := apcore.MatchGlob(text(test["pattern"]), text(test["value"])); got != test["expected"] {
		return fmt.Errorf("%t", got)
	}
	return nil
}

func driveIDConflict(f *fixture, test map[string]any) error {
	reserved, got := texts(f.whole["reserved_words"]), ""
	if conflict := apcore.DetectIDConflict(text(test["new_id"]), texts(test["existing_ids"]), reserved); conflict != nil {
		got = string(conflict.Type)
	}
	c := &check{}
	diff := cmp.Diff(reserved, apcore.ReservedWords())
	c.that(diff == "", "reserved words (-standard +ours):\n%s", diff)
	c.that(got == text(test["expected"]), "%q, want %q", got, test["expected"])
	return c.err()
}
