package apcore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// measurements is a recorder that keeps what it is given.
type measurements struct {
	mu    sync.Mutex
	calls []string
}

func (m *measurements) RecordCall(_ context.Context, call apcore.CallMeasurement) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if call.Duration < 0 || call.Duration > time.Minute {
		m.calls = append(m.calls, fmt.Sprint("duration ", call.Duration))
	}
	m.calls = append(m.calls, fmt.Sprintf("%s %s %s", call.ModuleID, call.Status(), call.Code))
	if call.ModuleID == "uncountable" {
		panic("no")
	}
}

func TestMetrics(t *testing.T) {
	recorder, logged := &measurements{}, &ledger{}
	metrics, err := apcore.NewMetricsMiddleware(apcore.MetricsOptions{Recorder: recorder, Logger: logTo(logged)})
	if err != nil {
		t.Fatal(err)
	}
	silent, err := apcore.NewMetricsMiddleware(apcore.MetricsOptions{Recorder: (*measurements)(nil)})
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t, with(metrics, silent)).module("outer", calling("inner")).module("inner", failing(apcore.NewError("BROKEN", "x")))
	h.module("ok", nil).module("uncountable", nil).module("gone", failing(apcore.NewError(apcore.CodeExecutionCancelled, "x")))
	for _, id := range []string{"outer", "ok", "uncountable", "gone"} {
		_, _ = h.call(id, nil, nil)
	}
	want := []string{"inner error BROKEN", "outer error BROKEN", "ok success ", "uncountable success ", "gone error EXECUTION_CANCELLED"}
	if diff := cmp.Diff(want, recorder.calls); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if logged.count() != 1 {
		t.Errorf("logged %v", logged.all())
	}
	_, err = apcore.NewMetricsMiddleware(apcore.MetricsOptions{Priority: -1})
	invalidOption(t, err, "MetricsOptions.Priority", "-1")
}
