package worker_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// Target 5, pitfall 36: a worker whose module A is newer refuses, as it is told,
// the calls of A that an older worker made, and none of B. The whole call costs
// at most 400 bytes over its inputs.
func TestChangedModuleConcernsItsOwnCalls(t *testing.T) {
	t.Parallel()
	c := testsuite.DevServer(t).Client(t, client.Options{})
	build := func(version string) *apcore.Executor {
		registry := apcore.NewRegistry(apcore.RegistryOptions{})
		for id, v := range map[string]string{"shop.price": version, "shop.stock": "1.0.0"} {
			must(t, apcore.Register(registry, id, func(context.Context, map[string]any) (map[string]any, error) { return map[string]any{"v": v}, nil },
				apcore.Spec{Description: "Answers", Version: v}))
		}
		executor, err := apcore.NewExecutor(registry, apcore.ExecutorOptions{Logger: slog.New(slog.DiscardHandler)})
		must(t, err)
		return executor
	}
	serve := func(queue string, executor *apcore.Executor, policy durable.FingerprintPolicy) {
		w, err := worker.New(c, queue, executor, worker.Options{PluginOptions: worker.PluginOptions{Invoker: durable.InvokerOptions{Fingerprints: policy}}})
		must(t, err)
		w.Registry().RegisterWorkflow(Call)
		must(t, w.Start())
		t.Cleanup(w.Stop)
	}
	s := &site{t: t, queue: "build-" + uuid.NewString(), client: c}
	newer := s.queue + "-newer"
	serve(s.queue, build("1.0.0"), durable.FingerprintWarn)
	serve(newer, build("2.0.0"), durable.FingerprintRefuse)
	elsewhere := temporal.CallOptions{TaskQueue: newer}
	if e := temporal.AsError(s.end(s.start(t.Context(), Call, "shop.price", nil, elsewhere), nil)); e == nil || e.Code != durable.CodeBuildMismatch {
		t.Errorf("a call of the changed module: %v", e)
	}
	other := s.start(t.Context(), Call, "shop.stock", map[string]any{}, elsewhere)
	must(t, s.end(other, nil))
	for _, event := range testsuite.History(t, c, other.GetID()).Events {
		if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled != nil {
			payload := scheduled.GetInput().GetPayloads()[0].GetData()
			var request durable.CallRequest
			must(t, json.Unmarshal(payload, &request))
			if over := len(payload) - len(request.Inputs); over > 400 || request.Fingerprint == "" {
				t.Errorf("the call takes %d bytes over its inputs: %s", over, payload)
			} else {
				t.Logf("%d bytes over the inputs", over)
			}
		}
	}
}
