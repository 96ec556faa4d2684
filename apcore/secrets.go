package apcore

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Texts shorter than minSecretLength occur by chance, so they are looked for as
// whole words only; those below minWordLength are not looked for.
const (
	minSecretLength = 4
	minWordLength   = 3
)

// secrets collects what redaction hides in the values of one call, in the forms
// in which a text may repeat it.
type secrets struct {
	texts map[string]bool // looked for anywhere
	words map[string]bool // looked for between other characters than letters and digits
}

func newSecrets() *secrets { return &secrets{texts: map[string]bool{}, words: map[string]bool{}} }

// compare walks a value beside its redacted copy and keeps what differs, and the
// passwords in URLs.
func (s *secrets) compare(value, redacted any) {
	switch redacted := redacted.(type) {
	case map[string]any:
		original, _ := value.(map[string]any)
		for key, item := range original {
			s.compare(item, redacted[key])
		}
	case []any:
		original, _ := value.([]any)
		for i, item := range original {
			s.compare(item, redacted[i])
		}
	case string:
		if value != any(redacted) {
			s.collect(value)
			return
		}
		if !strings.Contains(redacted, "://") { // the pattern takes a second for 10 MB
			return
		}
		for _, match := range urlPassword.FindAllStringSubmatch(redacted, -1) {
			s.addText(match[2])
			if plain, err := url.PathUnescape(match[2]); err == nil {
				s.addText(plain)
			}
		}
	}
}

// collect keeps everything in a value that was replaced as a whole.
func (s *secrets) collect(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, item := range value {
			s.collect(item)
		}
	case []any:
		for _, item := range value {
			s.collect(item)
		}
	case string:
		s.addText(value)
		s.addText(strings.TrimSpace(value))
		if parts := strings.Fields(value); len(parts) == 2 { // as in "Bearer abc"
			s.addText(parts[1])
		}
	case nil, bool:
	default:
		for _, form := range numberForms(value) {
			s.addWord(form)
		}
	}
}

func (s *secrets) addText(text string) {
	switch length := utf8.RuneCountInString(text); {
	case length >= minSecretLength:
		for _, form := range writtenForms(text) {
			s.texts[form] = true
		}
	default:
		s.addWord(text)
	}
}

func (s *secrets) addWord(word string) {
	if utf8.RuneCountInString(word) >= minWordLength {
		s.words[word] = true
	}
}

// writtenForms are the ways in which error texts usually show a text: plain,
// quoted, as JSON, and as a part of a URL.
func writtenForms(text string) []string {
	forms := []string{
		text, unquote(strconv.Quote(text)), unquote(strconv.QuoteToASCII(text)), url.QueryEscape(text), url.PathEscape(text),
		strings.TrimPrefix(url.UserPassword("", text).String(), ":"),
	}
	for _, encode := range []func(any) ([]byte, error){EncodeJSON, json.Marshal} { // the latter escapes <, > and &
		if encoded, err := encode(text); err == nil {
			forms = append(forms, unquote(string(encoded)))
		}
	}
	return forms
}

func unquote(quoted string) string { return quoted[1 : len(quoted)-1] }

// numberForms are the digits of a number, without its sign.
func numberForms(number any) []string {
	forms := []string{strings.TrimPrefix(fmt.Sprint(number), "-")}
	if float, err := strconv.ParseFloat(forms[0], 64); err == nil {
		forms = append(forms, strconv.FormatFloat(float, 'f', -1, 64))
	}
	return forms
}

// replacer replaces the texts, the longest first.
func (s *secrets) replacer(replacement string) *strings.Replacer {
	texts := longestFirst(s.texts)
	pairs := make([]string, 0, 2*len(texts))
	for _, text := range texts {
		pairs = append(pairs, text, replacement)
	}
	return strings.NewReplacer(pairs...)
}

// wordPattern finds the words, nil if there are none.
func (s *secrets) wordPattern() *regexp.Regexp {
	words := longestFirst(s.words)
	if len(words) == 0 {
		return nil
	}
	for i, word := range words {
		words[i] = regexp.QuoteMeta(word)
	}
	return regexp.MustCompile(`(^|[^\pL\pN])(?:` + strings.Join(words, "|") + `)($|[^\pL\pN])`)
}

func longestFirst(set map[string]bool) []string {
	texts := make([]string, 0, len(set))
	for text := range set {
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	return texts
}
