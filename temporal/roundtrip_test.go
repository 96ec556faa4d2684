package temporal_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/workflow"
	"pgregory.net/rapid"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

// parcel holds what JSON and other languages like to change.
type parcel struct {
	Int      int64             `json:"int"`
	Uint     uint64            `json:"uint"`
	Float    float64           `json:"float"`
	Bytes    []byte            `json:"bytes"`
	Text     string            `json:"text"`
	Duration time.Duration     `json:"duration"`
	When     time.Time         `json:"when"`
	List     []int64           `json:"list"`
	Map      map[string]string `json:"map"`
	Pointer  *int64            `json:"pointer"`
	Optional *string           `json:"optional,omitempty"`
	Any      any               `json:"any"`
}

func drawParcel(t *rapid.T) parcel {
	text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("<>&\u2028\u2029\x00\"\\😀"))))
	p := parcel{
		Int: rapid.Int64().Draw(t, "int"), Uint: rapid.Uint64().Draw(t, "uint"), Float: rapid.Float64().Draw(t, "float"),
		Bytes: rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"), Text: text.Draw(t, "text"),
		Duration: time.Duration(rapid.Int64().Draw(t, "duration")),
		When:     time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC(),
		List:     rapid.SliceOf(rapid.Int64()).Draw(t, "list"), Map: rapid.MapOf(text, text).Draw(t, "map"),
	}
	if rapid.Bool().Draw(t, "has a pointer") {
		p.Pointer, p.Optional = new(rapid.Int64().Draw(t, "pointer")), new(text.Draw(t, "optional"))
	}
	p.Any = rapid.SampledFrom([]any{nil, true, "x", json.Number("18446744073709551615"), json.Number("0.10"), []any{}, map[string]any{}, []any{nil, json.Number("1e400")}}).Draw(t, "any")
	return p
}

// newParcelExecutor hosts parcel.echo, whose input and output have types, and
// parcel.raw, which has neither.
func newParcelExecutor(t *testing.T) *apcore.Executor {
	t.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	readonly := apcore.Annotations{Readonly: true}
	raw, err := apcore.NewRawFunc(func(_ context.Context, in map[string]any) (map[string]any, error) { return in, nil },
		apcore.Spec{Description: "Echoes", Annotations: readonly, InputSchema: map[string]any{}, OutputSchema: map[string]any{}})
	must(t, err)
	must(t, errors.Join(
		registry.Register("parcel.raw", raw, apcore.RegisterOptions{}),
		apcore.Register(registry, "parcel.echo", func(_ context.Context, in parcel) (parcel, error) { return in, nil }, apcore.Spec{Description: "Echoes", Annotations: readonly}),
	))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	return executor
}

// Pitfall 39, scenarios 52 and 55: typed values of any size and kind come back
// from workflow, activity and workflow as they were, through modules with types
// and without. nil and empty collections are the same in a module with a schema;
// everything else is exact.
func TestParcelsArriveWhole(t *testing.T) {
	executor := newParcelExecutor(t)
	rapid.Check(t, func(rt *rapid.T) {
		sent := drawParcel(rt)
		env := testsuite.NewEnvironment(t, executor)
		env.ExecuteWorkflow(func(ctx workflow.Context) error {
			typed, err := temporal.Call[parcel](ctx, "parcel.echo", sent)
			if err != nil {
				return err
			}
			if diff := cmp.Diff(filled(sent), filled(typed)); diff != "" {
				rt.Errorf("typed (-want +got):\n%s", diff)
			}
			raw, err := temporal.Call[parcel](ctx, "parcel.raw", sent)
			if diff := cmp.Diff(sent, raw); diff != "" {
				rt.Errorf("raw (-want +got):\n%s", diff)
			}
			return err
		})
		if err := env.GetWorkflowError(); err != nil {
			rt.Error(err)
		}
	})
}

// filled makes nil collections empty, as a schema without null wants them.
func filled(p parcel) parcel {
	if p.Bytes == nil {
		p.Bytes = []byte{}
	}
	if p.List == nil {
		p.List = []int64{}
	}
	if p.Map == nil {
		p.Map = map[string]string{}
	}
	return p
}

// Scenario 53: what JSON cannot say is an error before anything is scheduled,
// wherever in a typed value it is.
func TestNoNumberIsAnError(t *testing.T) {
	for name, bad := range map[string]any{
		"NaN": parcel{Float: math.NaN()}, "infinity": parcel{Any: map[string]any{"deep": []any{math.Inf(-1)}}},
		"invalid text": parcel{Text: "\xff"}, "invalid key": parcel{Map: map[string]string{"\xff": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			env := testsuite.NewEnvironment(t, newParcelExecutor(t))
			env.OnActivity("apcore/call/parcel/echo", nil).Never()
			env.ExecuteWorkflow(func(ctx workflow.Context) error {
				_, err := temporal.Call[parcel](ctx, "parcel.echo", bad)
				if apcore.CodeOf(err) != apcore.CodeInvalidInput {
					t.Errorf("%v", err)
				}
				return nil
			})
			must(t, env.GetWorkflowError())
		})
	}
}
