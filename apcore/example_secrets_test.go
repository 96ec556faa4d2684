package apcore_test

import (
	"context"
	"fmt"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// What a schema marks, and what has the name of a secret, is replaced in a copy.
func ExampleRedactor_Redact() {
	redactor, err := apcore.NewRedactor(apcore.RedactionConfig{Patterns: []string{`sk-[a-z0-9]+`}})
	if err != nil {
		fmt.Println(err)
		return
	}
	schema := map[string]any{"properties": map[string]any{"card": map[string]any{"x-sensitive": true}}}
	given := map[string]any{"amount": 5, "card": "4111-1111", "api_key": "k-1", "note": "uses sk-42a"}
	redacted := redactor.Redact(given, schema)
	for _, key := range []string{"amount", "card", "api_key", "note"} {
		fmt.Println(key, redacted[key])
	}
	fmt.Println("the caller's card is", given["card"])
	// Output:
	// amount 5
	// card ***REDACTED***
	// api_key ***REDACTED***
	// note ***REDACTED***
	// the caller's card is 4111-1111
}

// A module may be careless with its inputs: its error leaves the executor clean.
func ExampleExecutor_Call_secrets() {
	type payment struct {
		Card   string `json:"card" apcore:"sensitive"`
		Amount int    `json:"amount"`
	}
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	err := apcore.Register(registry, "payments.charge", func(_ context.Context, in payment) (string, error) {
		return "", apcore.NewError("CHARGE_REFUSED", "the bank refuses %s for %d", in.Card, in.Amount).WithDetail("sent", "card="+in.Card)
	}, apcore.Spec{Description: "Charges a card"})
	if err != nil {
		fmt.Println(err)
		return
	}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = executor.Call(context.Background(), "payments.charge", map[string]any{"card": "4111-1111", "amount": 5}, nil)
	fmt.Println(err)
	fmt.Println(apcore.AsError(err).Details["sent"])
	// Output:
	// [CHARGE_REFUSED] the bank refuses ***REDACTED*** for 5
	// card=***REDACTED***
}

// An adapter writes errors in its own form; everybody else gets the wire form.
func ExampleErrorFormatterRegistry() {
	var formatters apcore.ErrorFormatterRegistry
	err := formatters.Register("http", apcore.ErrorFormatterFunc(func(err *apcore.Error, context map[string]any) map[string]any {
		return map[string]any{"type": "about:blank", "title": string(err.Code), "detail": err.Message, "instance": context["path"]}
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	failure := apcore.NewError(apcore.CodeModuleNotFound, "no module %q is registered", "billing.refund")
	problem := formatters.FormatError(failure, "http", map[string]any{"path": "/call"})
	fmt.Println(problem["title"], problem["instance"], problem["detail"])
	fmt.Println(formatters.FormatError(failure, "grpc", nil)["code"])
	// Output:
	// MODULE_NOT_FOUND /call no module "billing.refund" is registered
	// MODULE_NOT_FOUND
}

// printer is an exporter that prints spans.
type printer struct{}

func (printer) ExportSpan(_ context.Context, span apcore.Span) error {
	fmt.Println(span.Attributes["module_id"], span.Status, "caller:", span.Attributes["caller_id"], "below another:", span.ParentSpanID != "")
	return nil
}

// Every module call is a span, nested calls below their callers. Package
// otelapcore gives them to OpenTelemetry.
func ExampleTracingMiddleware() {
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	register := func(id string, run func(ctx context.Context, _ struct{}) (string, error)) {
		if err := apcore.Register(registry, id, run, apcore.Spec{Description: "A part of an order"}); err != nil {
			fmt.Println(err)
		}
	}
	register("stock.reserve", func(context.Context, struct{}) (string, error) { return "reserved", nil })
	register("orders.place", func(ctx context.Context, _ struct{}) (string, error) {
		_, err := apcore.Call[map[string]any](ctx, "stock.reserve", nil)
		return "placed", err
	})
	tracing, err := apcore.NewTracingMiddleware(apcore.TracingOptions{Exporters: []apcore.SpanExporter{printer{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{Middleware: []apcore.Middleware{tracing}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := executor.Call(context.Background(), "orders.place", nil, nil); err != nil {
		fmt.Println(err)
	}
	// Output:
	// stock.reserve ok caller: orders.place below another: true
	// orders.place ok caller: <nil> below another: false
}
