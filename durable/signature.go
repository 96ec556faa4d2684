package durable

import (
	"crypto/ed25519"
	"slices"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Signature proves a [Decision]: an Ed25519 signature over what was decided and
// what it is bound to.
type Signature struct {
	// KeyID names the approver's key.
	KeyID string `json:"key_id"`
	// Value is the signature, base64 in JSON.
	Value []byte `json:"value"`
}

// ApproverKey is what a worker knows of a key that may sign decisions.
type ApproverKey struct {
	Public ed25519.PublicKey
	// Approver is who holds the key; a decision under it must name the same.
	Approver string
	// Roles are what the holder is; a decision may claim these and no others.
	Roles []string
}

// SignDecision signs a decision about an approval and returns it with the
// signature. Everything that matters must be set before. It fails with
// GENERAL_INVALID_INPUT for a key of the wrong size and a decision about
// another approval.
func SignDecision(decision Decision, approval Approval, keyID string, key ed25519.PrivateKey) (Decision, error) {
	if len(key) != ed25519.PrivateKeySize {
		return decision, newError(apcore.CodeInvalidInput, "the signing key %q has %d bytes, an Ed25519 private key has %d", keyID, len(key), ed25519.PrivateKeySize)
	}
	if decision.ApprovalID != approval.ApprovalID {
		return decision, newError(apcore.CodeInvalidInput, "the decision is about approval %q, not %q", decision.ApprovalID, approval.ApprovalID)
	}
	text, err := decision.signed(approval.Grant)
	if err != nil {
		return decision, err
	}
	decision.Signature = &Signature{KeyID: keyID, Value: ed25519.Sign(key, text)}
	return decision, nil
}

// signed is the text under a signature: the standard's content hash of what was
// decided, so that every language makes the same.
func (d Decision) signed(grant Grant) ([]byte, error) {
	roles := slices.Clone(d.Roles)
	slices.Sort(roles)
	hash, err := apcore.ContentHash(map[string]any{
		"approval_id": d.ApprovalID, "call_id": grant.CallID, "module_id": grant.Module.ID,
		"module_version": grant.Module.Version, "schema_hash": grant.Module.SchemaHash,
		"arguments_digest": grant.ArgumentsDigest, "requester": grant.Requester,
		"status": string(d.Status), "approved_by": d.ApprovedBy, "roles": roles, "reason": d.Reason,
		"changes": map[string]any(d.Changes),
	})
	return []byte(signaturePrefix + hash), err
}

// signaturePrefix keeps a signature from meaning anything elsewhere.
const signaturePrefix = "apcore decision 1\n"

// verify checks the signature of a decision; with no keys configured nothing
// needs one.
func verifySignature(decision Decision, grant Grant, keys map[string]ApproverKey) error {
	if len(keys) == 0 {
		return nil
	}
	bad := func(why string) error {
		return newError(CodeDecisionSignature, "the decision of %s about approval %s does not count: %s", decision.ApprovedBy, decision.ApprovalID, why).
			WithDetail("approval_id", decision.ApprovalID)
	}
	if decision.Signature == nil {
		return bad("it is not signed")
	}
	key, known := keys[decision.Signature.KeyID]
	if !known {
		return bad("nobody here knows the key " + decision.Signature.KeyID)
	}
	text, err := decision.signed(grant)
	if err != nil || !ed25519.Verify(key.Public, text, decision.Signature.Value) {
		return bad("the signature does not fit what was decided and about what")
	}
	if !samePerson(key.Approver, decision.ApprovedBy) {
		return bad("the key belongs to " + key.Approver)
	}
	for _, role := range decision.Roles {
		if !slices.Contains(key.Roles, role) {
			return bad("the key does not carry the role " + role)
		}
	}
	return nil
}

func validateKeys(keys map[string]ApproverKey) error {
	for id, key := range keys {
		if len(key.Public) != ed25519.PublicKeySize || key.Approver == "" {
			return newError(apcore.CodeInvalidInput, "InvokerOptions.ApproverKeys[%q] needs an Ed25519 public key of %d bytes and an approver", id, ed25519.PublicKeySize)
		}
	}
	return nil
}
