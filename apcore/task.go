package apcore

import (
	"encoding/json"
	"math"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// TaskStatus is the state of an async task (apcore, async tasks). A task that
// waits for its next attempt is pending with a retry count above zero.
type TaskStatus string

// The states of a task.
const (
	// TaskPending: the task waits for its turn, or for its next attempt.
	TaskPending TaskStatus = "pending"
	// TaskRunning: the module runs.
	TaskRunning TaskStatus = "running"
	// TaskCompleted: the module returned a result.
	TaskCompleted TaskStatus = "completed"
	// TaskFailed: the last attempt failed.
	TaskFailed TaskStatus = "failed"
	// TaskCancelled: the task was cancelled; its module may have had effects.
	TaskCancelled TaskStatus = "cancelled"
)

// Terminal reports whether nothing follows this state.
func (s TaskStatus) Terminal() bool {
	return s == TaskCompleted || s == TaskFailed || s == TaskCancelled
}

// TaskInfo is the record of one async task, in memory and on the wire. Times are
// seconds since 1970, with fractions. Inputs and context are not part of it, so
// that a record alone cannot run a task again.
type TaskInfo struct {
	// TaskID is a UUID of version 4.
	TaskID   string     `json:"task_id"`
	ModuleID string     `json:"module_id"`
	Status   TaskStatus `json:"status"`
	// SubmittedAt is in seconds since 1970.
	SubmittedAt float64 `json:"submitted_at"`
	// StartedAt is when the first attempt started, in seconds since 1970; nil
	// before it.
	StartedAt *float64 `json:"started_at"`
	// CompletedAt is when the task became terminal, in seconds since 1970; nil
	// before it.
	CompletedAt *float64 `json:"completed_at"`
	// Result is the module's output, nil unless the task is completed.
	Result map[string]any `json:"result"`
	// Error is the text of the last attempt's error, nil unless the task failed.
	Error *string `json:"error"`
	// RetryCount is how many retries have been scheduled, zero at first.
	RetryCount int `json:"retry_count"`
	// MaxRetries is how many there may be.
	MaxRetries int `json:"max_retries"`
}

// Clone returns a deep copy. A result that is no JSON object fails with
// GENERAL_INVALID_INPUT.
func (i TaskInfo) Clone() (TaskInfo, error) {
	if i.Result != nil {
		result, err := jsonvalue.CloneObject(i.Result)
		if err != nil {
			return TaskInfo{}, NewError(CodeInvalidInput, "the result of task %s is no JSON object: %w", i.TaskID, err).
				WithDetail("task_id", i.TaskID)
		}
		i.Result = result
	}
	i.StartedAt, i.CompletedAt, i.Error = copyPointer(i.StartedAt), copyPointer(i.CompletedAt), copyPointer(i.Error)
	return i, nil
}

// UnmarshalJSON reads a record; numbers in the result keep their digits.
func (i *TaskInfo) UnmarshalJSON(data []byte) error {
	type plain TaskInfo
	read := struct {
		plain
		Result json.RawMessage `json:"result"` // hides the plain one
	}{}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	if len(read.Result) > 0 && string(read.Result) != "null" {
		result, err := decodeObject(read.Result)
		if err != nil {
			return err
		}
		read.plain.Result = result
	}
	*i = TaskInfo(read.plain)
	return nil
}

// RetryConfig says how often and how fast a failed task is tried again; an
// attempt that failed is repeated whatever its error says about retrying. Values
// are taken as they are: start from [DefaultRetryConfig].
type RetryConfig struct {
	// MaxRetries bounds the attempts after the first one.
	MaxRetries int `json:"max_retries"`
	// RetryDelayMS is the first pause, in milliseconds.
	RetryDelayMS float64 `json:"retry_delay_ms"`
	// BackoffMultiplier makes every pause longer than the one before.
	BackoffMultiplier float64 `json:"backoff_multiplier"`
	// MaxRetryDelayMS bounds a pause, in milliseconds.
	MaxRetryDelayMS float64 `json:"max_retry_delay_ms"`
}

// DefaultRetryConfig returns the standard's values: no retry, and pauses from one
// second, doubling, up to a minute for those who set MaxRetries.
func DefaultRetryConfig() RetryConfig {
	return RetryConfig{RetryDelayMS: 1000, BackoffMultiplier: 2, MaxRetryDelayMS: 60000}
}

// DelayMS is the pause before retry attempt+1, in milliseconds:
// min(RetryDelayMS * BackoffMultiplier^attempt, MaxRetryDelayMS), with attempt
// counted from zero.
func (c RetryConfig) DelayMS(attempt int) float64 {
	if c.RetryDelayMS == 0 {
		return 0 // also where the power is infinite
	}
	return min(c.RetryDelayMS*math.Pow(c.BackoffMultiplier, float64(attempt)), c.MaxRetryDelayMS)
}

func (c RetryConfig) delay(attempt int) time.Duration {
	nanos := c.DelayMS(attempt) * float64(time.Millisecond)
	if nanos >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(nanos)
}

// Validate fails with GENERAL_INVALID_INPUT for the first field out of bounds:
// numbers have to be finite and not negative.
func (c RetryConfig) Validate() error {
	if c.MaxRetries < 0 {
		return NewError(CodeInvalidInput, "RetryConfig.MaxRetries is %d: give zero or more", c.MaxRetries)
	}
	for _, field := range []struct {
		name  string
		value float64
	}{
		{"RetryDelayMS", c.RetryDelayMS}, {"BackoffMultiplier", c.BackoffMultiplier}, {"MaxRetryDelayMS", c.MaxRetryDelayMS},
	} {
		if math.IsNaN(field.value) || field.value < 0 || math.IsInf(field.value, 0) {
			return NewError(CodeInvalidInput, "RetryConfig.%s is %v: give a finite number, zero or more", field.name, field.value)
		}
	}
	return nil
}

// epochSeconds is a time as records hold it.
func epochSeconds(t time.Time) float64 { return float64(t.UnixMicro()) / 1e6 }

func copyPointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	value := *p
	return &value
}
