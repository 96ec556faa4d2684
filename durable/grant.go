package durable

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// ApprovalID names the approval of one call and round. It is the same on every
// attempt, and different for every other call, an equal one included.
func ApprovalID(callID string, round int) string {
	sum := sha256.Sum256([]byte(callID + "\n" + strconv.Itoa(round)))
	return "apr-" + hex.EncodeToString(sum[:10])
}

// Requester names an identity for a grant: "<type>:<id>", empty for nil.
func Requester(identity *apcore.Identity) string {
	if identity == nil {
		return ""
	}
	return identity.Type() + ":" + identity.ID()
}

// argumentsDigest is the digest that an approval is bound to: bare, or an HMAC
// of it when there is a key.
func argumentsDigest(arguments map[string]any, key []byte) (string, error) {
	digest, err := apcore.ContentHash(arguments)
	if err != nil || len(key) == 0 {
		return digest, err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("arguments\n" + digest))
	return hex.EncodeToString(mac.Sum(nil)), nil
}

// seal computes the HMAC of everything else in the grant; no key, no seal.
func (g Grant) seal(key []byte) string {
	if len(key) == 0 {
		return ""
	}
	g.Seal = ""
	text, err := json.Marshal(g)
	if err != nil {
		return "" // a grant holds texts and times only; an empty seal never verifies
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return hex.EncodeToString(mac.Sum(nil))
}

// check compares the grant that an approver decided about with the call that
// wants to use it now. Each difference has a code of its own.
func (g Grant) check(now Grant, decision Decision, key []byte) error {
	if len(key) > 0 && !hmac.Equal([]byte(g.Seal), []byte(g.seal(key))) {
		return g.refuse(CodeGrantSeal, "its seal does not fit: it was not issued by this worker's key")
	}
	switch {
	case g.ApprovalID != decision.ApprovalID:
		return g.refuse(CodeGrantApproval, "the decision names approval "+decision.ApprovalID)
	case g.CallID != now.CallID:
		return g.refuse(CodeGrantCall, "it belongs to call "+g.CallID+", not to "+now.CallID)
	case g.Module.ID != now.Module.ID:
		return g.refuse(CodeGrantModule, "it belongs to module "+g.Module.ID+", not to "+now.Module.ID)
	case g.Module.Version != now.Module.Version:
		return g.refuse(CodeGrantVersion, "the module has version "+now.Module.Version+", the approver saw "+g.Module.Version)
	case g.Module.SchemaHash != now.Module.SchemaHash:
		return g.refuse(CodeGrantSchema, "the module's schemas are not those the approver saw")
	case g.ArgumentsDigest != now.ArgumentsDigest:
		return g.refuse(CodeGrantArguments, "the arguments are not those the approver saw")
	case g.Requester != now.Requester:
		return g.refuse(CodeGrantRequester, "another identity asks than the approver saw")
	case !g.Deadline.IsZero() && !decision.DecidedAt.Before(g.Deadline):
		return g.refuse(CodeGrantExpired, "the decision fell after the deadline")
	}
	return nil
}

func (g Grant) refuse(code apcore.Code, why string) error {
	return newError(code, "approval %s cannot be used for this call: %s", g.ApprovalID, why).
		WithDetail("module_id", g.Module.ID).WithDetail("approval_id", g.ApprovalID)
}
