package apcore

import (
	"sync"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// capture is the redacted form of a call's inputs or output. It is made when
// somebody reads it, which most calls never see: redaction costs more than the
// rest of a call. Therefore nothing may change the source; see
// [run.ownInputs] and [run.ownOutput].
type capture struct {
	once     sync.Once
	redactor *Redactor
	schema   map[string]any
	source   map[string]any
	value    map[string]any
}

// captured is a form that came as it is, nil for nil.
func captured(value map[string]any) *capture {
	if value == nil {
		return nil
	}
	return &capture{value: value}
}

// get returns the one redacted form, not a copy; nil for a nil capture.
func (c *capture) get() map[string]any {
	if c == nil {
		return nil
	}
	c.once.Do(func() {
		if c.redactor == nil {
			return
		}
		c.value = c.redactor.Redact(c.source, c.schema)
		delete(c.value, ApprovalTokenKey)
		c.redactor, c.source, c.schema = nil, nil, nil
	})
	return c.value
}

// captureInputs fills redacted_inputs (steps 3 and 7). Inputs that a step of the
// application may still hold are redacted at once.
func (r *run) captureInputs() {
	c := &r.own.inputs
	if r.callee.redactedInputs == c { // somebody may be reading it
		c = &capture{}
	}
	c.redactor, c.source, c.schema = r.executor.redactor, r.inputs, r.entry.descriptor.InputSchema
	r.callee.redactedInputs = c
	if r.lent {
		r.callee.redactedInputs.get()
		return
	}
	r.inputsCaptured = true
}

// captureOutput fills redacted_output (step 9).
func (r *run) captureOutput() {
	c := &r.own.output
	c.redactor, c.source, c.schema = r.executor.redactor, r.output, r.entry.descriptor.OutputSchema
	r.callee.redactedOutput = c
	r.outputCaptured = true
}

// ownInputs returns the inputs for somebody who may write to them.
func (r *run) ownInputs() map[string]any {
	if r.inputsCaptured {
		r.inputs, r.inputsCaptured = jsonvalue.Copy(r.inputs), false
	}
	return r.inputs
}

// ownOutput returns the output for somebody who may write to it.
func (r *run) ownOutput() map[string]any {
	if r.outputCaptured {
		r.output, r.outputCaptured = jsonvalue.Copy(r.output), false
	}
	return r.output
}
