package temporal

import (
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/apcore-temporal/apcore-temporal/durable"
)

// SawEnd makes a store remember that a task ended at a time of the test's choice.
func (s *TaskStore) SawEnd(taskID string, at time.Time) { s.ended.saw(taskID, at) }

// Unlisted counts what a store has written and not yet seen listed.
func (s *TaskStore) Unlisted() int { return len(s.overlay.snapshot()) }

// Settle is settle.
func Settle(record *durable.TaskRecord, status enumspb.WorkflowExecutionStatus, closed time.Time) {
	settle(record, status, closed)
}
