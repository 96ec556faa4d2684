package apcore

import (
	"slices"
	"strings"
)

// The operators of pattern lists and conditions.
const (
	operatorOr  = "$or"
	operatorNot = "$not"
)

// systemCaller is the pattern of calls whose identity has the type "system".
const systemCaller = "@system"

// patternList is a list of patterns without its operator (§6.1).
type patternList struct {
	patterns []string
	negated  bool
}

func newPatternList(patterns []string) patternList {
	switch patterns[0] {
	case operatorOr:
		return patternList{patterns: patterns[1:]}
	case operatorNot:
		return patternList{patterns: patterns[1:], negated: true}
	default:
		return patternList{patterns: patterns}
	}
}

func (l patternList) matches(id string, system bool) bool {
	for _, pattern := range l.patterns {
		if pattern == systemCaller && system || pattern != systemCaller && MatchPattern(pattern, id) {
			return !l.negated
		}
	}
	return l.negated
}

// targetIndex finds the rules that may match a target by the literal head of
// their patterns, so that a check does not pay for the others.
type targetIndex struct {
	exact   map[string][]int // patterns without *
	headed  map[string][]int // patterns with *, by what stands before it
	lengths []int            // of the heads, ascending
}

func newTargetIndex() targetIndex {
	return targetIndex{exact: map[string][]int{}, headed: map[string][]int{}}
}

// add enters a rule; rules come in ascending order.
func (x *targetIndex) add(rule int, targets patternList) {
	for _, pattern := range targets.patterns {
		head, _, starred := strings.Cut(pattern, "*")
		if targets.negated || pattern == systemCaller {
			head, starred = "", true
		}
		if !starred {
			enter(x.exact, pattern, rule)
			continue
		}
		enter(x.headed, head, rule)
		if at, known := slices.BinarySearch(x.lengths, len(head)); !known {
			x.lengths = slices.Insert(x.lengths, at, len(head))
		}
	}
}

func enter(index map[string][]int, key string, rule int) {
	rules := index[key]
	if len(rules) == 0 || rules[len(rules)-1] != rule {
		index[key] = append(rules, rule)
	}
}

// candidates returns the rules that may match, in their order. The result may
// be part of the index.
func (x *targetIndex) candidates(target string) []int {
	found := x.exact[target]
	several := false
	for _, length := range x.lengths {
		if length > len(target) {
			break
		}
		rules := x.headed[target[:length]]
		switch {
		case len(rules) == 0:
		case len(found) == 0:
			found = rules
		default:
			found = slices.Concat(found, rules)
			several = true
		}
	}
	if several {
		slices.Sort(found)
		found = slices.Compact(found)
	}
	return found
}
