package apcore_test

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// driveACL reads a case's rules as a document and asks its question.
func driveACL(test map[string]any, opts apcore.ACLOptions) (bool, error) {
	document, err := json.Marshal(map[string]any{"rules": test["rules"], "default_effect": test["default_effect"]})
	if err != nil {
		return false, err
	}
	acl, err := apcore.ParseACL(document, opts)
	if err != nil {
		return false, err
	}
	var c *apcore.Context
	identity, known := test["caller_identity"].(map[string]any)
	depth, deep := test["call_depth"].(float64)
	if known || deep {
		options := apcore.ContextOptions{}
		if known {
			options.Identity = apcore.IdentityFromMap(identity)
		}
		c = apcore.NewContext(options)
		for range int(depth) {
			c = c.Child("link")
		}
	}
	return acl.Check(text(test["caller_id"]), text(test["target_id"]), c), nil
}

func driveACLEvaluation(_ *fixture, test map[string]any) error {
	got, err := driveACL(test, apcore.ACLOptions{Logger: logTo(&ledger{})})
	c := &check{}
	c.that(err == nil, "rules: %v", err)
	c.that(got == test["expected"], "check is %t", got)
	return c.err()
}

// driveACLHandlerError gives every case a context, without which no handler
// runs.
func driveACLHandlerError(f *fixture, test map[string]any) error {
	log := &auditLog{}
	opts := apcore.ACLOptions{Audit: log.take, Logger: logTo(&ledger{}), Conditions: map[string]apcore.ACLCondition{
		text(f.whole["throwing_condition_key"]): func(context.Context, any, apcore.AccessRequest) (bool, error) {
			panic(errors.New("thrown"))
		},
	}}
	test["call_depth"] = 1.0
	got, err := driveACL(test, opts)
	if err != nil || len(log.entries) != 1 {
		panic("no baseline entry may hide this")
	}
	if present := log.entries[0].HandlerError != nil; present != test["expected_audit_handler_error_present"] {
		panic("no baseline entry may hide a missing handler_error")
	}
	c := &check{}
	c.that(got == test["expected"], "check is %t", got)
	return c.err()
}
