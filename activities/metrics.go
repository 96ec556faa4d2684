package activities

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// Metrics of this package. They go to the metrics handler of the Temporal client,
// with its tags (namespace, task queue, activity and workflow type) and those
// named here; a module that is not registered here has the module_id "unknown".
// A unit is one attempt of a call. In Prometheus counters end in _total and timers
// in _seconds.
const (
	// MetricUnits counts units by module_id and status: completed,
	// approval_pending, not_asked, decision_refused, failed or cancelled.
	MetricUnits = "apcore_units"
	// MetricFailures counts failed units by module_id and error_code.
	MetricFailures = "apcore_unit_failures"
	// MetricRetries counts units that were not the first attempt, by module_id.
	MetricRetries = "apcore_unit_retries"
	// MetricLatency times units by module_id; nobody's decision is waited for in
	// it.
	MetricLatency = "apcore_unit_latency"
	// MetricApprovalWait times how long approved calls waited for their decision,
	// by module_id. How many wait is in MetricUnits, status approval_pending.
	MetricApprovalWait = "apcore_approval_wait"
)

// measured runs a unit and counts it.
func (a *Activities) measured(ctx context.Context, request durable.CallRequest, run func() (*durable.CallResult, error)) (*durable.CallResult, error) {
	module := a.opts.Aliases.Target(request.ModuleID)
	if !a.executor.Registry().Has(module) {
		module = "unknown" // what callers make up is no label
	}
	handler := activity.GetMetricsHandler(ctx).WithTags(map[string]string{"module_id": module})
	first := activity.GetInfo(ctx).Attempt <= 1
	if !first {
		handler.Counter(MetricRetries).Inc(1)
	}
	if decision := request.Decision; first && decision != nil && !decision.DecidedAt.IsZero() && request.Grant != nil {
		handler.Timer(MetricApprovalWait).Record(max(0, decision.DecidedAt.Sub(request.Grant.RequestedAt)))
	}
	began := time.Now()
	result, err := run()
	handler.Timer(MetricLatency).Record(time.Since(began))
	status := "failed"
	var failure *durable.Failure
	switch {
	case err == nil:
		status = string(result.Status)
	case errors.As(err, &failure) && failure.Err.Code == apcore.CodeExecutionCancelled:
		status = "cancelled"
	}
	handler.WithTags(map[string]string{"status": status}).Counter(MetricUnits).Inc(1)
	if status == "failed" {
		code := apcore.CodeInternal
		if failure != nil {
			code = failure.Err.Code
		}
		handler.WithTags(map[string]string{"error_code": string(code)}).Counter(MetricFailures).Inc(1)
	}
	return result, err
}
