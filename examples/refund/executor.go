package refund

import (
	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// NewExecutor makes the executor of the example's worker.
func NewExecutor(ledgerPath string) (*apcore.Executor, error) {
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	if err := (&Payments{LedgerPath: ledgerPath}).Register(registry); err != nil {
		return nil, err
	}
	return apcore.NewExecutor(registry, apcore.ExecutorOptions{
		// Everybody who may start the workflow may use its modules.
		AccessControl:   apcore.AllowAll{},
		ApprovalHandler: temporal.NewApprovalHandler(),
	})
}
