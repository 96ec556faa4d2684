package otelapcore

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// buckets are bounds in seconds, from 1 ms to a minute.
var buckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}

// NewMetricsRecorder makes a recorder for [apcore.MetricsOptions] that keeps the
// standard's three metrics: the counters apcore_module_calls_total and
// apcore_module_errors_total and the histogram apcore_module_duration_seconds. A
// nil provider takes nothing. It fails when the provider refuses an instrument.
func NewMetricsRecorder(provider metric.MeterProvider) (apcore.MetricsRecorder, error) {
	if provider == nil {
		provider = noop.NewMeterProvider()
	}
	meter := provider.Meter(ScopeName)
	calls, callsErr := meter.Int64Counter(apcore.MetricCalls, metric.WithDescription("Module calls by outcome"))
	failures, failuresErr := meter.Int64Counter(apcore.MetricErrors, metric.WithDescription("Failed module calls by error code"))
	duration, durationErr := meter.Float64Histogram(apcore.MetricDuration, metric.WithUnit("s"),
		metric.WithDescription("Duration of module calls"), metric.WithExplicitBucketBoundaries(buckets...))
	if err := errors.Join(callsErr, failuresErr, durationErr); err != nil {
		return nil, apcore.NewError(apcore.CodeInvalidInput, "the meter provider refuses an instrument: %w", err)
	}
	return &metricsRecorder{calls: calls, failures: failures, duration: duration}, nil
}

type metricsRecorder struct {
	calls, failures metric.Int64Counter
	duration        metric.Float64Histogram
}

// RecordCall counts one call.
func (r *metricsRecorder) RecordCall(ctx context.Context, call apcore.CallMeasurement) {
	module := attribute.String("module_id", call.ModuleID)
	r.calls.Add(ctx, 1, metric.WithAttributes(module, attribute.String("status", call.Status())))
	r.duration.Record(ctx, call.Duration.Seconds(), metric.WithAttributes(module))
	if call.Code != "" {
		r.failures.Add(ctx, 1, metric.WithAttributes(module, attribute.String("error_code", string(call.Code))))
	}
}
