package apcore_test

import (
	"context"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// driveStorage plays the operations of a case on the store in memory.
func driveStorage(_ *fixture, test map[string]any) error {
	c := &check{}
	store, ctx := &apcore.InMemoryStorage{}, context.Background()
	got := map[string]any{}
	for _, operation := range list(object(test["input"])["operations"]) {
		op := object(operation)
		space, key := text(op["namespace"]), text(op["key"])
		switch text(op["op"]) {
		case "save":
			value := []byte(text(op["value"]))
			c.that(store.Save(ctx, space, key, value) == nil, "save")
			value[0] = '?' // the store has a copy
		case "get":
			value, ok, err := store.Get(ctx, space, key)
			c.that(err == nil, "get: %v", err)
			got["final_get_value"], got[space+"_namespace_value"] = nil, nil
			if ok {
				got["final_get_value"], got[space+"_namespace_value"] = string(value), string(value)
			}
		case "list":
			keys, err := store.List(ctx, space, text(op["prefix"]))
			c.that(err == nil && cmp.Equal(keys, texts(object(test["expected"])["matched_keys_sorted"])), "list: %v, %v", keys, err)
		case "delete":
			c.that(store.Delete(ctx, space, key) == nil, "delete")
		default:
			c.that(false, "unknown operation %v", op)
		}
	}
	for key, want := range object(test["expected"]) {
		if key != "raised_error" && key != "matched_keys_sorted" {
			c.that(got[key] == want, "%s is %v, want %v", key, got[key], want)
		}
	}
	return c.err()
}
