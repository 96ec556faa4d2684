package apcore_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// silent is a logger for examples whose warnings do not matter.
func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

// stopwatch notes what happens around a call.
type stopwatch struct{ apcore.BaseMiddleware }

func (stopwatch) Before(_ context.Context, call *apcore.MiddlewareCall) (map[string]any, error) {
	fmt.Println("before", call.ModuleID, call.Context.RedactedInputs())
	return nil, nil // the inputs stay as they are
}

func (stopwatch) After(_ context.Context, _ *apcore.MiddlewareCall, output map[string]any) (map[string]any, error) {
	return map[string]any{"result": output["result"], "checked": true}, nil
}

// Middleware surrounds calls behind the approval gate: it sees inputs, output and
// errors, and may replace each of them.
func ExampleMiddleware() {
	executor := serve(apcore.ExecutorOptions{Middleware: []apcore.Middleware{stopwatch{}}}, "user.find", apcore.Spec{Description: "Finds a user"},
		func(context.Context, map[string]any) (string, error) { return "Ada", nil })
	output, err := executor.Call(context.Background(), "user.find", map[string]any{"id": 7, "password": "hunter2"}, nil)
	fmt.Println(output["result"], output["checked"], err)
	// Output:
	// before user.find map[id:7 password:***REDACTED***]
	// Ada true <nil>
}

// RetryMiddleware repeats a call whose error says that it is retryable, and with
// RequireIdempotent only where the module says that a repetition is safe.
func ExampleRetryMiddleware() {
	retry, err := apcore.NewRetryMiddleware(apcore.RetryOptions{MaxRetries: 3, BaseDelay: time.Millisecond, RequireIdempotent: true})
	need(err)
	attempts := 0
	executor := serve(apcore.ExecutorOptions{Middleware: []apcore.Middleware{retry}}, "stock.read",
		apcore.Spec{Description: "Reads the stock", Annotations: apcore.Annotations{Idempotent: true}},
		func(context.Context, struct{}) (int, error) {
			attempts++
			if attempts < 3 {
				retryable := true
				return 0, apcore.NewError("STOCK_BUSY", "the stock is being counted").WithRetryable(&retryable)
			}
			return 41, nil
		})
	output, err := executor.Call(context.Background(), "stock.read", nil, nil)
	fmt.Println(output["result"], err, "after", attempts, "attempts")
	// Output:
	// 41 <nil> after 3 attempts
}

// A circuit breaker refuses calls of a module that keeps failing, per caller, and
// tries again after a while.
func ExampleCircuitBreaker() {
	breaker, err := apcore.NewCircuitBreaker(apcore.CircuitBreakerOptions{
		MinSamples: 2, WindowSize: 4, RecoveryWindow: time.Hour,
		OnEvent: func(e apcore.Event) { fmt.Println("event:", e.Type, e.Data["error_rate"]) },
	})
	need(err)
	executor := serve(apcore.ExecutorOptions{Middleware: []apcore.Middleware{breaker}}, "mail.send", apcore.Spec{Description: "Sends mail"},
		func(context.Context, struct{}) (struct{}, error) {
			return struct{}{}, apcore.NewError("MAIL_DOWN", "the mail server is down")
		})
	for range 3 {
		_, err := executor.Call(context.Background(), "mail.send", nil, nil)
		fmt.Println(apcore.CodeOf(err))
	}
	fmt.Println(breaker.State("mail.send", ""))
	// Output:
	// MAIL_DOWN
	// event: apcore.circuit.opened 1
	// MAIL_DOWN
	// CIRCUIT_BREAKER_OPEN
	// OPEN
}

// DedupMiddleware answers a repeated call from what it has recorded. The caller
// names the call by its correlation id, which travels with the context.
func ExampleDedupMiddleware() {
	store, err := apcore.NewInMemoryDedupStore(apcore.InMemoryDedupOptions{})
	need(err)
	dedup, err := apcore.NewDedupMiddleware(apcore.DedupOptions{Store: store})
	need(err)
	charges := 0
	executor := serve(apcore.ExecutorOptions{Middleware: []apcore.Middleware{dedup}}, "card.charge", apcore.Spec{Description: "Charges a card"},
		func(context.Context, map[string]any) (string, error) {
			charges++
			return fmt.Sprint("receipt ", charges), nil
		})
	for _, id := range []string{"order-1", "order-1", "order-2"} {
		caller := apcore.NewContext(apcore.ContextOptions{Data: map[string]any{apcore.CorrelationIDKey: id}})
		output, err := executor.Call(context.Background(), "card.charge", map[string]any{"cents": 500}, caller)
		fmt.Println(id, output["result"], err)
	}
	// Output:
	// order-1 receipt 1 <nil>
	// order-1 receipt 1 <nil>
	// order-2 receipt 2 <nil>
}

// shelf finds one module.
type shelf struct{}

func (shelf) Discover(context.Context) ([]apcore.DiscoveredModule, error) {
	module, err := apcore.NewFunc(func(context.Context, struct{}) (string, error) { return "pong", nil }, apcore.Spec{Description: "Answers"})
	return []apcore.DiscoveredModule{{ModuleID: "net.ping", Module: module}}, err
}

// Extensions are collected by the name of their point and put in place together.
func ExampleExtensionManager() {
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{})
	need(err)
	extensions := &apcore.ExtensionManager{}
	for point, extension := range map[apcore.ExtensionPoint]any{
		apcore.PointDiscoverer: shelf{}, apcore.PointACL: apcore.AllowAll{}, apcore.PointApprovalHandler: apcore.AlwaysDeny{},
	} {
		need(extensions.Register(point, extension))
	}
	fmt.Println(extensions.Register(apcore.PointACL, "everybody"))
	need(extensions.Apply(registry, executor))
	found, err := registry.Discover(context.Background())
	fmt.Println(found, err, executor.GovernanceState().ACLConfigured)
	output, err := executor.Call(context.Background(), "net.ping", nil, nil)
	fmt.Println(output["result"], err)
	// Output:
	// [GENERAL_INVALID_INPUT] a string cannot stand at extension point "acl"
	// 1 <nil> true
	// pong <nil>
}
