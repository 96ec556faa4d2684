package testsuite

import (
	"context"
	"errors"
	"fmt"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// spoil changes everything that a copy must not share.
func spoil(info *apcore.TaskInfo) {
	for _, p := range []*float64{info.StartedAt, info.CompletedAt} {
		if p != nil {
			*p = -1
		}
	}
	if info.Error != nil {
		*info.Error = "spoilt"
	}
	if info.Result != nil {
		nested, _ := info.Result["nested"].(map[string]any)
		if items, _ := nested["list"].([]any); len(items) > 0 {
			items[0] = "spoilt"
		}
		info.Result["text"] = "spoilt"
	}
	info.Status = "spoilt"
}

func checkCopiesIn(ctx context.Context, store apcore.TaskStore) error {
	for _, status := range []apcore.TaskStatus{apcore.TaskCompleted, apcore.TaskFailed} {
		given := record("task", status)
		if err := saveAll(ctx, store, given); err != nil {
			return err
		}
		spoil(&given)
		if err := holds(ctx, store, record("task", status)); err != nil {
			return fmt.Errorf("a saved record changed with the one that was given: %w", err)
		}
	}
	return nil
}

func checkCopiesOut(ctx context.Context, store apcore.TaskStore) error {
	completed, failed := record("completed", apcore.TaskCompleted), record("failed", apcore.TaskFailed)
	if err := saveAll(ctx, store, completed, failed); err != nil {
		return err
	}
	readers := map[string]func() ([]apcore.TaskInfo, error){
		"List":        func() ([]apcore.TaskInfo, error) { return store.List(ctx, nil) },
		"ListExpired": func() ([]apcore.TaskInfo, error) { return store.ListExpired(ctx, 1800000000) },
		"Get": func() ([]apcore.TaskInfo, error) {
			a, errA := store.Get(ctx, "completed")
			b, errB := store.Get(ctx, "failed")
			if err := errors.Join(errA, errB); err != nil || a == nil || b == nil {
				return nil, err
			}
			return []apcore.TaskInfo{*a, *b}, nil
		},
	}
	for name, read := range readers {
		infos, err := read()
		if err != nil || len(infos) != 2 {
			return fmt.Errorf("%s returned %d records and %w, want 2", name, len(infos), orNone(err))
		}
		spoil(&infos[0])
		spoil(&infos[1])
		if err := errors.Join(holds(ctx, store, completed), holds(ctx, store, failed)); err != nil {
			return fmt.Errorf("a stored record changed with the one that %s returned: %w", name, err)
		}
	}
	return nil
}
