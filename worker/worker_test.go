package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// host makes an executor with one module.
func host(t testing.TB, opts apcore.ExecutorOptions, spec apcore.Spec) *apcore.Executor {
	t.Helper()
	registry := apcore.NewRegistry(apcore.RegistryOptions{})
	spec.Description = "Is hosted"
	must(t, apcore.Register(registry, "test.module", func(context.Context, map[string]any) (map[string]any, error) {
		return map[string]any{}, nil
	}, spec))
	opts.Logger = slog.New(slog.DiscardHandler)
	executor, err := apcore.NewExecutor(registry, opts)
	must(t, err)
	return executor
}

// Scenario 29: a gate does not vanish because a line of wiring is missing; a nil
// pointer in the interface is missing too.
func TestWorkerRefusesAGateWithoutHandler(t *testing.T) {
	gated := apcore.Spec{Annotations: apcore.Annotations{RequiresApproval: true}}
	byPolicy := &apcore.ExecutionPolicy{Rules: []apcore.PolicyRule{{Pattern: "test.*", RequiresApproval: new(true)}}}
	for _, test := range []struct {
		name string
		opts apcore.ExecutorOptions
		spec apcore.Spec
		bad  bool
	}{
		{"no handler", apcore.ExecutorOptions{}, gated, true},
		{"typed nil", apcore.ExecutorOptions{ApprovalHandler: (*durable.ApprovalHandler)(nil)}, gated, true},
		{"gated by policy", apcore.ExecutorOptions{Policy: byPolicy}, apcore.Spec{}, true},
		{"handler", apcore.ExecutorOptions{ApprovalHandler: durable.NewApprovalHandler()}, gated, false},
		{"nothing to gate", apcore.ExecutorOptions{}, apcore.Spec{}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := worker.NewPlugin(host(t, test.opts, test.spec), worker.PluginOptions{})
			if (err != nil) != test.bad {
				t.Fatalf("error %v", err)
			}
			if test.bad && (!errors.Is(err, apcore.CodeConfigInvalid) || !strings.Contains(err.Error(), "test.module") || apcore.AsError(err).Suggestion == "") {
				t.Errorf("the error does not say enough: %v", err)
			}
			if _, err := worker.NewPlugin(host(t, test.opts, test.spec), worker.PluginOptions{AllowMissingApprovalHandler: true}); err != nil {
				t.Errorf("allowed by name, and yet: %v", err)
			}
		})
	}
}

func TestWorkerRefusesBadOptions(t *testing.T) {
	lazy, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1"})
	must(t, err)
	defer lazy.Close()
	executor := host(t, apcore.ExecutorOptions{}, apcore.Spec{})
	for name, try := range map[string]func() error{
		"no client":    func() error { _, err := worker.New(nil, "q", executor, worker.Options{}); return err },
		"no queue":     func() error { _, err := worker.New(lazy, "", executor, worker.Options{}); return err },
		"no executor":  func() error { _, err := worker.New(lazy, "q", nil, worker.Options{}); return err },
		"stop timeout": func() error { _, err := worker.New(lazy, "q", executor, worker.Options{StopTimeout: -1}); return err },
		"approval timeout": func() error {
			_, err := worker.NewPlugin(executor, worker.PluginOptions{Invoker: durable.InvokerOptions{ApprovalTimeout: -5}})
			return err
		},
		"output size": func() error {
			_, err := worker.NewPlugin(executor, worker.PluginOptions{Invoker: durable.InvokerOptions{MaxOutputBytes: -5}})
			return err
		},
		"input size": func() error {
			_, err := worker.NewPlugin(executor, worker.PluginOptions{Limits: temporal.Limits{MaxInputBytes: -5}})
			return err
		},
	} {
		if err := try(); !errors.Is(err, apcore.CodeInvalidInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A registry is sealed when its worker is made: what comes later would have no
// activity.
func TestWorkerSealsTheRegistry(t *testing.T) {
	executor := host(t, apcore.ExecutorOptions{}, apcore.Spec{})
	_, err := worker.NewPlugin(executor, worker.PluginOptions{})
	must(t, err)
	err = apcore.Register(executor.Registry(), "late.module", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }, apcore.Spec{Description: "Is late"})
	if !errors.Is(err, apcore.CodeInvalidInput) || !strings.Contains(err.Error(), "late.module") {
		t.Errorf("error %v", err)
	}
}
