package refund_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/examples/refund"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/temporal/codec"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

const (
	cardCanary  = "4000-canary-card-0002"
	tokenCanary = "canary-session-token-77"
)

// lines collects log output of several goroutines.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// watched is the shop with a client, a worker and logs to look through.
func watched(t *testing.T, codecs ...converter.PayloadCodec) (*shop, *lines) {
	t.Helper()
	out := &lines{}
	logger := slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	before := slog.Default()
	slog.SetDefault(logger)
	t.Cleanup(func() { slog.SetDefault(before) })
	opts := client.Options{Logger: log.NewStructuredLogger(logger)}
	if len(codecs) > 0 {
		opts = codec.ClientOptions(opts, codecs...)
	} else {
		opts.Interceptors = []interceptor.ClientInterceptor{temporal.NewClientInterceptor()}
	}
	server := testsuite.DevServer(t)
	s := &shop{t: t, server: server, client: server.Client(t, opts), queue: "secrets-" + uuid.NewString(), ledger: filepath.Join(t.TempDir(), "ledger")}
	var err error
	s.approvals, err = temporal.NewApprovals(s.client, temporal.ApprovalsOptions{Timeout: time.Minute})
	must(t, err)
	executor, err := refund.NewExecutor(s.ledger)
	must(t, err)
	w, err := worker.New(s.client, s.queue, executor, worker.Options{PluginOptions: worker.PluginOptions{Codecs: codecs}})
	must(t, err)
	w.Registry().RegisterWorkflow(refund.Refund)
	must(t, w.Start())
	t.Cleanup(w.Stop)
	return s, out
}

// play runs one ending and returns everything that people get to see of it.
func (s *shop) play(request refund.Request, status apcore.ApprovalStatus) (id string, seen []string) {
	s.t.Helper()
	caller := apcore.NewContext(apcore.ContextOptions{
		Identity: apcore.NewIdentity("maria", apcore.IdentityUser, nil, map[string]any{"session_token": tokenCanary}),
	})
	run, err := s.client.ExecuteWorkflow(temporal.WithContext(s.t.Context(), caller), client.StartWorkflowOptions{
		ID: s.queue + "-" + request.OrderID, TaskQueue: s.queue,
	}, refund.Refund, request)
	must(s.t, err)
	if status != "" {
		approval := s.pending(run.GetID())
		metadata, err := s.client.QueryWorkflow(s.t.Context(), run.GetID(), "", "__temporal_workflow_metadata")
		must(s.t, err)
		var shown sdkpb.WorkflowMetadata
		must(s.t, metadata.Get(&shown))
		seen = append(seen, shown.String())
		if !strings.Contains(shown.GetCurrentDetails(), approval.ApprovalID) {
			s.t.Errorf("current details %q", shown.GetCurrentDetails())
		}
		decision := durable.Decision{ApprovalID: approval.ApprovalID, Status: status, ApprovedBy: "ana", Reason: "because"}
		if status == apcore.ApprovalApproved {
			must(s.t, s.approvals.Decide(s.t.Context(), run.GetID(), decision))
		} else { // the other door must be able to read what a codec wrote as well
			must(s.t, s.approvals.Send(s.t.Context(), run.GetID(), decision))
		}
	}
	_, e := s.end(run)
	list, err := s.approvals.List(s.t.Context(), run.GetID())
	must(s.t, err)
	return run.GetID(), append(seen, asText(list), asText(e))
}

func asText(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}

// visibility is what the server lists of a run: memo and search attributes.
func (s *shop) visibility(id string) string {
	s.t.Helper()
	description, err := s.client.WorkflowService().DescribeWorkflowExecution(s.t.Context(), &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: s.server.Namespace(), Execution: executionOf(id),
	})
	must(s.t, err)
	return strings.Join(testsuite.FindSecrets(description, cardCanary, tokenCanary), ", ")
}

// kindsOf drops the numbers of events.
func kindsOf(places []string) []string {
	var kinds []string
	for _, place := range places {
		_, kind, _ := strings.Cut(place, " ")
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// Scenarios 80 and 81, pitfall 43, target 33: a secret is in the history where
// the call itself must carry it and nowhere else, however the run ends; with a
// codec, nowhere at all.
func TestSecretsStayWhereTheyBelong(t *testing.T) { //nolint:tparallel // it watches the process's logger
	keys, err := codec.New(codec.Options{Keys: []codec.Key{{ID: "test", Secret: bytes.Repeat([]byte{7}, 32)}}})
	must(t, err)
	const inputs = "ActivityTaskScheduled input.payloads[0].data"
	for name, test := range map[string]struct {
		codecs      []converter.PayloadCodec
		card, token []string
	}{
		"plain": {
			nil,
			[]string{inputs, "WorkflowExecutionStarted input.payloads[0].data"},
			[]string{inputs, `WorkflowExecutionStarted header.fields["apcore-context"].data`},
		},
		"encrypted": {[]converter.PayloadCodec{keys}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, logs := watched(t, test.codecs...)
			for order, status := range map[string]apcore.ApprovalStatus{"approved": apcore.ApprovalApproved, "rejected": apcore.ApprovalRejected, "expired": ""} {
				request := refund.Request{OrderID: order, Card: cardCanary}
				if status == "" {
					request.ApprovalSeconds = 1
				}
				id, seen := s.play(request, status)
				history := testsuite.History(t, s.client, id)
				for canary, want := range map[string][]string{cardCanary: test.card, tokenCanary: test.token} {
					if diff := cmp.Diff(want, kindsOf(testsuite.FindSecrets(history, canary))); diff != "" {
						t.Errorf("%s: places of %s (-want +got):\n%s", order, canary, diff)
					}
				}
				if places := s.visibility(id); places != "" {
					t.Errorf("%s: visibility holds a secret at %s", order, places)
				}
				for _, text := range seen {
					testsuite.RequireNoSecrets(t, wrapperspb.String(text), cardCanary, tokenCanary)
				}
				if len(test.codecs) > 0 {
					requireReadableNames(t, history)
				}
			}
			testsuite.RequireNoSecrets(t, wrapperspb.String(logs.String()), cardCanary, tokenCanary)
			if logs.String() == "" {
				t.Error("nothing was logged, so nothing was looked through")
			}
		})
	}
}

// requireReadableNames checks what is promised to stay readable beside a codec,
// and that failures are not.
func requireReadableNames(t *testing.T, history *historypb.History) {
	t.Helper()
	for _, event := range history.Events {
		if failed := event.GetWorkflowExecutionFailedEventAttributes(); failed != nil {
			kind := failed.Failure.GetApplicationFailureInfo().GetType()
			if kind != string(apcore.CodeApprovalDenied) && kind != string(apcore.CodeApprovalTimeout) {
				t.Errorf("type of the failure %q", kind)
			}
			if failed.Failure.Message != "Encoded failure" || failed.Failure.EncodedAttributes == nil {
				t.Errorf("the failure can be read: %q", failed.Failure.Message)
			}
		}
		if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled != nil {
			if _, _, ours := (durable.Namer{}).ParseUnit(scheduled.ActivityType.Name); !ours {
				t.Errorf("activity type %q", scheduled.ActivityType.Name)
			}
		}
	}
}

func executionOf(id string) *commonpb.WorkflowExecution {
	return &commonpb.WorkflowExecution{WorkflowId: id}
}
