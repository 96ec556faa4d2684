package apcore

import (
	"slices"
	"strings"
)

// MaxModuleIDLength bounds a module id, in characters (apcore §2.1).
const MaxModuleIDLength = 192

// maxShownID bounds what an error message repeats of a malformed id.
const maxShownID = 64

// reservedWords may not be the first segment of a registered id.
var reservedWords = []string{"system", "internal", "core", "apcore", "plugin", "schema", "acl"}

// ReservedWords returns a copy of the words that the standard keeps for the
// framework (§2.6). They are forbidden as a whole first segment and nowhere
// else: systems.report and executor.schema.validate are free.
func ReservedWords() []string { return slices.Clone(reservedWords) }

// ValidateModuleID checks the grammar of §2.1: segments of a-z, 0-9 and _ that
// begin with a letter, joined by dots, [MaxModuleIDLength] characters at most.
// It fails with an [*Error] of code INVALID_MODULE_ID that says what is wrong;
// details.module_id holds the id, cut to that length. Reserved words pass: they
// are a matter of registration.
func ValidateModuleID(id string) error {
	if reason := idFault(id); reason != "" {
		return NewError(CodeInvalidModuleID, "module id %q is malformed: %s", cut(id, maxShownID), reason).
			WithDetail("module_id", cut(id, MaxModuleIDLength))
	}
	return nil
}

func idFault(id string) string {
	if id == "" {
		return "it is empty"
	}
	if len(id) > MaxModuleIDLength {
		return "it is longer than 192 characters"
	}
	for segment := range strings.SplitSeq(id, ".") {
		if reason := segmentFault(segment); reason != "" {
			return reason
		}
	}
	return ""
}

func segmentFault(segment string) string {
	if segment == "" {
		return "a segment is empty"
	}
	if !isLower(segment[0]) {
		return "a segment does not begin with a letter from a to z"
	}
	for i := range len(segment) {
		if c := segment[i]; !isLower(c) && !isDigit(c) && c != '_' {
			return "only a-z, 0-9, _ and . are allowed"
		}
	}
	return ""
}

// IDConflict says why an id cannot or should not be registered (§2.6, A03).
type IDConflict struct {
	// Type is one of the constants below.
	Type IDConflictType `json:"type"`
	// Severity is "error", or "warning" for a case collision.
	Severity string `json:"severity"`
	// With is the existing id or the reserved word the new id collides with.
	With string `json:"with"`
}

// IDConflictType is the kind of an [IDConflict].
type IDConflictType string

// The three kinds of conflict.
const (
	// ConflictDuplicateID: the id exists.
	ConflictDuplicateID IDConflictType = "duplicate_id"
	// ConflictReservedWord: the first segment is reserved.
	ConflictReservedWord IDConflictType = "reserved_word"
	// ConflictCaseCollision: an id exists that differs in case only; a warning.
	ConflictCaseCollision IDConflictType = "case_collision"
)

// DetectIDConflict compares a new id with existing ones and with the reserved
// words; nil reserved means [ReservedWords]. A duplicate is reported before a
// reserved word, both before a case collision; nil means there is no conflict.
// Reserved words are recognised in any case (§2.6, A03).
func DetectIDConflict(newID string, existing, reserved []string) *IDConflict {
	if slices.Contains(existing, newID) {
		return &IDConflict{Type: ConflictDuplicateID, Severity: "error", With: newID}
	}
	if reserved == nil {
		reserved = reservedWords
	}
	first, _, _ := strings.Cut(newID, ".")
	if i := slices.IndexFunc(reserved, func(word string) bool { return strings.EqualFold(word, first) }); i >= 0 {
		return &IDConflict{Type: ConflictReservedWord, Severity: "error", With: reserved[i]}
	}
	if i := slices.IndexFunc(existing, func(id string) bool { return strings.EqualFold(id, newID) }); i >= 0 {
		return &IDConflict{Type: ConflictCaseCollision, Severity: "warning", With: existing[i]}
	}
	return nil
}

func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// cut shortens a text to at most n bytes without splitting a character.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}
