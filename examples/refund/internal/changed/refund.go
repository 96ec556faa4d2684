// Package changed holds a careless change of the refund workflow: the buyer is
// told before the money moves. Its name is the same, so a replay has to notice.
package changed

import (
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/examples/refund"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// Refund tells the buyer too early.
func Refund(ctx workflow.Context, in refund.Request) (*refund.Receipt, error) {
	order, err := temporal.Call[refund.Order](ctx, refund.LookupModule, refund.LookupInput{OrderID: in.OrderID})
	if err != nil {
		return nil, err
	}
	if _, err := temporal.Call[refund.EmailSent](ctx, refund.EmailModule, refund.EmailInput{To: order.Email}); err != nil {
		return nil, err
	}
	paid, err := temporal.Call[refund.Refunded](ctx, refund.RefundModule, refund.RefundInput{
		OrderID: order.OrderID, Amount: order.Amount, Currency: order.Currency, Card: in.Card,
	})
	return &refund.Receipt{Refund: paid}, err
}
