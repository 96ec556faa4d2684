package temporal_test

import sdktestsuite "go.temporal.io/sdk/testsuite"

type sdkSuite struct{ sdktestsuite.WorkflowTestSuite }
