package apcore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

const canary = "canary-hunter2"

func newLogging(t *testing.T, buffer *bytes.Buffer, opts apcore.LoggingOptions) *apcore.LoggingMiddleware {
	t.Helper()
	opts.Logger = slog.New(slog.NewJSONHandler(buffer, nil))
	m, err := apcore.NewLoggingMiddleware(opts)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// records reads what was logged, without the times.
func records(t *testing.T, buffer *bytes.Buffer) []obj {
	t.Helper()
	found := []obj{}
	for line := range strings.Lines(buffer.String()) {
		var record obj
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Fatal(err)
		}
		delete(record, "time")
		found = append(found, record)
	}
	return found
}

// TestLogging: fields, durations and redaction, of nested calls that overlap.
func TestLogging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var buffer bytes.Buffer
		h := newHost(t, with(newLogging(t, &buffer, apcore.LoggingOptions{})))
		h.module("inner", func(_ context.Context, in obj, _ *apcore.Context) (obj, error) {
			time.Sleep(3 * time.Second)
			return nil, apcore.NewError("BAD_LOGIN", "no such login: %v", in["password"])
		})
		h.module("outer", func(ctx context.Context, in obj, _ *apcore.Context) (obj, error) {
			time.Sleep(time.Second)
			_, err := apcore.Call[obj](ctx, "inner", in)
			time.Sleep(time.Second)
			return obj{"token": in["password"], "failed": err != nil}, nil
		})
		outcome, err := h.call("outer", obj{"n": 1, "password": canary, apcore.ApprovalTokenKey: canary}, nil)
		h.wants(err, "", 2)
		if strings.Contains(buffer.String(), canary) {
			t.Errorf("a secret is logged:\n%s", &buffer)
		}
		const hidden = "***REDACTED***"
		record := func(level, message, module, caller string, rest obj) obj {
			rest["level"], rest["msg"], rest["module_id"], rest["caller_id"] = level, message, module, caller
			rest["trace_id"] = outcome.Context.TraceID()
			return rest
		}
		inputs := obj{"n": 1.0, "password": hidden}
		want := []obj{
			record("INFO", "apcore: call started", "outer", "", obj{"inputs": inputs}),
			record("INFO", "apcore: call started", "inner", "outer", obj{"inputs": inputs}),
			record("ERROR", "apcore: call failed", "inner", "outer", obj{
				"duration_ms": 3000.0, "error_code": "BAD_LOGIN", "error": "no such login: " + hidden,
			}),
			record("INFO", "apcore: call completed", "outer", "", obj{
				"duration_ms": 5000.0, "output": obj{"token": hidden, "failed": true},
			}),
		}
		if diff := cmp.Diff(want, records(t, &buffer)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// TestLoggingSeesRawMapsNever: middleware that replaces inputs or output does
// not bring a secret into the log.
func TestLoggingSeesRawMapsNever(t *testing.T) {
	var buffer bytes.Buffer
	swap := &hook{
		before: func(*apcore.MiddlewareCall) (obj, error) { return obj{"password": canary}, nil },
		after:  func(*apcore.MiddlewareCall, obj) (obj, error) { return obj{"password": canary}, nil },
	}
	h := newHost(t, with(swap, newLogging(t, &buffer, apcore.LoggingOptions{}), swap)).module("m", nil)
	_, err := h.call("m", nil, nil)
	h.wants(err, "", 1)
	h.module("bad", failing(errors.New("login "+canary)))
	_, err = h.call("bad", nil, nil)
	h.wants(err, apcore.CodeModuleExecuteError, 2)
	if got := len(records(t, &buffer)); got != 4 || strings.Contains(buffer.String(), canary) {
		t.Errorf("%d records:\n%s", got, &buffer)
	}
}

func TestLoggingOptions(t *testing.T) {
	_, err := apcore.NewLoggingMiddleware(apcore.LoggingOptions{Priority: -1})
	invalidOption(t, err, "LoggingOptions.Priority", "-1", "1 to 1000")
	var buffer bytes.Buffer
	h := newHost(t, with(newLogging(t, &buffer, apcore.LoggingOptions{OmitValues: true, Level: slog.LevelWarn}))).module("m", nil)
	_, err = h.call("m", obj{"n": 1}, nil)
	h.wants(err, "", 1)
	for _, record := range records(t, &buffer) {
		if record["level"] != "WARN" || record["inputs"] != nil || record["output"] != nil {
			t.Errorf("%v", record)
		}
	}
}

// TestLoggingInstancesKeepTheirTimes: two of them do not take each other's.
func TestLoggingInstancesKeepTheirTimes(t *testing.T) {
	var buffer bytes.Buffer
	h := newHost(t, with(newLogging(t, &buffer, apcore.LoggingOptions{}), newLogging(t, &buffer, apcore.LoggingOptions{}))).module("m", nil)
	_, err := h.call("m", nil, nil)
	h.wants(err, "", 1)
	if got := strings.Count(buffer.String(), "duration_ms"); got != 2 {
		t.Errorf("%d durations, want 2:\n%s", got, &buffer)
	}
}
