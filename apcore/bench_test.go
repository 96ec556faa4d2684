package apcore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/apcore/internal/schema"
)

// order is the five-field object of the benchmarks.
type order struct {
	ID     string   `json:"id" jsonschema:"minLength=1"`
	Amount int64    `json:"amount" jsonschema:"minimum=1"`
	Open   bool     `json:"open"`
	Tags   []string `json:"tags"`
	Note   string   `json:"note,omitempty"`
}

func echoOrder(_ context.Context, in order) (order, error) { return in, nil }

var benchInputs = map[string]any{"id": "o-1", "amount": 5, "open": true, "tags": []any{"x", "y"}, "note": "n"}

// benchOutput is what a call with benchInputs returns.
var benchOutput = map[string]any{"id": "o-1", "amount": json.Number("5"), "open": true, "tags": []any{"x", "y"}, "note": "n"}

func benchExecutor(tb testing.TB, modules int, opts apcore.ExecutorOptions) *apcore.Executor {
	tb.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	must(tb, apcore.Register(registry, "bench.order", echoOrder, apcore.Spec{Description: "Echoes an order"}))
	other, err := apcore.NewRawFunc(func(context.Context, map[string]any) (map[string]any, error) { return nil, nil },
		apcore.Spec{Description: "Is not called", InputSchema: map[string]any{}, OutputSchema: map[string]any{}})
	must(tb, err)
	for i := 1; i < modules; i++ {
		must(tb, registry.Register(fmt.Sprintf("bench.other%d", i), other, apcore.RegisterOptions{}))
	}
	opts.Logger = slog.New(slog.DiscardHandler)
	executor, err := apcore.NewExecutor(registry, opts)
	must(tb, err)
	return executor
}

// side is one of several things that a benchmark compares.
type side struct {
	name string
	do   func()
}

// round is how often a side runs before the next one's turn: often enough that
// reading the clock does not count, and briefly enough that both sides meet the
// same machine.
const round = 10

// interleave runs the sides in turns within the same second, for a machine is
// never as fast as a minute ago. It reports the median of each, in nanoseconds
// and as a ratio to the first, and its allocations.
func interleave(b *testing.B, sides ...side) {
	b.Helper()
	times := make([][]float64, len(sides))
	ratios := make([][]float64, len(sides))
	for _, s := range sides {
		s.do() // what is made once is not counted
	}
	for b.Loop() {
		spent := make([]float64, len(sides))
		for i, s := range sides {
			begin := time.Now()
			for range round {
				s.do()
			}
			spent[i] = float64(time.Since(begin).Nanoseconds()) / round
		}
		for i := range sides {
			times[i] = append(times[i], spent[i])
			ratios[i] = append(ratios[i], spent[i]/spent[0])
		}
	}
	b.ReportMetric(0, "ns/op") // a round of all sides says nothing
	for i, s := range sides {
		b.ReportMetric(median(times[i]), s.name+"-ns")
		b.ReportMetric(testing.AllocsPerRun(100, s.do), s.name+"-allocs")
		if i > 0 {
			b.ReportMetric(median(ratios[i]), s.name+"/"+sides[0].name)
		}
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// bare is what a call cannot do without: its two validations, with this
// package's validator and the schemas of the module, and its function.
func bare(tb testing.TB) side {
	tb.Helper()
	d := benchExecutor(tb, 1, apcore.ExecutorOptions{}).Registry().Definition("bench.order")
	input, err := schema.Compile(d.InputSchema)
	must(tb, err)
	output, err := schema.Compile(d.OutputSchema)
	must(tb, err)
	value := order{ID: "o-1", Amount: 5, Open: true, Tags: []string{"x", "y"}, Note: "n"}
	return side{"bare", func() {
		if input.Validate(benchInputs) != nil {
			tb.Fatal("the inputs are not valid")
		}
		if out, err := echoOrder(tb.Context(), value); err != nil || out.ID != value.ID {
			tb.Fatal(out, err)
		}
		if output.Validate(benchOutput) != nil {
			tb.Fatal("the output is not valid")
		}
	}}
}

func caller(tb testing.TB, name string, executor *apcore.Executor, id string) side {
	tb.Helper()
	ctx := tb.Context()
	return side{name, func() {
		if _, err := executor.Call(ctx, id, benchInputs, nil); err != nil {
			tb.Fatal(err)
		}
	}}
}

// library is bare with the validator of the JSON Schema library, which says of a
// value what it says without this package.
func library(tb testing.TB) side {
	tb.Helper()
	d := benchExecutor(tb, 1, apcore.ExecutorOptions{}).Registry().Definition("bench.order")
	compiler := jsonschema.NewCompiler()
	must(tb, compiler.AddResource("in.json", d.InputSchema))
	must(tb, compiler.AddResource("out.json", d.OutputSchema))
	input, err := compiler.Compile("in.json")
	must(tb, err)
	output, err := compiler.Compile("out.json")
	must(tb, err)
	value := order{ID: "o-1", Amount: 5, Open: true, Tags: []string{"x", "y"}, Note: "n"}
	return side{"library", func() {
		must(tb, input.Validate(benchInputs))
		if out, err := echoOrder(tb.Context(), value); err != nil || out.ID != value.ID {
			tb.Fatal(out, err)
		}
		must(tb, output.Validate(benchOutput))
	}}
}

// byHand is what a program without this package writes to the same end: it
// validates as bare does, and moves inputs and output between maps and structs
// with encoding/json.
func byHand(tb testing.TB) side {
	tb.Helper()
	d := benchExecutor(tb, 1, apcore.ExecutorOptions{}).Registry().Definition("bench.order")
	input, err := schema.Compile(d.InputSchema)
	must(tb, err)
	output, err := schema.Compile(d.OutputSchema)
	must(tb, err)
	convert := func(from, to any) {
		text, err := json.Marshal(from)
		must(tb, err)
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		must(tb, decoder.Decode(to))
	}
	return side{"by-hand", func() {
		if input.Validate(benchInputs) != nil {
			tb.Fatal("the inputs are not valid")
		}
		var value order
		convert(benchInputs, &value)
		out, err := echoOrder(tb.Context(), value)
		must(tb, err)
		var object map[string]any
		convert(out, &object)
		if output.Validate(object) != nil {
			tb.Fatal("the output is not valid")
		}
	}}
}

// BenchmarkCall compares calls through the standard pipeline with what they
// cannot do without.
func BenchmarkCall(b *testing.B) {
	executor := benchExecutor(b, 10, apcore.ExecutorOptions{})
	registry := executor.Registry()
	d := registry.Definition("bench.order")
	spec := apcore.Spec{Description: "Benchmarks", InputSchema: d.InputSchema, OutputSchema: d.OutputSchema}
	raw, err := apcore.NewRawFunc(func(_ context.Context, in map[string]any) (map[string]any, error) { return in, nil }, spec)
	must(b, err)
	must(b, registry.Register("bench.raw", raw, apcore.RegisterOptions{}))
	must(b, apcore.Register(registry, "bench.nested", func(ctx context.Context, in order) (order, error) {
		return apcore.Call[order](ctx, "bench.order", in)
	}, apcore.Spec{Description: "Calls another module"}))
	hooked := benchExecutor(b, 10, apcore.ExecutorOptions{Middleware: []apcore.Middleware{apcore.BaseMiddleware{}}})

	typed := caller(b, "typed", executor, "bench.order")
	b.Run("typed", func(b *testing.B) { interleave(b, bare(b), typed) })
	b.Run("library", func(b *testing.B) { interleave(b, library(b), typed) })
	b.Run("by-hand", func(b *testing.B) { interleave(b, byHand(b), typed) })
	b.Run("raw", func(b *testing.B) { interleave(b, bare(b), caller(b, "raw", executor, "bench.raw")) })
	b.Run("nested", func(b *testing.B) {
		interleave(b, typed, caller(b, "nested", executor, "bench.nested"))
	})
	b.Run("middleware", func(b *testing.B) {
		interleave(b, caller(b, "none", executor, "bench.order"), caller(b, "one", hooked, "bench.order"))
	})
}

// BenchmarkStream is a stream of four chunks beside a call.
func BenchmarkStream(b *testing.B) {
	executor := benchExecutor(b, 10, apcore.ExecutorOptions{})
	chunk := map[string]any{"done": true, "text": "a"}
	must(b, executor.Registry().Register("bench.stream", chunked{chunks: []map[string]any{chunk, chunk, chunk, chunk}}, apcore.RegisterOptions{}))
	interleave(b, caller(b, "call", executor, "bench.order"), side{"stream", func() {
		for _, err := range executor.Stream(b.Context(), "bench.stream", q, nil) {
			must(b, err)
		}
	}})
}

// BenchmarkRegistry has modules that are not called beside the one that is.
func BenchmarkRegistry(b *testing.B) {
	var sides []side
	for _, modules := range []int{10, 1_000, 100_000} {
		executor := benchExecutor(b, modules, apcore.ExecutorOptions{})
		sides = append(sides, caller(b, fmt.Sprint(modules, "-modules"), executor, "bench.order"))
	}
	interleave(b, sides...)
}

// BenchmarkACL has rules for other targets beside the one that matches.
func BenchmarkACL(b *testing.B) {
	var sides []side
	for _, unrelated := range []int{10, 1_000, 100_000} {
		acl := benchACL(b, unrelated)
		request := apcore.AccessRequest{CallerID: apcore.ExternalCaller, TargetID: "bench.order"}
		sides = append(sides, side{fmt.Sprint(unrelated, "-rules"), func() {
			if !acl.CheckAccess(b.Context(), request).Allowed {
				b.Fatal("denied")
			}
		}})
	}
	interleave(b, sides...)
}

// benchACL allows bench.* last of all. Half of the other rules name a target,
// half a prefix; none of them shares a prefix with bench.order.
func benchACL(tb testing.TB, unrelated int) *apcore.ACL {
	tb.Helper()
	rules := make([]apcore.ACLRule, 0, unrelated+1)
	for i := range unrelated {
		target := fmt.Sprintf("other%d.module", i)
		if i%2 == 0 {
			target = fmt.Sprintf("other%d.*", i)
		}
		rules = append(rules, apcore.ACLRule{Callers: []string{"*"}, Targets: []string{target}, Effect: apcore.ACLDeny})
	}
	rules = append(rules, apcore.ACLRule{Callers: []string{"*"}, Targets: []string{"bench.*"}, Effect: apcore.ACLAllow})
	acl, err := apcore.NewACL(rules, apcore.ACLOptions{Logger: slog.New(slog.DiscardHandler)})
	must(tb, err)
	return acl
}

// BenchmarkValidate is the preflight of a call beside the call.
func BenchmarkValidate(b *testing.B) {
	executor := benchExecutor(b, 10, apcore.ExecutorOptions{})
	interleave(b, caller(b, "call", executor, "bench.order"), side{"validate", func() {
		if !executor.Validate(b.Context(), "bench.order", benchInputs, nil).Valid {
			b.Fatal("not valid")
		}
	}})
}

// BenchmarkParallel makes the same calls from one goroutine and from 64. The
// throughput of the latter over that of the former is at most the number of
// cores.
func BenchmarkParallel(b *testing.B) {
	const calls, goroutines = 4, 64
	executor := benchExecutor(b, 10, apcore.ExecutorOptions{})
	one := caller(b, "one", executor, "bench.order")
	interleave(b,
		side{"64-goroutines", func() {
			var group sync.WaitGroup
			for range goroutines {
				group.Go(func() {
					for range calls {
						if _, err := executor.Call(b.Context(), "bench.order", benchInputs, nil); err != nil {
							b.Error(err)
						}
					}
				})
			}
			group.Wait()
		}},
		side{"1-goroutine", func() {
			for range calls * goroutines {
				one.do()
			}
		}},
	)
}
