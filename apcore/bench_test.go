package apcore_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// order is the five-field object of the benchmarks.
type order struct {
	ID     string   `json:"id" jsonschema:"minLength=1"`
	Amount int64    `json:"amount" jsonschema:"minimum=1"`
	Open   bool     `json:"open"`
	Tags   []string `json:"tags"`
	Note   string   `json:"note,omitempty"`
}

func benchExecutor(b *testing.B, modules int, opts apcore.ExecutorOptions) *apcore.Executor {
	b.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	echo := func(_ context.Context, in order) (order, error) { return in, nil }
	must(b, apcore.Register(registry, "bench.order", echo, apcore.Spec{Description: "Echoes an order"}))
	module := registry.Get("bench.order")
	for i := 1; i < modules; i++ {
		must(b, registry.Register(fmt.Sprintf("bench.other%d", i), module, apcore.RegisterOptions{}))
	}
	opts.Logger = slog.New(slog.DiscardHandler)
	executor, err := apcore.NewExecutor(registry, opts)
	must(b, err)
	return executor
}

var benchInputs = map[string]any{"id": "o-1", "amount": 5, "open": true, "tags": []any{"x", "y"}, "note": "n"}

// BenchmarkCall is one call of a typed module through the standard pipeline, in
// registries of growing size.
func BenchmarkCall(b *testing.B) {
	for _, modules := range []int{10, 1000, 100_000} {
		b.Run(fmt.Sprint(modules, " modules"), func(b *testing.B) {
			executor := benchExecutor(b, modules, apcore.ExecutorOptions{})
			b.ReportAllocs()
			for b.Loop() {
				if _, err := executor.Call(b.Context(), "bench.order", benchInputs, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkCallParallel shows how calls share the cores.
func BenchmarkCallParallel(b *testing.B) {
	executor := benchExecutor(b, 10, apcore.ExecutorOptions{})
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := executor.Call(b.Context(), "bench.order", benchInputs, nil); err != nil {
				b.Error(err)
			}
		}
	})
}
