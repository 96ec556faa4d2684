package refund

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// TaskQueue is where the example's worker polls.
const TaskQueue = "refunds"

// Request starts a refund.
type Request struct {
	OrderID string `json:"order_id"`
	Card    string `json:"card"`
	// ApprovalSeconds is how long the approver has; zero leaves it to the worker.
	ApprovalSeconds int `json:"approval_seconds,omitempty"`
}

// Receipt is the workflow's result.
type Receipt struct {
	Refund   Refunded `json:"refund"`
	MailedTo string   `json:"mailed_to"`
}

// Refund looks an order up, pays it back once a person has approved, and tells
// the buyer.
func Refund(ctx workflow.Context, in Request) (*Receipt, error) {
	order, err := temporal.Call[Order](ctx, LookupModule, LookupInput{OrderID: in.OrderID})
	if err != nil {
		return nil, err
	}
	patient := temporal.WithCallOptions(ctx, temporal.CallOptions{ApprovalTimeout: time.Duration(in.ApprovalSeconds) * time.Second})
	refund, err := temporal.Call[Refunded](patient, RefundModule, RefundInput{order.OrderID, order.Amount, order.Currency, in.Card})
	if err != nil {
		return nil, err
	}
	mail, err := temporal.Call[EmailSent](ctx, EmailModule, EmailInput{To: order.Email, Subject: "Refund " + refund.RefundID})
	return &Receipt{Refund: refund, MailedTo: mail.To}, err
}
