package worker_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	"github.com/apcore-temporal/apcore-temporal/durable"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// fileStorage keeps payloads as files named by their content.
type fileStorage struct {
	dir string
}

func (fileStorage) Name() string { return "files" }

func (fileStorage) Type() string { return "test-files" }

func (s fileStorage) Store(ctx converter.StorageDriverStoreContext, payloads []*commonpb.Payload) ([]converter.StorageDriverClaim, error) {
	claims := make([]converter.StorageDriverClaim, len(payloads))
	for i, payload := range payloads {
		err := ctx.GetLimiter().Permit(ctx.Context, payload, func() error {
			text, err := proto.Marshal(payload)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(text)
			name := hex.EncodeToString(sum[:])
			claims[i] = converter.StorageDriverClaim{ClaimData: map[string]string{"file": name}}
			return os.WriteFile(filepath.Join(s.dir, name), text, 0o600)
		})
		if err != nil {
			return nil, err
		}
	}
	return claims, nil
}

func (s fileStorage) Retrieve(ctx converter.StorageDriverRetrieveContext, claims []converter.StorageDriverClaim) ([]*commonpb.Payload, error) {
	payloads := make([]*commonpb.Payload, len(claims))
	for i, claim := range claims {
		err := ctx.GetLimiter().Permit(ctx.Context, claim, func() error {
			text, err := os.ReadFile(filepath.Join(s.dir, filepath.Base(claim.ClaimData["file"])))
			if err != nil {
				return err
			}
			payloads[i] = &commonpb.Payload{}
			return proto.Unmarshal(text, payloads[i])
		})
		if err != nil {
			return nil, err
		}
	}
	return payloads, nil
}

// Offloaded sends a text of a size to a gated module and gets one back.
func Offloaded(ctx workflow.Context, text string) (int, error) {
	got, err := temporal.Call[sizeOrder](ctx, "size.gated", sizeText{text})
	if err != nil {
		return 0, err
	}
	back, err := temporal.Call[sizeText](ctx, "size.make", sizeOrder{got.Bytes})
	return len(back.Text), err
}

// Target 31: with an external storage, an argument of 50 MB goes from client to
// workflow, approval and module, and a result of 50 MB back. The history holds
// references only, and sizes beyond the limit are still an error.
func TestFiftyMegabytes(t *testing.T) {
	t.Parallel()
	size := 50_000_000
	if underRace { // which takes minutes for it; the long tests run it whole
		size = 5_000_000
	}
	storage := converter.ExternalStorage{Drivers: []converter.StorageDriver{fileStorage{t.TempDir()}}, PayloadSizeThreshold: 64 * kib}
	c := testsuite.DevServer(t).Client(t, client.Options{
		ExternalStorage: storage, Interceptors: []interceptor.ClientInterceptor{temporal.NewClientInterceptor()},
	})
	s := serve(t, c, newSizeExecutor(t), worker.Options{PluginOptions: worker.PluginOptions{
		Limits: temporal.Limits{OffloadBytes: storage.PayloadSizeThreshold},
	}}, Offloaded, Sized, FanOut)
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: s.queue, TaskQueue: s.queue, WorkflowTaskTimeout: 2 * time.Minute, // a busy machine takes its time for 50 MB
	}, Offloaded, textOf(size))
	must(t, err)
	var list []durable.Approval
	for deadline := time.Now().Add(3 * time.Minute); len(list) == 0 && time.Now().Before(deadline); {
		list, err = s.approvals.List(t.Context(), run.GetID())
	}
	if len(list) != 1 {
		t.Fatalf("approvals %v, %v", list, err)
	}
	approval := list[0]
	if text, _ := approval.Arguments["text"].(string); len(text) != size {
		t.Errorf("the approver sees %d bytes", len(text))
	}
	must(t, s.approvals.Decide(t.Context(), run.GetID(), approve(approval.ApprovalID)))
	var got int
	must(t, s.end(run, &got))
	if got != size {
		t.Errorf("%d bytes came back", got)
	}
	total := 0
	for _, event := range testsuite.History(t, testsuite.DevServer(t).Client(t, client.Options{}), run.GetID()).Events {
		total += proto.Size(event)
	}
	if total > 64*kib {
		t.Errorf("the history has %d bytes", total)
	}
	if n := s.events(run.GetID())[enums.EVENT_TYPE_WORKFLOW_TASK_FAILED]; n > 0 {
		t.Errorf("%d workflow tasks failed", n)
	}
	if !underRace {
		if _, err := s.sendSized(t, "inputs", temporal.DefaultMaxOffloadedBytes); temporal.AsError(err).Code != durable.CodePayloadTooLarge {
			t.Errorf("beyond the limit: %v", err)
		}
	}
	// Many large calls at once: each counts no more than the threshold.
	run = s.start(t.Context(), FanOut, 20, 1_000_000)
	must(t, s.end(run, &got))
	if counts := s.events(run.GetID()); got != 20_000_000 || counts[enums.EVENT_TYPE_TIMER_STARTED] > 0 || counts[enums.EVENT_TYPE_WORKFLOW_TASK_FAILED] > 0 {
		t.Errorf("%d bytes, events %v", got, counts)
	}
}

func textOf(size int) string {
	text := make([]byte, size)
	for i := range text {
		text[i] = 'a' + byte(i%26)
	}
	return string(text)
}
