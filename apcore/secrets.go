package apcore

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// minSecretLength is the length in characters from which a secret is looked for
// in texts; shorter ones occur there by chance.
const minSecretLength = 4

// hiddenError shows a foreign error with secrets replaced. In this process
// errors.Is and errors.As still find the original; every text, on the wire or in
// a log, is the clean one.
type hiddenError struct {
	text     string
	original error
}

func (e *hiddenError) Error() string { return e.text }

func (e *hiddenError) Unwrap() error { return e.original }

// hide returns an error whose text holds no text input that redaction replaces,
// err itself if it holds none.
func (r *run) hide(err error) error {
	text := err.Error()
	clean := strings.NewReplacer(r.secretPairs()...).Replace(text)
	if clean == text {
		return err
	}
	return &hiddenError{text: clean, original: err}
}

// secretPairs lists the secrets of the inputs, as given and as middleware left
// them, each with its replacement, the longest first.
func (r *run) secretPairs() []string {
	var schema map[string]any
	if r.entry != nil {
		schema = r.entry.descriptor.InputSchema
	}
	found := secrets{}
	for _, inputs := range []map[string]any{r.given, r.inputs} {
		found.compare(inputs, r.executor.redactor.Redact(inputs, schema))
	}
	return found.pairs()
}

// secrets maps texts to what stands in their place.
type secrets map[string]string

// compare walks a value beside its redacted copy and keeps every text that
// differs.
func (s secrets) compare(value, redacted any) {
	switch redacted := redacted.(type) {
	case map[string]any:
		original, _ := value.(map[string]any)
		for key, item := range original {
			s.compare(item, redacted[key])
		}
	case []any:
		original, _ := value.([]any)
		for i, item := range redacted {
			s.compare(original[i], item)
		}
	case string:
		if value != any(redacted) {
			s.collect(value, redacted)
		}
	}
}

// collect keeps every text in a value that was replaced as a whole.
func (s secrets) collect(value any, replacement string) {
	switch value := value.(type) {
	case map[string]any:
		for _, item := range value {
			s.collect(item, replacement)
		}
	case []any:
		for _, item := range value {
			s.collect(item, replacement)
		}
	case string:
		if utf8.RuneCountInString(value) < minSecretLength {
			return
		}
		for _, form := range writtenForms(value) {
			s[form] = replacement
		}
	}
}

// writtenForms are the ways in which error texts usually show a text: plain,
// quoted, and as a part of a URL.
func writtenForms(text string) []string {
	quoted := strconv.Quote(text)
	return []string{
		text, quoted[1 : len(quoted)-1], url.QueryEscape(text), url.PathEscape(text),
		strings.TrimPrefix(url.UserPassword("", text).String(), ":"),
	}
}

func (s secrets) pairs() []string {
	texts := make([]string, 0, len(s))
	for text := range s {
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b))
	})
	pairs := make([]string, 0, 2*len(texts))
	for _, text := range texts {
		pairs = append(pairs, text, s[text])
	}
	return pairs
}
