package apcore_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// idGrammar is §2.1 as the standard writes it.
var idGrammar = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$`)

func TestValidateModuleID(t *testing.T) {
	long := strings.Repeat("a", apcore.MaxModuleIDLength)
	for _, id := range []string{"a", "email.send", "a1.b_2.c__d", "a_", "system.health", long} {
		if err := apcore.ValidateModuleID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for id, reason := range map[string]string{
		"": "is empty", ".": "segment is empty", "a.": "segment is empty", ".a": "segment is empty", "a..b": "segment is empty",
		"A.b": "begin with a letter", "a.1b": "begin with a letter", "_a": "begin with a letter", "é": "begin with a letter",
		"a-b": "are allowed", "a.bC": "are allowed", "a b": "are allowed", "aé": "are allowed", "a\n": "are allowed", "a/b": "are allowed",
		long + "a": "longer than 192", strings.Repeat("\xff", 500): "longer than 192",
	} {
		err := apcore.ValidateModuleID(id)
		if !errors.Is(err, apcore.CodeInvalidModuleID) || !strings.Contains(err.Error(), reason) {
			t.Errorf("%q: %v, want %q", id, err, reason)
		}
		if len(err.Error()) > 400 {
			t.Errorf("an id of %d bytes makes a message of %d", len(id), len(err.Error()))
		}
	}
	if got := apcore.AsError(apcore.ValidateModuleID("A")).ModuleID(); got != "A" {
		t.Errorf("details.module_id is %q", got)
	}
}

func FuzzValidateModuleID(f *testing.F) {
	for _, id := range []string{"a.b", "", "a..b", "A", "a\n", "a_1.é"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		want := idGrammar.MatchString(id) && len(id) <= apcore.MaxModuleIDLength
		if err := apcore.ValidateModuleID(id); (err == nil) != want {
			t.Errorf("%q: %v, want valid %v", id, err, want)
		}
	})
}

func TestDetectIDConflict(t *testing.T) {
	existing := []string{"email.send", "system.old"}
	for id, want := range map[string]*apcore.IDConflict{
		"email.sent":   nil,
		"email.send":   {Type: apcore.ConflictDuplicateID, Severity: "error", With: "email.send"},
		"system.old":   {Type: apcore.ConflictDuplicateID, Severity: "error", With: "system.old"},
		"system.new":   {Type: apcore.ConflictReservedWord, Severity: "error", With: "system"},
		"SYSTEM.old":   {Type: apcore.ConflictReservedWord, Severity: "error", With: "system"},
		"Email.Send":   {Type: apcore.ConflictCaseCollision, Severity: "warning", With: "email.send"},
		"systems.new":  nil,
		"foo.acl":      nil,
		"acl":          {Type: apcore.ConflictReservedWord, Severity: "error", With: "acl"},
		"ephemeral.it": nil,
	} {
		if diff := cmp.Diff(want, apcore.DetectIDConflict(id, existing, nil)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", id, diff)
		}
	}
	if got := apcore.DetectIDConflict("system.x", nil, []string{}); got != nil {
		t.Errorf("no word is reserved, yet: %+v", got)
	}
	apcore.ReservedWords()[0] = "spoilt"
	if apcore.ReservedWords()[0] != "system" {
		t.Error("the list of reserved words can be changed from outside")
	}
}

func TestNormalizeID(t *testing.T) {
	for _, test := range []struct{ given, language, want string }{
		{"auth.LoginHandler", "go", "auth.login_handler"},
		{"auth::LoginHandler", "rust", "auth.login_handler"},
		{"auth::LoginHandler", "go", "auth::login_handler"},
		{"auth.x::LoginHandler", "rust", "auth.x.login_handler"},
		{"HTTPClient", "go", "http_client"},
		{"HTTPAPIHandler", "python", "http_api_handler"},
		{"DBURLParser", "python", "db_url_parser"},
		{"parseJSONAPI", "go", "parse_json_api"},
		{"UserUUID", "go", "user_uuid"},
		{"UNKNOWNAPI", "go", "unknownapi"},
		{"ABTest", "go", "ab_test"},
		{"ATest", "go", "a_test"},
		{"getX", "go", "get_x"},
		{"X", "go", "x"},
		{"MY_MODULE", "python", "my_module"},
		{"V2.User123Profile", "typescript", "v2.user123_profile"},
		{"user123.A1B2", "go", "user123.a1_b2"},
		{"already.fine_1", "go", "already.fine_1"},
		{"a__b.-c", "go", "a__b.-c"},
		{"Über.ÜberBlick", "go", "Über.Über_blick"}, // only ASCII is touched
		{"", "go", ""},
		{"a.", "go", "a."},
	} {
		if got := apcore.NormalizeID(test.given, test.language); got != test.want {
			t.Errorf("%s (%s): %q, want %q", test.given, test.language, got, test.want)
		}
	}
}

func TestNormalizeTwiceIsOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.StringMatching(`[A-Za-z0-9_.]{0,40}`).Draw(t, "id")
		once := apcore.NormalizeID(id, "go")
		if twice := apcore.NormalizeID(once, "go"); twice != once {
			t.Fatalf("%q becomes %q, then %q", id, once, twice)
		}
		if plain := strings.ReplaceAll(once, "_", ""); plain != strings.ToLower(strings.ReplaceAll(id, "_", "")) {
			t.Fatalf("%q becomes %q: letters got lost", id, once)
		}
	})
}

func TestCanonicalizeName(t *testing.T) {
	for name, want := range map[string]string{
		"cat-file": "cat_file", "  Cat.File!!": "cat_file", "a___b": "a___b", "cat_--file": "cat__file", "getHTTPAPI": "get_http_api",
		"2fa": "!invalid_start", "_x": "!invalid_start", "": "!empty_name", "--": "!empty_name", "!Ü!": "!non_ascii", "a\u00a0b": "!non_ascii",
		strings.Repeat("a", 193): "!name_too_long", "\xffabc": "!non_ascii",
	} {
		got := apcore.CanonicalizeName(name)
		text := ""
		switch {
		case got.CanonicalName != nil && got.Error == nil:
			text = *got.CanonicalName
		case got.Error != nil && got.CanonicalName == nil:
			text = "!" + *got.Error
		}
		if text != want || got.OriginalName != name {
			t.Errorf("%q: %q of %q, want %q", name, text, got.OriginalName, want)
		}
	}
}

func FuzzCanonicalizeName(f *testing.F) {
	for _, name := range []string{"cat-file", "getHTTPResponse", "\x00", "é", "2x", "DBURLParser"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := apcore.CanonicalizeName(name)
		if (got.CanonicalName == nil) == (got.Error == nil) {
			t.Fatalf("%q: %+v", name, got)
		}
		if got.CanonicalName == nil {
			return
		}
		if err := apcore.ValidateModuleID(*got.CanonicalName); err != nil || strings.Contains(*got.CanonicalName, ".") {
			t.Errorf("%q became %q, which is no segment: %v", name, *got.CanonicalName, err)
		}
	})
}
