package apcore

import (
	"context"
	"fmt"
)

// guardedStore stands between a manager and a store: the manager calls it from
// its own goroutines, where a panic would end the process. A panic is a store
// that cannot answer.
type guardedStore struct{ store TaskStore }

func (g guardedStore) Save(ctx context.Context, info TaskInfo) (err error) {
	defer recoverStore("save", &err)
	return g.store.Save(ctx, info)
}

func (g guardedStore) Get(ctx context.Context, taskID string) (info *TaskInfo, err error) {
	defer recoverStore("get", &err)
	return g.store.Get(ctx, taskID)
}

func (g guardedStore) List(ctx context.Context, status *TaskStatus) (infos []TaskInfo, err error) {
	defer recoverStore("list", &err)
	return g.store.List(ctx, status)
}

func (g guardedStore) Delete(ctx context.Context, taskID string) (err error) {
	defer recoverStore("delete", &err)
	return g.store.Delete(ctx, taskID)
}

func (g guardedStore) ListExpired(ctx context.Context, before float64) (infos []TaskInfo, err error) {
	defer recoverStore("list_expired", &err)
	return g.store.ListExpired(ctx, before)
}

func recoverStore(operation string, err *error) {
	if cause := recover(); cause != nil {
		*err = NewTaskStoreError(operation, fmt.Errorf("the store panicked with a %s", typeName(cause)))
	}
}
