package worker

import (
	"strings"

	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Deployment makes a worker one version of a worker deployment, so that the
// server sends it the runs that belong to it. The zero value leaves versioning
// off: every worker of the queue gets every run, and only replay-safe changes of
// workflow code may be deployed.
//
// Runs are pinned by default: a run stays on the version it began on until it
// ends, so a deploy cannot break a run that waits for an approval. The old
// version must be kept running until the server reports it drained. With
// AutoUpgrade a run moves to the current version at its next step, and changes
// of its code need workflow.GetVersion. A workflow may choose for itself when it
// is registered (workflow.RegisterOptions.VersioningBehavior).
//
// A new version gets no runs before it is made the current one:
//
//	temporal worker deployment set-current-version --deployment-name NAME --build-id ID
type Deployment struct {
	// Name is the name of the deployment, the same for all its versions, for
	// example the name of the service. It holds no "." and no ":".
	Name string
	// BuildID names this version, for example a commit.
	BuildID string
	// AutoUpgrade moves running workflows to the current version.
	AutoUpgrade bool
}

const maxDeploymentName = 255

func (d Deployment) validate() error {
	for _, part := range []struct{ field, value string }{{"Name", d.Name}, {"BuildID", d.BuildID}} {
		switch {
		case part.value == "":
			return apcore.NewError(apcore.CodeInvalidInput, "Deployment.%s is empty: a version needs a name and a build id, or neither", part.field)
		case len(part.value) > maxDeploymentName:
			return apcore.NewError(apcore.CodeInvalidInput, "Deployment.%s has %d bytes, %d are allowed", part.field, len(part.value), maxDeploymentName)
		case part.field == "Name" && strings.ContainsAny(part.value, ".:"), strings.HasPrefix(part.value, "__"):
			return apcore.NewError(apcore.CodeInvalidInput, "Deployment.%s is %q: it may not begin with \"__\", and a name holds no \".\" and no \":\"", part.field, part.value)
		}
	}
	return nil
}

// apply puts the deployment into the SDK's options. Versioning that was set
// there keeps its version and is pinned too, unless it says otherwise.
func (d Deployment) apply(sdk *sdkworker.Options) error {
	given := &sdk.DeploymentOptions
	if d == (Deployment{}) {
		if given.UseVersioning && given.DefaultVersioningBehavior == workflow.VersioningBehaviorUnspecified {
			given.DefaultVersioningBehavior = workflow.VersioningBehaviorPinned
		}
		return nil
	}
	if *given != (sdkworker.DeploymentOptions{}) {
		return apcore.NewError(apcore.CodeInvalidInput, "Options.Deployment and Options.SDK.DeploymentOptions are both set: leave one of them out")
	}
	if err := d.validate(); err != nil {
		return err
	}
	*given = sdkworker.DeploymentOptions{
		UseVersioning:             true,
		Version:                   sdkworker.WorkerDeploymentVersion{DeploymentName: d.Name, BuildID: d.BuildID},
		DefaultVersioningBehavior: workflow.VersioningBehaviorPinned,
	}
	if d.AutoUpgrade {
		given.DefaultVersioningBehavior = workflow.VersioningBehaviorAutoUpgrade
	}
	return nil
}
