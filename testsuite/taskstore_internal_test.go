package testsuite

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

func TestTaskStoreSuiteOfInMemoryStore(t *testing.T) {
	TaskStoreSuite(t, func(*testing.T) apcore.TaskStore { return apcore.NewInMemoryTaskStore() },
		WithBrokenStore(func(*testing.T) apcore.TaskStore { return brokenTaskStore{apcore.NewTaskStoreError} }))
}

// brokenTaskStore fails with what the function makes.
type brokenTaskStore struct {
	fail func(operation string, cause error) *apcore.Error
}

var errBackend = errors.New("connection refused")

func (s brokenTaskStore) Save(context.Context, apcore.TaskInfo) error {
	return s.fail("save", errBackend)
}

func (s brokenTaskStore) Get(context.Context, string) (*apcore.TaskInfo, error) {
	return nil, s.fail("get", errBackend)
}

func (s brokenTaskStore) List(context.Context, *apcore.TaskStatus) ([]apcore.TaskInfo, error) {
	return nil, s.fail("list", errBackend)
}

func (s brokenTaskStore) Delete(context.Context, string) error { return s.fail("delete", errBackend) }

func (s brokenTaskStore) ListExpired(context.Context, float64) ([]apcore.TaskInfo, error) {
	return nil, s.fail("list_expired", errBackend)
}

// flawedTaskStore is the in-memory store with one flaw.
type flawedTaskStore struct {
	*apcore.InMemoryTaskStore
	flaw   string
	shared map[string]*apcore.TaskInfo
	saves  atomic.Int64
}

func (s *flawedTaskStore) Save(ctx context.Context, info apcore.TaskInfo) error {
	switch s.flaw {
	case "shares what is given":
		s.shared[info.TaskID] = &info
	case "moves saved again":
		_ = s.InMemoryTaskStore.Delete(ctx, info.TaskID)
	case "keeps the first", "fails to replace":
		if old, _ := s.InMemoryTaskStore.Get(ctx, info.TaskID); old != nil {
			if s.flaw == "keeps the first" {
				return nil
			}
			return errBackend
		}
	case "loses every tenth":
		if s.saves.Add(1)%10 == 0 {
			return nil
		}
	case "drops the error":
		info.Error = nil
	}
	return s.InMemoryTaskStore.Save(ctx, info)
}

func (s *flawedTaskStore) Get(ctx context.Context, id string) (*apcore.TaskInfo, error) {
	if shared := s.shared[id]; shared != nil {
		return shared, nil
	}
	info, err := s.InMemoryTaskStore.Get(ctx, id)
	if info == nil && s.flaw == "fails for unknown ids" {
		return nil, errBackend
	}
	if s.flaw == "shares what is returned" {
		s.shared[id] = info
	}
	return info, err
}

func (s *flawedTaskStore) List(ctx context.Context, status *apcore.TaskStatus) ([]apcore.TaskInfo, error) {
	if s.flaw == "ignores the filter" {
		status = nil
	}
	infos, err := s.InMemoryTaskStore.List(ctx, status)
	if s.flaw == "sorts by id" {
		slices.SortFunc(infos, func(a, b apcore.TaskInfo) int { return strings.Compare(a.TaskID, b.TaskID) })
	}
	return infos, err
}

func (s *flawedTaskStore) Delete(ctx context.Context, id string) error {
	if info, _ := s.InMemoryTaskStore.Get(ctx, id); info == nil && s.flaw == "refuses to delete twice" {
		return errBackend
	}
	return s.InMemoryTaskStore.Delete(ctx, id)
}

func (s *flawedTaskStore) ListExpired(ctx context.Context, before float64) ([]apcore.TaskInfo, error) {
	if s.flaw != "expires inclusively" {
		return s.InMemoryTaskStore.ListExpired(ctx, before)
	}
	return s.InMemoryTaskStore.ListExpired(ctx, before+0.001)
}

func TestTaskStoreSuiteFindsFlaws(t *testing.T) {
	for flaw, check := range map[string]string{
		"":                        "",
		"shares what is given":    "copies in",
		"shares what is returned": "copies out",
		"moves saved again":       "order of first saves",
		"keeps the first":         "upsert",
		"fails to replace":        "upsert",
		"drops the error":         "round trip",
		"fails for unknown ids":   "unknown id",
		"refuses to delete twice": "delete",
		"ignores the filter":      "status filter",
		"sorts by id":             "order of first saves",
		"expires inclusively":     "expiry",
		"loses every tenth":       "concurrency",
	} {
		t.Run(flaw, func(t *testing.T) {
			found := ""
			for _, c := range taskStoreChecks {
				if flaw != "" && c.name != check {
					continue
				}
				store := &flawedTaskStore{InMemoryTaskStore: apcore.NewInMemoryTaskStore(), flaw: flaw, shared: map[string]*apcore.TaskInfo{}}
				if err := c.check(t.Context(), store); err != nil {
					found = c.name
				}
			}
			if found != check {
				t.Errorf("found by the check %q, want %q", found, check)
			}
		})
	}
	uncoded := brokenTaskStore{func(operation string, cause error) *apcore.Error {
		return apcore.NewError(apcore.CodeInternal, "%s: %w", operation, cause)
	}}
	if checkBroken(t.Context(), uncoded) == nil || checkBroken(t.Context(), apcore.NewInMemoryTaskStore()) == nil {
		t.Error("a broken store with another code, or one that is not broken, passes")
	}
}
