package testsuite_test

import (
	"bytes"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	sdktestsuite "go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

// greet ends with the name that it is sent in a signal.
func greet(ctx workflow.Context) (string, error) {
	var name string
	workflow.GetSignalChannel(ctx, "name").Receive(ctx, &name)
	return "hello " + name, nil
}

// startGreet starts the workflow on a task queue named like it.
func startGreet(t *testing.T, c client.Client) client.WorkflowRun {
	t.Helper()
	id := uuid.NewString()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: id}, greet)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// work runs a worker for a workflow until the end of the test.
func work(t *testing.T, c client.Client, run client.WorkflowRun) {
	t.Helper()
	w := sdkworker.New(c, run.GetID(), sdkworker.Options{})
	w.RegisterWorkflow(greet)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
}

// finish sends the signal and checks the result.
func finish(t *testing.T, c client.Client, run client.WorkflowRun) {
	t.Helper()
	if err := c.SignalWorkflow(t.Context(), run.GetID(), "", "name", "you"); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := run.Get(t.Context(), &got); err != nil || got != "hello you" {
		t.Fatalf("workflow ended with %q, %v", got, err)
	}
}

// needsServer skips what is left of a test under -short, as [testsuite.DevServer]
// does.
func needsServer(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a Temporal server, which -short leaves out")
	}
}

func TestDevServerRunsAWorkflow(t *testing.T) {
	c := testsuite.DevServer(t).Client(t, client.Options{})
	run := startGreet(t, c)
	work(t, c, run)
	finish(t, c, run)
}

func TestDevServerIsTheSameForAll(t *testing.T) {
	first := testsuite.DevServer(t)
	t.Run("tests", func(t *testing.T) {
		for range 4 {
			t.Run("test", func(t *testing.T) {
				t.Parallel()
				if server := testsuite.DevServer(t); server != first {
					t.Errorf("servers at %s and %s", server.Address(), first.Address())
				}
			})
		}
	})
	first.Stop()
	first.Kill()
	first.Client(t, client.Options{}) // it still serves
}

func TestDevServerKnowsTheSearchAttributes(t *testing.T) {
	server := testsuite.DevServer(t)
	list, err := server.Client(t, client.Options{}).OperatorService().ListSearchAttributes(t.Context(),
		&operatorservice.ListSearchAttributesRequest{Namespace: server.Namespace()})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]enumspb.IndexedValueType{
		"ApcoreModuleId":         enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"ApcoreTaskStatus":       enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"ApcoreTaskStore":        enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"ApcoreTaskCompletedAt":  enumspb.INDEXED_VALUE_TYPE_DOUBLE,
		"ApcorePendingApprovals": enumspb.INDEXED_VALUE_TYPE_INT,
		"ApcoreApproverGroup":    enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"ApcoreState":            enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	} {
		if got := list.GetCustomAttributes()[name]; got != want {
			t.Errorf("search attribute %s is of type %v, want %v", name, got, want)
		}
	}
}

func TestStartServerKeepsItsFileOverARestart(t *testing.T) {
	for name, end := range map[string]func(*testsuite.Server){
		"stopped": (*testsuite.Server).Stop,
		"killed":  (*testsuite.Server).Kill,
	} {
		t.Run(name, func(t *testing.T) {
			opts := testsuite.ServerOptions{DBFile: filepath.Join(t.TempDir(), "server.db"), Namespace: "kept"}
			first := testsuite.StartServer(t, opts)
			c := first.Client(t, client.Options{})
			run := startGreet(t, c)
			work(t, c, run)
			end(first)

			opts.Address = first.Address()
			second := testsuite.StartServer(t, opts)
			if second.Address() != first.Address() || second.PID() == first.PID() {
				t.Fatalf("first %s, %d, second %s, %d", first.Address(), first.PID(), second.Address(), second.PID())
			}
			finish(t, c, run) // client and worker are those of before
			info, err := second.Client(t, client.Options{}).WorkflowService().DescribeNamespace(t.Context(),
				&workflowservice.DescribeNamespaceRequest{Namespace: "kept"})
			if err != nil || info.GetNamespaceInfo().GetName() != second.Namespace() {
				t.Errorf("namespace is %v, %v", info.GetNamespaceInfo(), err)
			}
		})
	}
}

func TestStartServerTakesItsOptions(t *testing.T) {
	server := testsuite.StartServer(t, testsuite.ServerOptions{
		SearchAttributes: map[string]string{"Color": "Keyword", "Weight": "Double"},
		DynamicConfig:    map[string]string{"limit.maxIDLength": "40"},
		UI:               true,
	})
	if !strings.HasPrefix(server.UI(), "http://127.0.0.1:") {
		t.Errorf("web UI is at %q", server.UI())
	}
	c := server.Client(t, client.Options{})
	count, err := c.CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: "Color = 'red' AND Weight > 1"})
	if err != nil || count.GetCount() != 0 {
		t.Errorf("count is %v, %v", count, err)
	}
	_, err = c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: strings.Repeat("x", 41), TaskQueue: "any"}, greet)
	if err == nil || !strings.Contains(err.Error(), "length") {
		t.Errorf("a too long id gives %v", err)
	}
}

func TestServersEndAtTheEndOfTheirTest(t *testing.T) {
	needsServer(t)
	var address string
	t.Run("inner", func(t *testing.T) {
		address = testsuite.StartServer(t, testsuite.ServerOptions{}).Address()
	})
	if t.Failed() || address == "" {
		t.Fatal("no server")
	}
	if conn, err := net.Dial("tcp", address); err == nil {
		_ = conn.Close()
		t.Errorf("%s still listens", address)
	}
}

func TestSDKStartsTheServerToo(t *testing.T) {
	needsServer(t)
	path, err := testsuite.BuildServer(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	color := sdktemporal.NewSearchAttributeKeyKeywordList("Color")
	var stderr bytes.Buffer
	server, err := sdktestsuite.StartDevServer(t.Context(), sdktestsuite.DevServerOptions{
		ExistingPath:     path,
		ClientOptions:    &client.Options{Namespace: "of-the-sdk"},
		DBFilename:       filepath.Join(t.TempDir(), "server.db"),
		EnableUI:         true,
		LogFormat:        "pretty",
		LogLevel:         "error",
		SearchAttributes: sdktemporal.NewSearchAttributes(color.ValueSet(nil)),
		Stdout:           io.Discard,
		Stderr:           &stderr,
	})
	if err != nil {
		t.Fatalf("%v, stderr:\n%s", err, &stderr)
	}
	c := server.Client()
	defer c.Close()
	run, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		TaskQueue:             "of-the-sdk",
		TypedSearchAttributes: sdktemporal.NewSearchAttributes(color.ValueSet([]string{"red", "blue"})),
	}, greet)
	if err != nil {
		t.Fatal(err)
	}
	description, err := c.DescribeWorkflow(t.Context(), run.GetID(), "")
	if err != nil {
		t.Fatal(err)
	}
	got, _ := description.TypedSearchAttributes.GetKeywordList(color)
	if diff := cmp.Diff([]string{"red", "blue"}, got); diff != "" {
		t.Errorf("search attribute (-want +got):\n%s", diff)
	}
	if err := server.Stop(); err != nil {
		t.Errorf("stop: %v, stderr:\n%s", err, &stderr)
	}
}
