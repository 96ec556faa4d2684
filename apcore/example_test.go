package apcore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// An ordinary function becomes a module; its schemas come from its types.
func Example_register() {
	type input struct {
		Name  string `json:"name" jsonschema:"minLength=1"`
		Times int    `json:"times,omitempty"`
	}
	type output struct {
		Text string `json:"text"`
	}
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	err := apcore.Register(registry, "greet.hello", func(_ context.Context, in input) (output, error) {
		return output{Text: "Hello " + in.Name}, nil
	}, apcore.Spec{Description: "Greets somebody", Annotations: apcore.Annotations{Readonly: true}})
	if err != nil {
		fmt.Println(err)
		return
	}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(registry.List(apcore.ListOptions{}), registry.Definition("greet.hello").InputSchema["required"])
	result, err := executor.Call(context.Background(), "greet.hello", map[string]any{"name": "Ada"}, nil)
	fmt.Println(result["text"], err)
	_, err = executor.Call(context.Background(), "greet.hello", map[string]any{"name": 7}, nil)
	fmt.Println(errors.Is(err, apcore.CodeSchemaValidation))
	// Output:
	// [greet.hello] [name]
	// Hello Ada <nil>
	// true
}

// inbox is an approval handler whose decisions come later.
type inbox struct {
	decided map[string]apcore.ApprovalResult
}

func (*inbox) RequestApproval(_ context.Context, request *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
	fmt.Println("please decide:", request.ModuleID, request.RedactedArguments)
	return &apcore.ApprovalResult{Status: apcore.ApprovalPending, ApprovalID: "case-1"}, nil
}

func (i *inbox) CheckApproval(_ context.Context, approvalID string) (*apcore.ApprovalResult, error) {
	if result, ok := i.decided[approvalID]; ok {
		return &result, nil
	}
	return &apcore.ApprovalResult{Status: apcore.ApprovalPending, ApprovalID: approvalID}, nil
}

// A call that needs approval ends as pending; the caller repeats it with the
// approval id once somebody has decided.
func ExampleExecutor_Call() {
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	err := apcore.Register(registry, "billing.refund", func(_ context.Context, in map[string]any) (string, error) {
		return fmt.Sprint("refunded ", in["amount"]), nil
	}, apcore.Spec{Description: "Refunds a payment", Annotations: apcore.Annotations{RequiresApproval: true}})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler := &inbox{decided: map[string]apcore.ApprovalResult{}}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{ApprovalHandler: handler})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, inputs := context.Background(), map[string]any{"amount": 5, "card_token": "tok-123"}
	_, err = executor.Call(ctx, "billing.refund", inputs, nil)
	id, pending := apcore.PendingApproval(err)
	fmt.Println(apcore.CodeOf(err), id, pending)

	handler.decided[id] = apcore.ApprovalResult{Status: apcore.ApprovalApproved, ApprovedBy: "ada"}
	inputs[apcore.ApprovalTokenKey] = id
	output, err := executor.Call(ctx, "billing.refund", inputs, nil)
	fmt.Println(output["result"], err)
	// Output:
	// please decide: billing.refund map[amount:5 card_token:***REDACTED***]
	// APPROVAL_PENDING case-1 true
	// refunded 5 <nil>
}

// A module calls another one with Call; the chain and the caller follow.
func ExampleCall() {
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	err := errors.Join(
		apcore.Register(registry, "tax.rate", func(ctx context.Context, _ struct{}) (float64, error) {
			c, _ := apcore.FromContext(ctx)
			fmt.Println(c.CallChain(), "called by", c.CallerID())
			return 0.2, nil
		}, apcore.Spec{Description: "Says the tax rate"}),
		apcore.Register(registry, "orders.total", func(ctx context.Context, in struct {
			Net float64 `json:"net"`
		}) (float64, error) {
			rate, err := apcore.Call[struct {
				Result float64 `json:"result"`
			}](ctx, "tax.rate", nil)
			return in.Net * (1 + rate.Result), err
		}, apcore.Spec{Description: "Adds the tax"}),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	output, err := executor.Call(context.Background(), "orders.total", map[string]any{"net": 100}, nil)
	fmt.Println(output["result"], err)
	// Output:
	// [orders.total tax.rate] called by orders.total
	// 120 <nil>
}
