package durable_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// shopOf hosts shop.price as spec says, and shop.stock, which never changes.
func shopOf(t *testing.T, spec apcore.Spec, opts durable.InvokerOptions) (*durable.Invoker, func(id string) durable.Fingerprint) {
	t.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	spec.Description = "Prices"
	must(t, apcore.Register(registry, "shop.price", func(context.Context, map[string]any) (map[string]any, error) { return map[string]any{}, nil }, spec))
	must(t, apcore.Register(registry, "shop.stock", func(context.Context, map[string]any) (map[string]any, error) { return map[string]any{}, nil }, apcore.Spec{Description: "Counts"}))
	executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	invoker, err := durable.NewInvoker(executor, opts)
	must(t, err)
	return invoker, func(id string) durable.Fingerprint { return durable.FingerprintOf(registry.Definition(id)) }
}

func requestOf(id string, fingerprint durable.Fingerprint) durable.CallRequest {
	return durable.CallRequest{
		V: 1, ModuleID: id, Inputs: []byte(`{}`), Context: []byte(anonymous), CallID: "w/r/1", RequestedAt: time.Unix(0, 0), Fingerprint: fingerprint,
	}
}

// Target 5, pitfall 36: a changed module is noticed by the calls of that module
// and by no others; what happens then is the worker's choice.
func TestFingerprintIsPerModule(t *testing.T) {
	_, known := shopOf(t, apcore.Spec{}, durable.InvokerOptions{})
	strict := map[string]any{"type": "object", "properties": map[string]any{"sku": map[string]any{"type": "string"}}}
	for _, test := range []struct {
		name string
		spec apcore.Spec
		want []string
	}{
		{"unchanged", apcore.Spec{}, nil},
		{"version", apcore.Spec{Version: "2.0.0"}, []string{"version"}},
		{"schema", apcore.Spec{InputSchema: strict}, []string{"schema"}},
		{"annotations", apcore.Spec{Annotations: apcore.Annotations{Readonly: true}}, []string{"annotations"}},
		{"all", apcore.Spec{Version: "2.0.0", InputSchema: strict, Annotations: apcore.Annotations{Destructive: true}}, []string{"version", "schema", "annotations"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, here := shopOf(t, test.spec, durable.InvokerOptions{})
			if diff := cmp.Diff(test.want, known("shop.price").Differences(here("shop.price"))); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			for policy, refuses := range map[durable.FingerprintPolicy]bool{durable.FingerprintWarn: false, durable.FingerprintRefuse: true, durable.FingerprintIgnore: false} {
				var log bytes.Buffer
				invoker, _ := shopOf(t, test.spec, durable.InvokerOptions{Fingerprints: policy, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				if _, err := invoker.Invoke(t.Context(), requestOf("shop.stock", known("shop.stock")), 1); err != nil || log.Len() > 0 {
					t.Errorf("%q: a call of the other module: %v, %s", policy, err, &log)
				}
				for range 2 {
					_, err := invoker.Invoke(t.Context(), requestOf("shop.price", known("shop.price")), 1)
					if refused := errors.Is(err, durable.CodeBuildMismatch); refused != (refuses && test.want != nil) || (err != nil) != refused {
						t.Errorf("%q: %v", policy, err)
					}
					var failure *durable.Failure
					if errors.As(err, &failure) && (!failure.NotStarted || failure.Retry || strings.Join(test.want, ", ") == "") {
						t.Errorf("%q: failure %+v", policy, failure)
					}
				}
				warns := 0
				if policy == durable.FingerprintWarn && test.want != nil {
					warns = 1
				}
				if got := strings.Count(log.String(), "another build"); got != warns {
					t.Errorf("%q: %d warnings, want %d: %s", policy, got, warns, &log)
				}
				if _, err := invoker.Invoke(t.Context(), requestOf("shop.price", ""), 1); err != nil {
					t.Errorf("%q: a caller that says nothing: %v", policy, err)
				}
			}
		})
	}
	if got := len(known("shop.price")); got > 60 {
		t.Errorf("a fingerprint has %d bytes", got)
	}
	if got := durable.Fingerprint("from the future, with more").Differences(known("shop.price")); !cmp.Equal(got, []string{"form"}) {
		t.Errorf("another form: %q", got)
	}
}

func TestFingerprintPolicyIsChecked(t *testing.T) {
	w := newWorld(t, apcore.ExecutorOptions{})
	if _, err := durable.NewInvoker(w.executor, durable.InvokerOptions{Fingerprints: "sometimes"}); !errors.Is(err, apcore.CodeInvalidInput) {
		t.Errorf("error %v", err)
	}
}

// notAsking answers an ask as a worker without a handler does.
type notAsking struct {
	durable.Engine
	asked int
}

func (e *notAsking) Do(request durable.CallRequest) (durable.CallResult, error) {
	if e.asked++; e.asked == 1 || request.Ask {
		return durable.CallResult{V: 1, Status: durable.StatusNotAsked}, nil
	}
	return durable.CallResult{V: 1, Status: durable.StatusCompleted}, nil
}

func (*notAsking) Now() time.Time { return time.Unix(0, 0) }

// A history in which was asked replays where the module needs no approval any
// more, and one unit that never gets to the point is an error.
func TestAskedBeforeTheCatalogChanged(t *testing.T) {
	for _, ask := range []bool{true, false} {
		engine := &notAsking{}
		result, err := durable.Run(engine, durable.CallRequest{ModuleID: "shop.price", Ask: ask}, durable.Policy{})
		if err != nil || result.Status != durable.StatusCompleted || engine.asked != 2 {
			t.Errorf("ask %t: %v, %v after %d units", ask, result, err, engine.asked)
		}
	}
}
