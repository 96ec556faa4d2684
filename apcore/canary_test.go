package apcore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// bird is in every secret of this test: where it shows, a secret leaked.
const bird = "CANARY"

// secretInputs has a secret in every place that redaction knows.
func secretInputs() obj {
	return obj{
		"name": "plain-name", "card": bird + "-by-schema", "_secret_note": bird + "-by-key",
		"auth":    "Bearer " + bird + "-bearer",
		"profile": obj{"pin": json.Number("8241973650"), "phrase": bird + `-"nested"/&`, "password": bird + "-nested-key"},
		"codes":   []any{bird + "-item-0", bird + "-item-1"},
		"people":  []any{obj{"alias": bird + "-in-array", "age": 40}},
		"maybe":   bird + "-in-union",
	}
}

func sensitive(kind string) obj { return obj{"type": kind, "x-sensitive": true} }

var secretSchema = obj{"type": "object", "properties": obj{
	"card":    sensitive("string"),
	"profile": obj{"properties": obj{"pin": sensitive("integer"), "phrase": sensitive("string")}},
	"codes":   obj{"items": sensitive("string")},
	"people":  obj{"items": obj{"properties": obj{"alias": sensitive("string")}}},
	"maybe":   obj{"anyOf": []any{sensitive("string"), obj{"type": "null"}}},
}}

// spills are the texts of everything secret, as a careless module would put them
// into an error.
func spills(in obj) string {
	raw, _ := json.Marshal(in)
	profile := object(in["profile"])
	return fmt.Sprintf("%v|%+v|%s|%q|dial pg://app:%s-url@db/x?token=%s-query password=%s-setting|pin %v", in, in, raw, profile["phrase"], bird, bird, bird, profile["pin"])
}

// spillError has a text that its type makes.
type spillError struct{ text string }

func (e *spillError) Error() string { return "driver: " + e.text }

// careless are the ways to fail, or not, that leak what the module was given.
var careless = map[string]func(in obj) (obj, error){
	"output": func(in obj) (obj, error) {
		return obj{"ok": true, "card": in["card"], "api_key": bird + "-made", "nested": obj{"tokens": in["codes"]}}, nil
	},
	"unfit output": func(in obj) (obj, error) { return obj{"ok": spills(in)}, nil },
	"own error": func(in obj) (obj, error) {
		return nil, apcore.NewError("LEAKY", "bad %s", spills(in)).WithDetail("inputs", in).WithDetail("text", spills(in)).
			WithDetail("api_key", bird+"-of-nobody").WithDetail("list", []string{spills(in)}).
			WithSuggestion(spills(in)).WithAIGuidance(spills(in)).WithCause(&spillError{spills(in)})
	},
	"foreign error": func(in obj) (obj, error) { return nil, &spillError{spills(in)} },
	"three deep": func(in obj) (obj, error) {
		return nil, fmt.Errorf("a: %w", fmt.Errorf("b: %w", fmt.Errorf("c: %w", &spillError{spills(in)})))
	},
	"joined": func(in obj) (obj, error) {
		return nil, errors.Join(errors.New("fine"), &spillError{spills(in)}, apcore.NewError("LEAKY", "%s", spills(in)))
	},
	"hidden cause": func(in obj) (obj, error) {
		return nil, apcore.NewError("LEAKY", "bad").WithCause(&pathError{apcore.NewError("INNER", "%s", spills(in)).WithDetail("x", in)})
	},
	"panic":        func(in obj) (obj, error) { panic(spills(in)) },
	"panic, error": func(in obj) (obj, error) { panic(&spillError{spills(in)}) },
	"timeout":      func(in obj) (obj, error) { return nil, fmt.Errorf("%s: %w", spills(in), context.DeadlineExceeded) },
	"cancellation": func(in obj) (obj, error) { return nil, fmt.Errorf("%s: %w", spills(in), context.Canceled) },
}

// leaky is a module that does one of these, in every way a module can be asked.
type leaky struct {
	testModule
	way func(in obj) (obj, error)
}

func (m *leaky) Execute(_ context.Context, in obj, _ *apcore.Context) (obj, error) { return m.way(in) }

func (m *leaky) Stream(_ context.Context, in obj, _ *apcore.Context) iter.Seq2[obj, error] {
	return func(yield func(obj, error) bool) {
		if output, err := m.way(in); err != nil || yield(output, nil) {
			yield(nil, errors.Join(err, &spillError{spills(in)}))
		}
	}
}

func (m *leaky) Preflight(_ context.Context, in obj, _ *apcore.Context) ([]string, error) {
	return []string{spills(in)}, &spillError{spills(in)}
}

func (m *leaky) Preview(_ context.Context, in obj, _ *apcore.Context) ([]apcore.Change, error) {
	return []apcore.Change{{Action: "write", Target: spills(in), Summary: spills(in), Before: in, After: []any{in}, Extra: obj{"x-all": in}}}, nil
}

// surfaces collects what leaves the core, by where it leaves.
type surfaces struct {
	mu    sync.Mutex
	shown map[string][]string
}

// show keeps a value in every form in which it may be written.
func (s *surfaces) show(where string, value any) {
	encoded, _ := json.Marshal(value)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown[where] = append(s.shown[where], string(encoded), fmt.Sprintf("%v|%+v|%#v|%s", value, value, value, value))
}

// showError follows every error in a tree.
func (s *surfaces) showError(where string, err error) {
	if err == nil {
		return
	}
	s.show(where, err)
	if e, ok := err.(*apcore.Error); ok { //nolint:errorlint // the tree is followed by hand
		s.show(where, e.Map())
		s.show(where, e.Details)
	}
	switch wrapper := err.(type) { //nolint:errorlint // the tree is followed by hand
	case interface{ Unwrap() error }:
		s.showError(where, wrapper.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range wrapper.Unwrap() {
			s.showError(where, inner)
		}
	}
}

// leaks lists the surfaces that show a secret.
func (s *surfaces) leaks() []string {
	var found []string
	for where, texts := range s.shown {
		for _, text := range texts {
			if at := max(strings.Index(text, bird), strings.Index(text, "8241973650")); at >= 0 {
				found = append(found, fmt.Sprintf("%s: ...%s...", where, text[max(0, at-60):min(len(text), at+40)]))
				break
			}
		}
	}
	slices.Sort(found)
	return found
}

// The surfaces of an application that logs, traces, audits and asks.
func watched(t *testing.T, s *surfaces, redaction apcore.RedactionConfig) (opts apcore.ExecutorOptions, history *apcore.ErrorHistory, logs *bytes.Buffer) {
	t.Helper()
	logs = &bytes.Buffer{}
	logger := slog.New(slog.NewJSONHandler(&locked{buffer: logs}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	logging, err := apcore.NewLoggingMiddleware(apcore.LoggingOptions{Logger: logger})
	must(t, err)
	tracing, err := apcore.NewTracingMiddleware(apcore.TracingOptions{Exporters: []apcore.SpanExporter{spanFunc(func(span apcore.Span) { s.show("spans", span) })}})
	must(t, err)
	history = newHistory(t, 0)
	acl, err := apcore.NewACL([]apcore.ACLRule{{
		Callers: []string{"*"}, Targets: []string{"*"}, Effect: apcore.ACLAllow, Conditions: obj{"odd": true},
	}}, apcore.ACLOptions{
		DefaultEffect: apcore.ACLAllow, Logger: logger,
		Conditions: map[string]apcore.ACLCondition{"odd": func(context.Context, any, apcore.AccessRequest) (bool, error) {
			return false, errors.New("dial pg://u:" + bird + "@db")
		}},
		Audit: func(_ context.Context, entry apcore.AuditEntry) { s.show("audit entries", entry) },
	})
	must(t, err)
	return apcore.ExecutorOptions{
		AccessControl: acl, Redaction: redaction, Logger: logger, Middleware: []apcore.Middleware{logging, tracing, history},
		OnEvent: func(event apcore.Event) { s.show("events", event) },
		ApprovalHandler: apcore.ApprovalCallback(func(_ context.Context, request *apcore.ApprovalRequest) (*apcore.ApprovalResult, error) {
			s.show("approval requests", request)
			s.show("approval requests", *request)
			logger.Info("asked", "request", request)
			return &apcore.ApprovalResult{Status: apcore.ApprovalApproved, Reason: "fine with " + spills(request.Arguments)}, nil
		}),
	}, history, logs
}

type spanFunc func(apcore.Span)

func (f spanFunc) ExportSpan(_ context.Context, span apcore.Span) error {
	f(span)
	return nil
}

// locked is a writer for several goroutines.
type locked struct {
	mu     sync.Mutex
	buffer *bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buffer.Write(p)
}

// spill runs a careless module in every way and collects what shows.
func spill(t *testing.T, way func(in obj) (obj, error), redaction apcore.RedactionConfig) *surfaces {
	t.Helper()
	s := &surfaces{shown: map[string][]string{}}
	opts, history, logs := watched(t, s, redaction)
	h := newHost(t, opts)
	leak := &leaky{testModule{
		input: secretSchema, output: obj{"properties": obj{"card": sensitive("string"), "ok": obj{"type": "boolean"}}},
		annotations: apcore.Annotations{RequiresApproval: true, Streaming: true},
	}, way}
	must(t, h.registry.Register("leak", leak, apcore.RegisterOptions{}))
	h.module("outer", func(ctx context.Context, _ obj, _ *apcore.Context) (obj, error) {
		_, err := apcore.Call[obj](ctx, "leak", secretInputs())
		return obj{}, err
	})

	outcome, err := h.call("leak", secretInputs(), nil)
	s.showError("Do", err)
	s.show("contexts", outcome.Context.Serialize())
	_, err = h.Call(t.Context(), "outer", nil, nil)
	s.showError("a nested call", err)
	_, trace, err := h.CallWithTrace(t.Context(), "leak", secretInputs(), nil)
	s.showError("CallWithTrace", err)
	s.show("pipeline traces", trace)
	for _, err := range h.Stream(t.Context(), "leak", secretInputs(), nil) {
		s.showError("Stream", err)
	}
	s.show("Validate", h.Validate(t.Context(), "leak", secretInputs(), nil))
	unfit := secretInputs()
	unfit["card"], unfit["codes"], unfit["profile"], unfit["people"] = []any{bird}, obj{bird: bird}, bird, []any{bird, 1}
	_, err = h.Call(t.Context(), "leak", unfit, nil)
	s.showError("schema errors", err)
	s.show("Validate", h.Validate(t.Context(), "leak", unfit, nil))

	tasks := newTaskManager(t, h, apcore.AsyncTaskOptions{Logger: opts.Logger})
	id, err := tasks.Submit(t.Context(), "leak", secretInputs(), nil, retries(0))
	must(t, err)
	info := &apcore.TaskInfo{}
	for !info.Status.Terminal() {
		if info, err = tasks.GetStatus(t.Context(), id); err != nil || info == nil {
			t.Fatalf("status: %v, %v", info, err)
		}
	}
	must(t, tasks.Shutdown(t.Context()))
	info.Result = nil // is the output itself, for whoever submitted the task
	s.show("task records", info)
	for _, module := range history.Modules() {
		s.show("error history", history.Errors(module))
	}
	s.show("governance", h.GovernanceState())
	s.show("logs", logs.String())
	return s
}

// Scenarios 80 and 81, target 33, pitfall 43: whatever a module does with its
// secrets, no surface of the core shows one, unless as the output that the caller
// asked for.
func TestCanary(t *testing.T) {
	everywhere := map[string]bool{}
	for name, way := range careless {
		t.Run(name, func(t *testing.T) {
			s := spill(t, way, apcore.RedactionConfig{})
			for _, leak := range s.leaks() {
				t.Error(leak)
			}
			for where := range s.shown {
				everywhere[where] = true
			}
			if logs := strings.Join(s.shown["logs"], ""); !strings.Contains(logs, masked) || !strings.Contains(logs, "plain-name") {
				t.Errorf("logs show nothing: %s", logs)
			}
		})
	}
	// The condition that fails is really in the audit.
	s := spill(t, careless["output"], apcore.RedactionConfig{})
	if audit := strings.Join(s.shown["audit entries"], ""); !strings.Contains(audit, "the handler failed: dial pg://u:"+masked+"@db") {
		t.Errorf("the failing condition is missing: %.400s", audit)
	}
	want := strings.Split("Do,a nested call,CallWithTrace,Stream,Validate,schema errors,contexts,pipeline traces,task records,error history,logs,events,spans,audit entries,approval requests,governance", ",")
	for _, where := range want {
		if !everywhere[where] {
			t.Errorf("nothing was shown by %s", where)
		}
	}
}

// The canary sings: with redaction by name switched off, secrets do show.
func TestCanarySings(t *testing.T) {
	s := spill(t, careless["own error"], apcore.RedactionConfig{SensitiveKeys: []string{}})
	leaks := strings.Join(s.leaks(), "\n")
	for _, where := range []string{"Do:", "logs:", "error history:", "Validate:", "task records:", "events:", "approval requests:", "contexts:"} {
		if !strings.Contains(leaks, where) {
			t.Errorf("%s a secret that nothing hides is not found; found\n%s", where, leaks)
		}
	}
}
