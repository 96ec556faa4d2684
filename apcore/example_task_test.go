package apcore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// waitFor polls a task until it has ended; a store tells nobody by itself.
func waitFor(ctx context.Context, manager *apcore.AsyncTaskManager, taskID string) *apcore.TaskInfo {
	for {
		info, err := manager.GetStatus(ctx, taskID)
		need(err)
		if info.Status.Terminal() {
			return info
		}
		time.Sleep(time.Millisecond)
	}
}

// Async tasks run in the background of this process. A failed attempt is made
// again after a pause, and the record tells how it stands.
func ExampleAsyncTaskManager() {
	attempts := 0
	executor := serve(apcore.ExecutorOptions{}, "video.encode", apcore.Spec{Description: "Encodes a video"},
		func(context.Context, struct{}) (string, error) {
			attempts++
			if attempts == 1 {
				return "", errors.New("the encoder is busy")
			}
			return "encoded", nil
		})
	manager, err := apcore.NewAsyncTaskManager(executor, apcore.AsyncTaskOptions{MaxConcurrent: 2})
	need(err)
	ctx := context.Background()
	retry := apcore.DefaultRetryConfig()
	retry.MaxRetries, retry.RetryDelayMS = 2, 1
	id, err := manager.Submit(ctx, "video.encode", nil, nil, &retry)
	need(err)
	info := waitFor(ctx, manager, id)
	fmt.Println(info.Status, "after", info.RetryCount, "retry")
	output, err := manager.GetResult(ctx, id)
	fmt.Println(output["result"], err)
	fmt.Println(manager.Shutdown(ctx))
	// Output:
	// completed after 1 retry
	// encoded <nil>
	// <nil>
}

// Cancel ends a task for real: its module is told, and what it returns later
// changes nothing.
func ExampleAsyncTaskManager_Cancel() {
	started := make(chan struct{})
	executor := serve(apcore.ExecutorOptions{}, "video.encode", apcore.Spec{Description: "Encodes a video"},
		func(ctx context.Context, _ struct{}) (string, error) {
			close(started)
			<-ctx.Done()
			return "encoded all the same", nil
		})
	manager, err := apcore.NewAsyncTaskManager(executor, apcore.AsyncTaskOptions{})
	need(err)
	ctx := context.Background()
	id, err := manager.Submit(ctx, "video.encode", nil, nil, nil)
	need(err)
	<-started
	fmt.Println(manager.Cancel(ctx, id))
	fmt.Println(manager.Cancel(ctx, id)) // it has ended already
	fmt.Println(waitFor(ctx, manager, id).Status, manager.Shutdown(ctx))
	// Output:
	// true <nil>
	// false <nil>
	// cancelled <nil>
}
