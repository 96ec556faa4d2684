package apcore

import (
	"context"
	"time"
)

// Defaults of [ReaperOptions].
const (
	DefaultTaskTTL       = time.Hour
	DefaultSweepInterval = 5 * time.Minute
)

// ReaperOptions configures a [Reaper].
type ReaperOptions struct {
	// TTL is how long ended tasks are kept; zero means an hour.
	TTL time.Duration
	// SweepInterval is the time between two sweeps and before the first one; zero
	// means five minutes.
	SweepInterval time.Duration
}

// Reaper deletes the records of tasks that ended long ago, until it is stopped.
type Reaper struct {
	cancel context.CancelFunc
	ended  chan struct{}
}

// Stop ends the reaper and waits until it has ended. It may be called often.
func (r *Reaper) Stop() {
	r.cancel()
	<-r.ended
}

// StartReaper starts the reaper of this manager, which has none by default. What
// fails in a sweep is logged, and the next one tries again. It fails with
// REAPER_ALREADY_RUNNING until the former reaper is stopped, and with
// GENERAL_INVALID_INPUT for negative options and after a shutdown.
func (m *AsyncTaskManager) StartReaper(opts ReaperOptions) (*Reaper, error) {
	if opts.TTL < 0 || opts.SweepInterval < 0 {
		return nil, NewError(CodeInvalidInput, "the reaper's TTL is %v and its interval %v: give positive ones, or zero for the defaults", opts.TTL, opts.SweepInterval)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, errShutDown()
	}
	if m.reaper != nil {
		return nil, NewError(CodeReaperAlreadyRunning, "the reaper runs already: stop it first")
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &Reaper{cancel: cancel, ended: make(chan struct{})}
	m.reaper = r
	go m.reap(ctx, r, timeoutOr(opts.TTL, DefaultTaskTTL), timeoutOr(opts.SweepInterval, DefaultSweepInterval))
	return r, nil
}

func (m *AsyncTaskManager) reap(ctx context.Context, r *Reaper, ttl, interval time.Duration) {
	defer close(r.ended)
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.reaper = nil
	}()
	defer r.cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			m.sweep(ctx, ttl)
		}
	}
}

// sweep deletes what it can; one failure does not keep it from the rest.
func (m *AsyncTaskManager) sweep(ctx context.Context, ttl time.Duration) {
	expired, err := m.store.ListExpired(ctx, epochSeconds(time.Now().Add(-ttl)))
	if err != nil {
		m.logger.Error("apcore: reaper cannot list expired tasks", "error", outside.text(err.Error()))
		return
	}
	for i := range expired {
		if err := m.store.Delete(ctx, expired[i].TaskID); err != nil {
			m.logger.Error("apcore: reaper cannot delete a task", "task_id", expired[i].TaskID, "error", outside.text(err.Error()))
		}
	}
}
