package temporal

import (
	"go.temporal.io/sdk/converter"

	"github.com/apcore-temporal/apcore-temporal/apcore"
	"github.com/apcore-temporal/apcore-temporal/durable"
)

// Limits bounds what a run hands to the server, in bytes as they are sent; the
// zero value is the default. What is over one ends in PAYLOAD_TOO_LARGE with
// details.path, size and limit, before it is sent: the server would refuse the
// whole workflow task, again on every attempt.
//
// A run that has been started keeps to the limits of the worker it runs on:
// raise them as you like, and lower them only as a change of workflow code.
type Limits struct {
	// MaxInputBytes bounds the inputs of one call; zero means 1 MiB.
	MaxInputBytes int
	// MaxContextBytes bounds the run's apcore context, which goes with every call,
	// child and successor; zero means 256 KiB.
	MaxContextBytes int
	// MaxResultBytes bounds each of: a workflow's result, an update's result, a
	// query's answer, and the arguments of a child or a successor; zero means
	// 1.5 MiB. Calls and decisions that a successor inherits have 1 MiB.
	MaxResultBytes int
	// MaxTaskBytes bounds what one workflow task sends: a call, child, result or
	// successor that would go beyond it waits for the next task, which costs a
	// timer of a millisecond. Zero means 3 MiB, so that 1 MiB of the 4 MiB that a
	// server takes is left to what the workflow does besides.
	MaxTaskBytes int
	// OffloadBytes is the PayloadSizeThreshold of the external storage that client
	// and worker have (client.Options.ExternalStorage); zero means there is none.
	// With it one value may have 64 MiB where nothing else is said, and counts
	// with no more than the threshold in its task.
	OffloadBytes int
}

// Defaults of [Limits].
const (
	DefaultMaxInputBytes     = 1 << 20
	DefaultMaxContextBytes   = 256 << 10
	DefaultMaxResultBytes    = 3 << 19
	DefaultMaxTaskBytes      = 3 << 20
	DefaultMaxOffloadedBytes = 64 << 20
)

const (
	// commandBytes is what a command weighs beside its payloads: names, options
	// and the list of errors that are not retried.
	commandBytes = 2 << 10
	// requestBytes is what a call request holds beside inputs, context and the
	// approver's words.
	requestBytes = 2 << 10
	// resumeBytes is what a call may weigh more once it has been approved.
	resumeBytes = 128 << 10
)

func (l Limits) withDefaults() (Limits, error) {
	large := func(fallback int) int {
		if l.OffloadBytes > 0 {
			return DefaultMaxOffloadedBytes
		}
		return fallback
	}
	filled := l
	for _, limit := range []struct {
		name     string
		value    *int
		fallback int
	}{
		{"MaxInputBytes", &filled.MaxInputBytes, large(DefaultMaxInputBytes)},
		{"MaxContextBytes", &filled.MaxContextBytes, DefaultMaxContextBytes},
		{"MaxResultBytes", &filled.MaxResultBytes, large(DefaultMaxResultBytes)},
		{"MaxTaskBytes", &filled.MaxTaskBytes, DefaultMaxTaskBytes},
		{"OffloadBytes", &filled.OffloadBytes, 0},
	} {
		if *limit.value < 0 {
			return l, apcore.NewError(apcore.CodeInvalidInput, "Limits.%s is %d: give a positive number, or zero for %d", limit.name, *limit.value, limit.fallback)
		}
		if *limit.value == 0 {
			*limit.value = limit.fallback
		}
	}
	return filled, nil
}

// weight is what a value counts in its workflow task. A value in the external
// storage leaves a short reference, but a codec may bring it below the threshold
// and back into the task.
func (l Limits) weight(size int) int {
	if l.OffloadBytes > 0 {
		size = min(size, l.OffloadBytes)
	}
	return size + commandBytes
}

// requestSize is the size of a call's argument as it is sent.
func requestSize(request durable.CallRequest) int {
	size := requestBytes + durable.EncodedSize(request.Inputs) + durable.EncodedSize(request.Context) +
		len(request.CallID) + len(request.IdempotencyKey) + len(request.VersionHint)
	if request.Decision != nil {
		size += durable.EncodedSize(mustJSON(request.Decision))
	}
	return size
}

func (l Limits) checkRequest(request durable.CallRequest) (int, error) {
	size := requestSize(request)
	return size, durable.CheckSize(request.ModuleID, "request", size, l.MaxInputBytes+l.MaxContextBytes+resumeBytes)
}

// maxLocalResultBytes bounds what a local unit returns: its result is not sent by
// the activity but with the workflow task, where it has to have its place before
// the unit begins.
const maxLocalResultBytes = 64 << 10

// CheckLocalResult fails with PAYLOAD_TOO_LARGE when the result of a unit that ran
// inside its workflow's worker is over 64 KiB. It is for the activity's side.
func CheckLocalResult(moduleID string, result *durable.CallResult) error {
	size := durable.EncodedSize(mustJSON(result))
	if err := durable.CheckSize(moduleID, "local result", size, maxLocalResultBytes); err != nil {
		e := apcore.AsError(err).WithSuggestion("run the module as an activity, see the setting \"execution\"")
		return &durable.Failure{Err: e}
	}
	return nil
}

// measure returns the size of values as the default converter writes them. What
// it cannot write is left to the SDK, whose converter may be another one.
func measure(values ...any) (size int) {
	defer func() {
		if recover() != nil {
			size = 0
		}
	}()
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(values...)
	if err != nil {
		return 0
	}
	return payloads.Size()
}

// checkValue measures one value of a run that goes under a limit of its own.
func (l Limits) checkValue(path string, values ...any) (int, error) {
	size := measure(values...)
	return size, durable.CheckSize("", path, size, l.MaxResultBytes)
}

// encodable turns the panic of a converter that cannot write a value into an
// error; other panics go on.
func encodable(path string, recovered any) error {
	if recovered == nil {
		return nil
	}
	if err, ok := recovered.(error); ok {
		return apcore.NewError(apcore.CodeInvalidInput, "%s cannot be sent: %w", path, err)
	}
	panic(recovered)
}
