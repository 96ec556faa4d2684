package activities

import (
	"context"
	"time"

	"go.temporal.io/sdk/activity"
)

// beatsPerTimeout is how often a sign of life goes out in the time the server
// waits for one.
const beatsPerTimeout = 3

// heartbeat sends signs of life until stop is called, which waits for the
// sender to end. Without a heartbeat timeout there is nothing to send.
func heartbeat(ctx context.Context) (stop func()) {
	timeout := activity.GetInfo(ctx).HeartbeatTimeout
	if timeout <= 0 {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(timeout / beatsPerTimeout)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				activity.RecordHeartbeat(ctx)
			case <-done:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
