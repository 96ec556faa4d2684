// Package refund shows a refund that a person has to approve: two modules that
// look and notify, one that moves money, and the workflow that uses them. The
// workflow is an ordinary function; waiting for the approver, surviving a lost
// worker and refunding exactly once are not its business.
package refund

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// Module ids. They are part of running workflows: never change them.
const (
	LookupModule = "payments.lookup"
	RefundModule = "payments.refund"
	EmailModule  = "notify.email"
)

// LookupInput names an order.
type LookupInput struct {
	OrderID string `json:"order_id" jsonschema:"minLength=1"`
}

// Order is what the shop knows.
type Order struct {
	OrderID string `json:"order_id"`
	// Amount is in minor units of Currency.
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	Email    string `json:"email"`
}

// RefundInput is what the approver decides about; the card stays hidden.
type RefundInput struct {
	OrderID  string `json:"order_id"`
	Amount   int64  `json:"amount" jsonschema:"minimum=1"`
	Currency string `json:"currency"`
	Card     string `json:"card" apcore:"sensitive"`
}

// Refunded is one line of the ledger.
type Refunded struct {
	RefundID string `json:"refund_id"`
	OrderID  string `json:"order_id"`
	Amount   int64  `json:"amount"`
	Currency string `json:"currency"`
	// Key is the idempotency key of the call that moved the money.
	Key string `json:"key"`
}

// EmailInput is a mail.
type EmailInput struct {
	To      string `json:"to"`
	Subject string `json:"subject"`
}

// EmailSent says where a mail went.
type EmailSent struct {
	To string `json:"to"`
}

// Payments is the outside world of the example: its only effect is a line in
// the ledger file for each refund.
type Payments struct {
	// LedgerPath is a file of JSON lines.
	LedgerPath string
}

// Register brings the three modules into a registry.
func (p *Payments) Register(registry *apcore.Registry) error {
	return errors.Join(
		apcore.Register(registry, LookupModule, p.lookup, apcore.Spec{
			Description: "Looks an order up",
			Annotations: apcore.Annotations{Readonly: true},
		}),
		apcore.Register(registry, RefundModule, p.refund, apcore.Spec{
			Description: "Pays an order back to the card it was paid with",
			Annotations: apcore.Annotations{Destructive: true, RequiresApproval: true},
		}),
		apcore.Register(registry, EmailModule, p.email, apcore.Spec{
			Description: "Sends a mail",
			Annotations: apcore.Annotations{Idempotent: true},
		}),
	)
}

func (p *Payments) lookup(_ context.Context, in LookupInput) (Order, error) {
	return Order{OrderID: in.OrderID, Amount: 4999, Currency: "EUR", Email: "buyer@example.com"}, nil
}

func (p *Payments) refund(ctx context.Context, in RefundInput) (Refunded, error) {
	key := ""
	if c, ok := apcore.FromContext(ctx); ok {
		key, _ = apcore.NewKey[string](durable.IdempotencyKey).Get(c)
	}
	line := Refunded{RefundID: "rf-" + in.OrderID, OrderID: in.OrderID, Amount: in.Amount, Currency: in.Currency, Key: key}
	return line, p.append(line)
}

func (p *Payments) email(_ context.Context, in EmailInput) (EmailSent, error) {
	return EmailSent{To: in.To}, nil
}

// append writes one line with one system call, so that a killed process leaves
// a whole line or none.
func (p *Payments) append(line Refunded) error {
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	file, err := os.OpenFile(p.LedgerPath, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	_, err = file.Write(append(text, '\n'))
	return errors.Join(err, file.Sync(), file.Close())
}
