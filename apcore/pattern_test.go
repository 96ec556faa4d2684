package apcore_test

import (
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

func TestMatchPattern(t *testing.T) {
	for _, test := range []struct {
		pattern, id string
		want        bool
	}{
		{"*", "", true},
		{"*", "a.b.c", true},
		{"", "", true},
		{"", "a", false},
		{"a.b", "a.b", true},
		{"a.b", "a.bc", false},
		{"a.*", "a.b.c", true},
		{"a.*", "a", false},
		{"a.*", "ab.c", false},
		{"*.send", "email.fast.send", true},
		{"*.send", "email.sender", false},
		{"a*a", "a", false},
		{"a*a", "aa", true},
		{"a*b*c", "a.b.b.c", true},
		{"a*b*c", "acb", false},
		{"*ab*ab", "ab", false},
		{"*ab*ab", "abab", true},
		{"a**b", "axb", true},
		{"a?b", "axb", false},
		{"a?b", "a?b", true},
		{"[a]", "a", false},
		{"a.b", "axb", false},
	} {
		if got := apcore.MatchPattern(test.pattern, test.id); got != test.want {
			t.Errorf("%q on %q: %v", test.pattern, test.id, got)
		}
	}
}

func TestSpecificity(t *testing.T) {
	for pattern, want := range map[string]int{
		"*": 0, "api.*": 2, "api.handler.*": 4, "api.handler.submit": 6, "api.h*": 3, "*.*": 0, "*.send": 2, "a*": 1, "a": 2,
	} {
		if got := apcore.Specificity(pattern); got != want {
			t.Errorf("%q: %d, want %d", pattern, got, want)
		}
	}
}

func TestMatchGlob(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		want          bool
	}{
		{"?", "é", true},
		{"??", "é", false},
		{"*??", "日", false},
		{"*??", "日本", true},
		{"*?", "", false},
		{"a?c", "a.c", true},
		{"A*", "abc", false},
		{"*a?c*", "xxabacx", false},
		{"*a?c*", "xxabacabcx", true},
		{"*", "a\nb", true},
		{"?*?", "ab", true},
		{"?*?", "a", false},
		{"*.*.*", "a.b", false},
	} {
		if got := apcore.MatchGlob(test.pattern, test.name); got != test.want {
			t.Errorf("%q on %q: %v", test.pattern, test.name, got)
		}
	}
}

// A pattern from outside must not take the process down.
func TestMatchGlobDoesNotBlowUp(t *testing.T) {
	pattern, name := strings.Repeat("*a", 40)+"b", strings.Repeat("a", 4000)
	begin := time.Now()
	if apcore.MatchGlob(pattern, name) || apcore.MatchPattern(pattern, name) {
		t.Error("it matches")
	}
	if spent := time.Since(begin); spent > 5*time.Second {
		t.Errorf("it took %v", spent)
	}
}

// asRegexp is the reference: Go's regular expressions, which never blow up.
func asRegexp(pattern, special string) *regexp.Regexp {
	var out strings.Builder
	for _, char := range pattern {
		switch {
		case char == '*':
			out.WriteString(".*")
		case char == '?' && strings.ContainsRune(special, '?'):
			out.WriteString(".")
		default:
			out.WriteString(regexp.QuoteMeta(string(char)))
		}
	}
	return regexp.MustCompile(`(?s)\A` + out.String() + `\z`)
}

func FuzzMatchPattern(f *testing.F) { fuzzMatcher(f, apcore.MatchPattern, "*") }

func FuzzMatchGlob(f *testing.F) { fuzzMatcher(f, apcore.MatchGlob, "*?") }

func fuzzMatcher(f *testing.F, match func(pattern, name string) bool, special string) {
	f.Helper()
	for _, seed := range [][2]string{{"a*b", "axb"}, {"*?a*", "aéa"}, {"**", ""}, {"a*a", "a"}, {"[a]*", "[a]b"}, {"*??", "日"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if !utf8.ValidString(pattern) || !utf8.ValidString(name) || len(pattern) > 200 {
			match(pattern, name) // must not panic
			return
		}
		if got, want := match(pattern, name), asRegexp(pattern, special).MatchString(name); got != want {
			t.Errorf("%q on %q: %v, want %v", pattern, name, got, want)
		}
	})
}

func BenchmarkMatchPattern(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		apcore.MatchPattern("payments.*.refund", "payments.eu.card.refund")
	}
}
