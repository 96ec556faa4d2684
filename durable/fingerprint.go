package durable

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/apcore-temporal/apcore-temporal/apcore"
)

// Fingerprint says in some 25 bytes how a module looked to whoever made a call:
// its version, and the beginnings of the hashes of its schemas and annotations.
// It speaks of one module, so changing a module never concerns the calls of
// another. The zero value says nothing and fits everything.
type Fingerprint string

// FingerprintOf makes the fingerprint of a registered module. Its form is
// "<version> <8 digits of the schema hash> <8 digits of the annotations' hash>".
func FingerprintOf(definition *apcore.Descriptor) Fingerprint {
	annotations, err := apcore.ContentHash(definition.Annotations)
	if err != nil { // extra holds what is no JSON: the module still has the rest
		annotations = hashText("")
	}
	return Fingerprint(strings.Join([]string{definition.Version, head(definition.SchemaHash), head(annotations)}, " "))
}

const fingerprintDigits = 8

func head(hash string) string { return hash[:min(len(hash), fingerprintDigits)] }

func hashText(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Differences names what differs from another fingerprint of the same module:
// "version", "schema", "annotations"; none when either says nothing.
func (f Fingerprint) Differences(other Fingerprint) []string {
	if f == "" || other == "" || f == other {
		return nil
	}
	mine, theirs := strings.Split(string(f), " "), strings.Split(string(other), " ")
	parts := []string{"version", "schema", "annotations"}
	if len(mine) != len(parts) || len(theirs) != len(parts) {
		return []string{"form"}
	}
	var differ []string
	for i, part := range parts {
		if mine[i] != theirs[i] {
			differ = append(differ, part)
		}
	}
	return differ
}

// FingerprintPolicy is what a worker does about a call that was made for another
// build of its module.
type FingerprintPolicy string

// The zero value warns.
const (
	// FingerprintWarn logs a warning, once for each pair of builds, and goes on.
	FingerprintWarn FingerprintPolicy = ""
	// FingerprintRefuse ends the call with MODULE_BUILD_MISMATCH before the module
	// runs. During a rolling deploy that ends calls too, so it belongs to workers
	// with deployment versions.
	FingerprintRefuse FingerprintPolicy = "refuse"
	// FingerprintIgnore does nothing.
	FingerprintIgnore FingerprintPolicy = "ignore"
)

func (p FingerprintPolicy) valid() bool {
	return p == FingerprintWarn || p == FingerprintRefuse || p == FingerprintIgnore
}

// checkBuild compares the module that the caller knew with the one that would
// run. A call that names a version, or that was approved for one, is bound to
// that already.
func (i *Invoker) checkBuild(request CallRequest) error {
	bound := request.VersionHint != "" || request.Grant != nil
	definition := i.definition(request)
	if bound || request.Fingerprint == "" || definition == nil || i.opts.Fingerprints == FingerprintIgnore {
		return nil
	}
	here := FingerprintOf(definition)
	differ := request.Fingerprint.Differences(here)
	if len(differ) == 0 {
		return nil
	}
	if i.opts.Fingerprints == FingerprintRefuse {
		return newError(CodeBuildMismatch, "the call of module %q was made for another build of it: %s differ: run it on a worker with the build %q",
			request.ModuleID, strings.Join(differ, ", "), request.Fingerprint).
			WithDetail("module_id", request.ModuleID).WithDetail("differ", differ).
			WithDetail("wanted", string(request.Fingerprint)).WithDetail("here", string(here))
	}
	if last, seen := i.warned.Swap(definition.ID, request.Fingerprint); !seen || last != request.Fingerprint {
		i.opts.Logger.Warn("apcore: a call was made for another build of its module", "module_id", request.ModuleID,
			"differ", differ, "wanted", string(request.Fingerprint), "here", string(here))
	}
	return nil
}
