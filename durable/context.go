package durable

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Claim is what a call says about on whose behalf it is made. Whoever may start
// workflows can write it, so it is a claim until somebody has verified it.
type Claim struct {
	// ModuleID and CallID name the call.
	ModuleID, CallID string
	// Context is the caller's context; its identity is nil for an anonymous one.
	Context *apcore.Context
	// Wire is the context as it came, with fields that this version does not know,
	// such as a signature.
	Wire json.RawMessage
}

// CheckContext says what is wrong with a context in its wire form, before
// anything takes what is missing for a default (apcore §5.7): trace_id,
// call_chain, identity and data must be there with their types, identity may be
// null and data absent. Fields it does not know are left alone. It fails with
// GENERAL_INVALID_INPUT naming every field.
func CheckContext(wire map[string]any) error {
	var wrong []string
	if id, ok := wire["trace_id"].(string); !ok || id == "" {
		wrong = append(wrong, "trace_id must be a text")
	}
	if !isTexts(wire["call_chain"]) {
		wrong = append(wrong, "call_chain must be a list of module ids")
	}
	if caller, ok := wire["caller_id"]; ok && caller != nil {
		if _, text := caller.(string); !text {
			wrong = append(wrong, "caller_id must be a text or null")
		}
	}
	wrong = append(wrong, identityFaults(wire)...)
	if data, ok := wire["data"]; ok {
		if _, object := data.(map[string]any); !object {
			wrong = append(wrong, "data must be an object")
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return newError(apcore.CodeInvalidInput, "the call's context is incomplete: %s", strings.Join(wrong, "; "))
}

func identityFaults(wire map[string]any) []string {
	identity, ok := wire["identity"]
	if !ok {
		return []string{"identity is missing: null says that the caller is anonymous"}
	}
	if identity == nil {
		return nil
	}
	object, ok := identity.(map[string]any)
	if !ok {
		return []string{"identity must be an object or null"}
	}
	var wrong []string
	for _, key := range []string{"id", "type"} {
		if text, ok := object[key].(string); !ok || text == "" {
			wrong = append(wrong, "identity."+key+" must be a text")
		}
	}
	if roles, ok := object["roles"]; ok && !isTexts(roles) {
		wrong = append(wrong, "identity.roles must be a list of texts")
	}
	return wrong
}

func isTexts(value any) bool {
	list, ok := value.([]any)
	if !ok {
		return false
	}
	for _, item := range list {
		if _, ok := item.(string); !ok {
			return false
		}
	}
	return true
}

// readContext rebuilds the caller's context and has it verified.
func (i *Invoker) readContext(ctx context.Context, request CallRequest) (*apcore.Context, error) {
	wire, err := apcore.DecodeObject(request.Context)
	if err != nil {
		return nil, newError(apcore.CodeInvalidInput, "context of the call of module %q: %w", request.ModuleID, err)
	}
	if err := CheckContext(wire); err != nil {
		return nil, err
	}
	c := apcore.DeserializeContext(wire)
	if i.opts.VerifyContext == nil {
		return c, nil
	}
	err = i.opts.VerifyContext(ctx, Claim{ModuleID: request.ModuleID, CallID: request.CallID, Context: c, Wire: request.Context})
	if err != nil {
		return nil, unverified(request, err)
	}
	return c, nil
}

// unverified keeps an error that asks for another attempt, such as that of a key
// server which is away; everything else is a refusal.
func unverified(request CallRequest, err error) error {
	if found := apcore.AsError(err); found != nil && found.Retryable != nil && *found.Retryable {
		return &Failure{Err: found.WithDetail("module_id", request.ModuleID), Retry: true, NotStarted: true}
	}
	return newError(apcore.CodeACLDenied, "the context of the call of module %q is refused: %w", request.ModuleID, err).
		WithDetail("module_id", request.ModuleID)
}

// shown is an identity as approvers see it: attributes are redacted like inputs,
// since a token may well be among them.
func (i *Invoker) shown(identity *apcore.Identity) *apcore.Identity {
	if identity == nil || len(identity.Attrs()) == 0 {
		return identity
	}
	return apcore.NewIdentity(identity.ID(), identity.Type(), identity.Roles(), i.executor.Redactor().Redact(identity.Attrs(), nil))
}
