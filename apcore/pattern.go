package apcore

import (
	"strings"
	"unicode/utf8"
)

// MatchPattern reports whether a module id matches a pattern of access rules,
// policies and pipelines (apcore §2.4, A08). Only * is special: it stands for
// any run of characters, dots included. Without * the id must be equal; ? is an
// ordinary character, so a pattern with one matches no legal id.
func MatchPattern(pattern, id string) bool {
	head, rest, starred := strings.Cut(pattern, "*")
	if !starred {
		return pattern == id
	}
	id, ok := strings.CutPrefix(id, head)
	if !ok {
		return false
	}
	for {
		part, after, more := strings.Cut(rest, "*")
		if !more {
			return strings.HasSuffix(id, part)
		}
		_, id, ok = strings.Cut(id, part)
		if !ok {
			return false
		}
		rest = after
	}
}

// Specificity ranks a module pattern: the higher, the more it says (§2.5, A10).
// "*" alone is 0; otherwise each dot segment counts 2 if it is literal, 1 if it
// contains a *, 0 if it is one.
func Specificity(pattern string) int {
	score := 0
	for segment := range strings.SplitSeq(pattern, ".") {
		switch {
		case segment == "*":
		case strings.Contains(segment, "*"):
			score++
		default:
			score += 2
		}
	}
	return score
}

// MatchGlob reports whether a name matches a glob as used for sensitive keys,
// event types and file names (§2.6, A25): * stands for any run of characters,
// dots and slashes included, ? for exactly one; all else is literal. The match
// covers the whole name and takes account of case. It never goes back beyond
// the last *, so that the time is bounded by the product of the two lengths.
func MatchGlob(pattern, name string) bool {
	p, n := 0, 0
	star, mark := -1, 0 // the last * and the place in name up to which it reaches
	for n < len(name) {
		_, size := utf8.DecodeRuneInString(name[n:])
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && pattern[p] == '?':
			p++
			n += size
		case strings.HasPrefix(pattern[p:], name[n:n+size]):
			p += size
			n += size
		case star < 0:
			return false
		default:
			_, size = utf8.DecodeRuneInString(name[mark:])
			mark += size
			p, n = star+1, mark
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
