package temporal

import (
	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// omittedArguments stands for arguments that are too much for one answer.
const omittedArguments = "too much for one answer: ask for this approval alone"

// answer is what the approvals query says: every approval, or the one of this id.
// When that is more than a query can carry, arguments are left out, those of
// closed approvals first, the oldest first.
func (d *desk) answer(approvalID string) []durable.Approval {
	list := d.inbox.List()
	if approvalID != "" {
		only := []durable.Approval{}
		for i := range list {
			if list[i].ApprovalID == approvalID {
				only = append(only, list[i])
			}
		}
		return only
	}
	sizes, total := make([]int, len(list)), 0
	for i := range list {
		sizes[i] = approvalSize(&list[i])
		total += sizes[i]
	}
	limit := d.state.limits.MaxResultBytes - answerBytes
	for _, closed := range []bool{true, false} {
		for i := range list {
			if total > limit && (list[i].Status != durable.ApprovalIsPending) == closed {
				list[i].Arguments = durable.Object{"omitted": omittedArguments}
				total += approvalSize(&list[i]) - sizes[i]
			}
		}
	}
	return list
}

// answerBytes is what a payload has around a list.
const answerBytes = 1 << 10

func approvalSize(approval *durable.Approval) int {
	text, err := apcore.EncodeJSON(approval)
	if err != nil {
		return 0 // it came as JSON
	}
	return durable.EncodedSize(text) + 1
}
