package testsuite

import (
	"log/slog"
	"testing"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	sdktestsuite "go.temporal.io/sdk/testsuite"
	sdkworker "go.temporal.io/sdk/worker"

	"github.com/apcore-temporal/apcore-temporal/activities"
	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/temporal"
)

// NewEnvironment returns Temporal's workflow test environment with the modules
// of an executor as activities and workflows prepared for package temporal. The
// environment runs no plugins, so this does by hand what package worker does.
//
// Three things differ from a server: time skips, MaximumAttempts 0 means 10, and
// an argument that cannot be encoded fails the workflow instead of hanging it.
func NewEnvironment(tb testing.TB, executor *apcore.Executor) *sdktestsuite.TestWorkflowEnvironment {
	tb.Helper()
	hosted, err := activities.New(executor, activities.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	executor.Registry().Seal("the test environment was made")
	catalog, err := temporal.NewCatalog(executor)
	if err != nil {
		tb.Fatal(err)
	}
	prepare, err := temporal.NewInterceptor(temporal.Options{Catalog: catalog})
	if err != nil {
		tb.Fatal(err)
	}
	var suite sdktestsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	environment := suite.NewTestWorkflowEnvironment()
	environment.SetWorkerOptions(sdkworker.Options{
		Interceptors: []interceptor.WorkerInterceptor{prepare},
		// A workflow that really blocks is found all the same, a slow machine is not
		// taken for one.
		DeadlockDetectionTimeout: 20 * time.Second,
	})
	if err := hosted.Register(environment); err != nil {
		tb.Fatal(err)
	}
	return environment
}
