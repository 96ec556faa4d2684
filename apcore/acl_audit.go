package apcore

import (
	"encoding/json"
	"log/slog"
	"strings"
	"time"
)

// EventACLAudit is the log message of the default audit sink (§6.3.1).
const EventACLAudit = "apcore.acl.audit"

// AuditEntry is the record of one check (apcore §6.3.1). The JSON names are the
// standard's; nil is null.
type AuditEntry struct {
	// Timestamp is written in UTC with milliseconds.
	Timestamp time.Time `json:"timestamp"`
	// CallerID is the calling module or [ExternalCaller].
	CallerID string `json:"caller_id"`
	TargetID string `json:"target_id"`
	// Decision is "allow" or "deny".
	Decision ACLEffect `json:"decision"`
	// Reason is "rule_match", "default_effect" or "no_rules".
	Reason string `json:"reason"`
	// MatchedRule is the deciding rule's description, nil if it has none or no
	// rule decided.
	MatchedRule      *string `json:"matched_rule"`
	MatchedRuleIndex *int    `json:"matched_rule_index"`
	// IdentityType is nil if nobody is known to act.
	IdentityType *string `json:"identity_type"`
	// Roles is never nil.
	Roles []string `json:"roles"`
	// CallDepth and TraceID are nil for a check without context.
	CallDepth *int    `json:"call_depth"`
	TraceID   *string `json:"trace_id"`
	// HandlerError names each condition that could not be evaluated, with its
	// rule, which need not be the matched one; nil if there was none.
	HandlerError *string `json:"handler_error"`
	// ApprovalRequired is false on a denial.
	ApprovalRequired bool `json:"approval_required"`
}

// MarshalJSON writes the wire form.
func (e AuditEntry) MarshalJSON() ([]byte, error) {
	type plain AuditEntry
	if e.Roles == nil {
		e.Roles = []string{}
	}
	return json.Marshal(struct {
		Timestamp string `json:"timestamp"`
		plain
	}{e.Timestamp.UTC().Format(timestampLayout), plain(e)})
}

// attrs are the 13 fields for a structured log.
func (e *AuditEntry) attrs() []slog.Attr {
	return []slog.Attr{
		slog.String("timestamp", e.Timestamp.UTC().Format(timestampLayout)),
		slog.String("caller_id", e.CallerID),
		slog.String("target_id", e.TargetID),
		slog.String("decision", string(e.Decision)),
		slog.String("reason", e.Reason),
		slog.Any("matched_rule", valueOrNil(e.MatchedRule)),
		slog.Any("matched_rule_index", valueOrNil(e.MatchedRuleIndex)),
		slog.Any("identity_type", valueOrNil(e.IdentityType)),
		slog.Any("roles", e.Roles),
		slog.Any("call_depth", valueOrNil(e.CallDepth)),
		slog.Any("trace_id", valueOrNil(e.TraceID)),
		slog.Any("handler_error", valueOrNil(e.HandlerError)),
		slog.Bool("approval_required", e.ApprovalRequired),
	}
}

func valueOrNil[T any](pointer *T) any {
	if pointer == nil {
		return nil
	}
	return *pointer
}

// auditConfig is the audit block of a file.
type auditConfig struct {
	enabled       bool
	level         slog.Level
	includeDenied bool
	declared      []string // the keys that the file gives
}

// record delivers the entry of a check to the one sink, if there is one.
func (a *ACL) record(s *aclState, q *question, decision AccessDecision) {
	switch {
	case a.audit != nil:
		a.deliver(func() { a.audit(q.ctx, s.entry(q, decision)) })
	case s.audit == nil || !s.audit.enabled || !decision.Allowed && !s.audit.includeDenied:
	default:
		a.deliver(func() {
			entry := s.entry(q, decision)
			a.logger.LogAttrs(q.ctx, s.audit.level, EventACLAudit, entry.attrs()...)
		})
	}
}

// deliver keeps a failing sink away from the decision; the first failure is
// reported.
func (a *ACL) deliver(send func()) {
	defer func() {
		if cause := recover(); cause != nil {
			a.broken.Do(func() { a.report(typeName(cause)) })
		}
	}()
	send()
}

// report must survive the logger that has just failed.
func (a *ACL) report(panicType string) {
	defer func() { _ = recover() }()
	a.logger.Error("apcore: the audit sink of the access rules panicked", "panic_type", panicType)
}

func (s *aclState) entry(q *question, decision AccessDecision) AuditEntry {
	entry := AuditEntry{
		Timestamp: time.Now().UTC(), CallerID: q.request.CallerID, TargetID: q.request.TargetID,
		Decision: ACLDeny, Reason: decision.Reason, Roles: []string{},
		HandlerError: q.handlerError(), ApprovalRequired: decision.ApprovalRequired,
	}
	if decision.Allowed {
		entry.Decision = ACLAllow
	}
	if decision.MatchedRule != nil {
		entry.MatchedRuleIndex = new(*decision.MatchedRule)
		if text := s.rules[*decision.MatchedRule].Description; text != "" {
			entry.MatchedRule = &text
		}
	}
	if c := q.request.Context; c != nil {
		entry.CallDepth, entry.TraceID = new(c.Depth()), new(c.TraceID())
	}
	if identity := q.identity(); identity != nil {
		entry.IdentityType, entry.Roles = new(identity.Type()), identity.Roles()
	}
	return entry
}

// warnOfAudit tells once what a file's audit block does not do.
func (a *ACL) warnOfAudit(config *auditConfig) {
	switch {
	case config == nil:
	case a.audit != nil:
		a.inapplicable.Do(func() {
			a.logger.Warn("apcore: ACLOptions.Audit takes the entries, the audit block of the access rules has no effect", "fields", strings.Join(config.declared, ","))
		})
	case !config.includeDenied:
		a.logger.Warn("apcore: the audit of access rules leaves out denied calls: include_denied is false")
	}
}
