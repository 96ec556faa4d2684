package temporal_test

import (
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/temporal"
	"github.com/apcore-temporal/apcore-temporal/testsuite"
	"github.com/apcore-temporal/apcore-temporal/worker"
)

// clerk is a worker that keeps task records, for as many stores as a test wants.
type clerk struct {
	server *testsuite.Server
	client client.Client
	queue  string
	stop   func()
}

func newClerk(t *testing.T, server *testsuite.Server) *clerk {
	t.Helper()
	executor, err := apcore.NewExecutor(apcore.NewRegistry(apcore.RegistryOptions{}), apcore.ExecutorOptions{Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	c := &clerk{server: server, client: server.Client(t, client.Options{}), queue: "clerk-" + uuid.NewString()}
	c.work(t, executor)
	return c
}

// work starts a worker; stop ends it.
func (c *clerk) work(t *testing.T, executor *apcore.Executor) {
	t.Helper()
	w, err := worker.New(c.client, c.queue, executor, worker.Options{StopTimeout: time.Second})
	must(t, err)
	must(t, w.Start())
	stopped := false
	c.stop = func() {
		if !stopped {
			w.Stop()
		}
		stopped = true
	}
	t.Cleanup(func() { c.stop() })
}

func (c *clerk) store(t *testing.T, name string) *temporal.TaskStore {
	t.Helper()
	return c.storeWith(t, temporal.TaskStoreOptions{Name: name, Timeout: time.Minute})
}

func (c *clerk) storeWith(t *testing.T, opts temporal.TaskStoreOptions) *temporal.TaskStore {
	t.Helper()
	opts.TaskQueue, opts.Namespace = c.queue, c.server.Namespace()
	store, err := temporal.NewTaskStore(c.client, opts)
	must(t, err)
	return store
}

// fileServer keeps its state in a SQLite file.
func fileServer(t *testing.T, opts testsuite.ServerOptions) *testsuite.Server {
	t.Helper()
	if opts.DBFile == "" {
		opts.DBFile = filepath.Join(t.TempDir(), "temporal.db")
	}
	opts.SearchAttributes = map[string]string{}
	for name, kind := range temporal.SearchAttributes() {
		opts.SearchAttributes[name] = kind.String()
	}
	// The server's own ten visibility calls a second make long tests.
	config := map[string]string{"frontend.namespaceRPS.visibility": "1000"}
	maps.Copy(config, opts.DynamicConfig)
	opts.DynamicConfig = config
	return testsuite.StartServer(t, opts)
}

// noCacheEnv makes the worker of the suite forget every workflow at once.
const noCacheEnv = "TASKSTORE_TEST_NO_CACHE"

// Target 38: the store on Temporal keeps the contract of the in-memory one.
func TestTaskStoreSuite(t *testing.T) {
	if os.Getenv(noCacheEnv) != "" {
		sdkworker.SetStickyWorkflowCacheSize(0)
	}
	c := newClerk(t, fileServer(t, testsuite.ServerOptions{}))
	testsuite.TaskStoreSuite(t,
		func(t *testing.T) apcore.TaskStore {
			t.Helper()
			return c.store(t, uuid.NewString())
		},
		testsuite.WithBrokenStore(func(t *testing.T) apcore.TaskStore {
			t.Helper()
			return unreachableStore(t)
		}))
}

// The same with every workflow task a replay from the start. The cache belongs to
// the process, so this is another one.
func TestTaskStoreSuiteWithoutCache(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a Temporal server, which -short leaves out")
	}
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTaskStoreSuite$", "-test.v", "-test.timeout=4m")
	again.Env = append(os.Environ(), noCacheEnv+"=1")
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func unreachableStore(t *testing.T) *temporal.TaskStore {
	t.Helper()
	lazy, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1"})
	must(t, err)
	t.Cleanup(lazy.Close)
	store, err := temporal.NewTaskStore(lazy, temporal.TaskStoreOptions{TaskQueue: "none", Timeout: 200 * time.Millisecond})
	must(t, err)
	return store
}

func clientOptions() client.Options { return client.Options{} }
