package apcore

import "strings"

// NormalizeID turns a name of some language into the form of a module id
// (apcore §2.2, A02): it splits at the language's separator ("::" for rust, "."
// for every other language), turns each segment that has a capital letter into
// snake_case, and joins with dots: auth.LoginHandler becomes
// auth.login_handler, HTTPAPIHandler becomes http_api_handler.
//
// It repairs nothing else; check the result with [ValidateModuleID].
// Normalising twice changes nothing.
func NormalizeID(localID, language string) string {
	separator := "."
	if language == "rust" {
		separator = "::"
	}
	segments := strings.Split(localID, separator)
	for i, segment := range segments {
		segments[i] = snakeCase(segment)
	}
	return strings.Join(segments, ".")
}

// CanonicalName is the outcome of [CanonicalizeName]: one of CanonicalName and
// Error is nil.
type CanonicalName struct {
	// OriginalName is the name as it was given.
	OriginalName string `json:"original_name"`
	// CanonicalName is one segment of a module id.
	CanonicalName *string `json:"canonical_name"`
	// Error is "non_ascii", "empty_name", "invalid_start" or "name_too_long".
	Error *string `json:"error"`
}

// CanonicalizeName turns one foreign name, such as a command or an operation
// id, into one segment of a module id (§2.2.1): each run of characters other
// than letters, digits and _ becomes one _, and falls away at the edges; capital
// letters are treated as in [NormalizeID]. Reserved words are fine here.
func CanonicalizeName(name string) CanonicalName {
	segment, fault := canonicalSegment(name)
	if fault != "" {
		return CanonicalName{OriginalName: name, Error: &fault}
	}
	return CanonicalName{OriginalName: name, CanonicalName: &segment}
}

func canonicalSegment(name string) (segment, fault string) {
	for i := range len(name) {
		if name[i] >= 0x80 {
			return "", "non_ascii"
		}
	}
	segment = snakeCase(joinWords(name))
	switch {
	case segment == "":
		return "", "empty_name"
	case !isLower(segment[0]):
		return "", "invalid_start"
	case len(segment) > MaxModuleIDLength:
		return "", "name_too_long"
	}
	return segment, ""
}

// joinWords puts one _ for each run of separators between two words.
func joinWords(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool {
		c := byte(r)
		return !isLower(c) && !isUpper(c) && !isDigit(c) && c != '_'
	})
	return strings.Join(words, "_")
}

// snakeCase puts _ before each word that begins with a capital and lowers ASCII
// letters; a text without capitals stays as it is.
func snakeCase(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); {
		if !isUpper(text[i]) {
			out.WriteByte(text[i])
			i++
			continue
		}
		if i > 0 && (isLower(text[i-1]) || isDigit(text[i-1])) {
			out.WriteByte('_')
		}
		end := capitals(text, i)
		writeCapitals(&out, text[i:end], end < len(text) && isLower(text[end]))
		i = end
	}
	return out.String()
}

func capitals(text string, from int) (end int) {
	for end = from; end < len(text) && isUpper(text[end]); end++ {
	}
	return end
}

// writeCapitals writes a run of capitals; when a lower-case letter follows, the
// last one begins the next word.
func writeCapitals(out *strings.Builder, run string, lowerFollows bool) {
	end := len(run)
	if lowerFollows {
		end--
	}
	words := splitInitialisms(run[:end])
	if lowerFollows {
		words = append(words, run[end:])
	}
	out.WriteString(strings.ToLower(strings.Join(words, "_")))
}

// initialisms are told apart when they stand side by side: the standard's own
// examples (HTTPAPIHandler, DBURLParser) cannot be split by letter case alone.
var initialisms = func() map[string]bool {
	known := map[string]bool{}
	for word := range strings.FieldsSeq(`ACL API ASCII AWS CLI CPU CSS CSV DB DNS DOM EOF FTP GCP GPU GUI GUID
		HTML HTTP HTTPS ID IO IP JSON JWT LLM MCP OS PDF RAM RPC SDK SLA SMTP SQL SSE SSH SSL TCP TLS TTL UDP UI
		UID URI URL UUID VM XML XSRF XSS YAML`) {
		known[word] = true
	}
	return known
}()

const longestInitialism = 5

// splitInitialisms divides a run of capitals that consists of nothing but known
// initialisms; any other run is one word. An empty run has no words.
func splitInitialisms(run string) []string {
	if run == "" {
		return nil
	}
	if initialisms[run] {
		return []string{run}
	}
	next := make([]int, len(run)+1) // next[i] is where the word at i ends, 0 if none fits
	next[len(run)] = len(run)
	for i := len(run) - 1; i >= 0; i-- {
		for j := i + 2; j <= min(i+longestInitialism, len(run)); j++ {
			if next[j] != 0 && initialisms[run[i:j]] {
				next[i] = j
			}
		}
	}
	if next[0] == 0 {
		return []string{run}
	}
	var words []string
	for i := 0; i < len(run); i = next[i] {
		words = append(words, run[i:next[i]])
	}
	return words
}
