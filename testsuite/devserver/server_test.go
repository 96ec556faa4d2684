package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

const taskQueue = "devserver-test"

// waitForName ends with the name that it is sent in a signal.
func waitForName(ctx workflow.Context) (string, error) {
	var name string
	workflow.GetSignalChannel(ctx, "name").Receive(ctx, &name)
	return name, nil
}

// dial returns a client of a server; it is closed at the end of the test.
func dial(t *testing.T, p *process, namespace string) client.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), client.Options{HostPort: p.ready.Address, Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// finish runs a worker until the workflow has its result.
func finish(t *testing.T, c client.Client, id, name string) {
	t.Helper()
	w := sdkworker.New(c, taskQueue, sdkworker.Options{})
	w.RegisterWorkflow(waitForName)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := c.SignalWorkflow(t.Context(), id, "", "name", name); err != nil {
		t.Fatal(err)
	}
	wantResult(t, c, id, name)
}

// wantResult checks the result of a workflow.
func wantResult(t *testing.T, c client.Client, id, want string) {
	t.Helper()
	var got string
	if err := c.GetWorkflow(t.Context(), id, "").Get(t.Context(), &got); err != nil || got != want {
		t.Fatalf("workflow %s ended with %q, %v, want %q", id, got, err, want)
	}
}

func TestRestartOnOneFileKeepsWorkflows(t *testing.T) {
	endings := map[string]func(*process){
		"stopped": (*process).stop,
		"killed":  (*process).kill,
	}
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "100% #1?.db")
			args := []string{"--headless", "--db-filename", file, "--namespace", "kept"}
			first := launch(t, args...)
			c := dial(t, first, "kept")
			for _, id := range []string{"ended", "open"} {
				if _, err := c.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: taskQueue}, waitForName); err != nil {
					t.Fatal(err)
				}
			}
			finish(t, c, "ended", "early")
			end(first)

			second := launch(t, args...)
			if first.ready.PID == second.ready.PID {
				t.Fatal("that is the same process")
			}
			c = dial(t, second, "kept")
			wantResult(t, c, "ended", "early")
			finish(t, c, "open", "late")
			second.stop()
			if _, err := os.Stat(file); err != nil {
				t.Errorf("the state is elsewhere: %v", err)
			}
		})
	}
}

func TestReadyLineKeepsItsPromises(t *testing.T) {
	p := launch(t, "--headless", "--namespace", "one", "--namespace", "two",
		"--search-attribute", "Color=Keyword", "--search-attribute", "Weight=Double")
	if p.ready.UI != "" || p.ready.Namespace != "one" || p.ready.PID != p.cmd.Process.Pid {
		t.Errorf("ready line is %+v, process %d", p.ready, p.cmd.Process.Pid)
	}
	for _, namespace := range []string{"one", "two", "default"} {
		c := dial(t, p, namespace)
		list, err := c.OperatorService().ListSearchAttributes(t.Context(), &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]enumspb.IndexedValueType{"Color": enumspb.INDEXED_VALUE_TYPE_KEYWORD, "Weight": enumspb.INDEXED_VALUE_TYPE_DOUBLE}
		if diff := cmp.Diff(want, list.GetCustomAttributes()); diff != "" {
			t.Errorf("search attributes of %s (-want +got):\n%s", namespace, diff)
		}
	}
	p.stop()
}

func TestAttributesAndNamespacesAreAddedToAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "server.db")
	launch(t, "--headless", "--db-filename", file, "--search-attribute", "Color=Keyword").stop()
	p := launch(t, "--headless", "--db-filename", file, "--namespace", "late", "--search-attribute", "Weight=Double")
	count, err := dial(t, p, "default").CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
		Query: "Color = 'red' OR Weight > 1.5",
	})
	if err != nil || count.GetCount() != 0 {
		t.Errorf("count is %v, %v", count, err)
	}
	dial(t, p, "late")
}

func TestSameClusterAfterRestartInMemory(t *testing.T) {
	id := func() string {
		p := launch(t, "--headless")
		defer p.kill()
		info, err := dial(t, p, "default").WorkflowService().GetClusterInfo(t.Context(), &workflowservice.GetClusterInfoRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return info.GetClusterId()
	}
	if first, second := id(), id(); first != second || first != clusterID {
		t.Errorf("cluster ids are %q and %q, want %q", first, second, clusterID)
	}
}

func TestWebUI(t *testing.T) {
	p := launch(t)
	get := func(path string) string {
		response, err := http.Get(p.ready.UI + path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%s answers %s, %v", path, response.Status, err)
		}
		return string(body)
	}
	if page := get("/"); !strings.Contains(page, "<html") {
		t.Errorf("the page is %.200q", page)
	}
	if namespaces := get("/api/v1/namespaces"); !strings.Contains(namespaces, `"default"`) {
		t.Errorf("the namespaces are %.200q", namespaces)
	}
	p.stop()
}

func TestSignalsStopGracefully(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			p := launch(t, "--headless")
			if err := p.cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			p.mustEndWell()
		})
	}
}

func TestTakenPortIsRefused(t *testing.T) {
	listener, err := net.Listen("tcp", loopback+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	port := listener.Addr().(*net.TCPAddr).Port
	for _, flag := range []string{"--port", "--ui-port"} {
		opts, err := parse(flag, strconv.Itoa(port))
		if err != nil {
			t.Fatal(err)
		}
		if flag == "--ui-port" {
			opts.port = 0
		}
		if _, err := choosePorts(opts); err == nil || !strings.Contains(err.Error(), flag+" "+strconv.Itoa(port)) {
			t.Errorf("error is %v", err)
		}
	}
}

func TestFreePortsDiffer(t *testing.T) {
	const count = 50
	ports, err := freePorts(netip.MustParseAddr(loopback), count)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ports)
	if len(slices.Compact(ports)) != count {
		t.Errorf("ports repeat: %v", ports)
	}
}

func TestReachable(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0:1": "127.0.0.1:1", "[::]:1": "[::1]:1", "10.1.2.3:1": "10.1.2.3:1", "[::ffff:0.0.0.0]:1": "127.0.0.1:1",
	} {
		if got := reachable(netip.MustParseAddrPort(address)); got != want {
			t.Errorf("%s is reached at %s, want %s", address, got, want)
		}
	}
}

func TestWaitReadyEndsWithItsContext(t *testing.T) {
	p := launch(t, "--headless")
	p.kill()
	srv := &server{opts: options{namespaces: []string{"default"}}}
	address := netip.MustParseAddrPort(p.ready.Address)
	srv.opts.ip, srv.ports.frontend = address.Addr(), int(address.Port())
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := srv.waitReady(ctx); err == nil || !strings.Contains(err.Error(), `namespace "default" is not served`) {
		t.Errorf("error is %v", err)
	}
}
