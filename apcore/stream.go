package apcore

import (
	"context"
	"iter"
	"runtime/debug"
	"time"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
)

// StreamingModule gives its result in chunks (apcore §12.2). A module whose
// annotations say streaming has to be one. Each chunk is an object; they are
// merged into the output that the schema describes.
type StreamingModule interface {
	Module
	// Stream yields chunks until it is done, yields an error, or its consumer
	// stops. ctx ends with the call.
	Stream(ctx context.Context, inputs map[string]any, c *Context) iter.Seq2[map[string]any, error]
}

// EventStreamPostValidation says that the merged chunks of a stream do not
// satisfy the output schema.
const EventStreamPostValidation = "apcore.stream.post_validation_failed"

const maxMergeDepth = 32

// Stream runs a module and yields its chunks; the last pair may be an error. A
// module that cannot stream gives its output as the one chunk. Everything up to
// the module happens as in [Executor.Call], before the first chunk; what follows
// it sees the merged chunks, and its failure is reported, not returned. A
// [RetrySignal] is honoured before the first chunk and ignored after it. The timer
// of the module does not apply, the deadline of the call tree does, between
// chunks.
func (e *Executor) Stream(ctx context.Context, moduleID string, inputs map[string]any, c *Context) iter.Seq2[map[string]any, error] {
	return func(yield func(map[string]any, error) bool) {
		entry := e.registry.lookup(moduleID)
		if entry == nil || !entry.streams() {
			output, err := e.Call(ctx, moduleID, inputs, c)
			yield(output, err)
			return
		}
		if c == nil {
			c = NewContext(ContextOptions{Logger: e.logger})
		}
		copied, err := jsonvalue.CloneObject(inputs)
		if err != nil {
			yield(nil, NewError(CodeInvalidInput, "inputs of module %q are no JSON object: %w", moduleID, err).WithDetail("module_id", moduleID))
			return
		}
		var deadline time.Time
		for {
			s := &stream{run: newRun(e, c, Request{ModuleID: moduleID}, copied, &Outcome{}), yield: yield}
			s.run.deadline = deadline
			retry := s.play(ctx)
			if retry == nil {
				return
			}
			deadline = s.run.deadline
			if copied, err = jsonvalue.CloneObject(retry.Inputs); err != nil {
				yield(nil, retryFault(moduleID, err))
				return
			}
		}
	}
}

func (e *registration) streams() bool {
	_, ok := e.module.(StreamingModule)
	return ok
}

// stream is one streamed call.
type stream struct {
	run     *run
	yield   func(map[string]any, error) bool
	merged  map[string]any
	chunks  int
	stopped bool // the consumer has had enough
	outside bool // the consumer is at work
}

// play goes through the three phases; it returns what asks for another run.
func (s *stream) play(ctx context.Context) *RetrySignal {
	defer s.run.finish(ctx)
	at, known := s.run.strategy.index[stepExecute]
	if !known {
		at = len(s.run.strategy.steps)
	}
	if err := s.run.walk(ctx, 0, at); err != nil {
		return s.fail(ctx, err)
	}
	if err := s.deliver(ctx); err != nil {
		return s.fail(ctx, err)
	}
	if s.stopped {
		return nil
	}
	s.run.output = s.merged
	if s.run.output == nil {
		s.run.output = map[string]any{}
	}
	if err := s.run.walk(ctx, at+1, len(s.run.strategy.steps)); err != nil {
		s.report(ctx, err)
	}
	return nil
}

// deliver is phase two.
func (s *stream) deliver(ctx context.Context) (err error) {
	defer s.recover(&err)
	if err := s.run.betweenChunks(ctx); err != nil {
		return err
	}
	module, ok := s.run.entry.module.(StreamingModule)
	if !ok {
		return NewError(CodeNotImplemented, "module %q cannot stream any more", s.run.moduleID)
	}
	inputs, err := jsonvalue.CloneObject(s.run.inputs)
	if err != nil {
		return NewError(CodeInternal, "a middleware left inputs of module %q that are no JSON: %w", s.run.moduleID, err)
	}
	if !s.run.entry.usage.acquire() {
		return NewError(CodeModuleNotFound, "module %q is being taken out", s.run.moduleID).WithDetail("module_id", s.run.moduleID)
	}
	defer s.run.entry.usage.release()
	s.run.outcome.Started = true
	inner := intoContext(s.run.callee.token.context(), s.run.callee)
	for chunk, failure := range module.Stream(inner, inputs, s.run.callee) {
		if failure != nil {
			return failure
		}
		if err := s.take(ctx, chunk); err != nil || s.stopped {
			return err
		}
	}
	return nil
}

// take checks one chunk, hands it out and merges it.
func (s *stream) take(ctx context.Context, chunk map[string]any) error {
	if err := s.run.betweenChunks(ctx); err != nil {
		return err
	}
	if chunk == nil {
		return NewError(CodeInvalidInput, "chunk %d of module %q is no object", s.chunks, s.run.moduleID).
			WithDetail("code", "STREAM_CHUNK_NOT_OBJECT").WithDetail("chunk_index", s.chunks).WithDetail("actual_type", "null")
	}
	copied, err := jsonvalue.CloneObject(chunk)
	if err != nil {
		return NewError(CodeModuleExecuteError, "chunk %d of module %q is no JSON: %w", s.chunks, s.run.moduleID, err).WithRetryable(new(false))
	}
	s.chunks++
	s.merged = MergeChunks(s.merged, copied)
	s.outside = true
	s.stopped = !s.yield(chunk, nil)
	s.outside = false
	return nil
}

// recover turns a panic of the module into an error; one of the consumer, which
// the module's loop passes on, is the consumer's.
func (s *stream) recover(err *error) {
	if s.outside {
		return
	}
	if cause := recover(); cause != nil {
		*err = NewError(CodeModuleExecuteError, "module %q panicked in its stream with a %s", s.run.moduleID, typeName(cause))
		s.run.executor.logger.Error("apcore: module panicked", "module_id", s.run.moduleID, "panic_type", typeName(cause), "stack", string(debug.Stack()))
	}
}

// betweenChunks looks at cancellation and the deadline of the call tree.
func (r *run) betweenChunks(ctx context.Context) error {
	if err := r.interrupted(ctx); err != nil {
		return err
	}
	if r.overdue() {
		r.callee.token.cancelWith(context.DeadlineExceeded)
		return r.timeoutError(0)
	}
	return nil
}

// fail ends the stream: with a recovery as its last chunk, or with the error. A
// retry is honoured as long as no chunk is out; the consumer cannot give one
// back.
func (s *stream) fail(ctx context.Context, err error) *RetrySignal {
	output, retry, err := s.run.fail(s.run.within(ctx), err)
	switch {
	case retry != nil && s.chunks == 0:
		return retry
	case retry != nil:
		s.yield(nil, s.run.propagate(s.run.failure))
	case err != nil:
		s.yield(nil, err)
	default:
		s.yield(output, nil)
	}
	return nil
}

// report says that what came out does not satisfy what follows the module.
func (s *stream) report(ctx context.Context, err error) {
	e := AsError(s.run.propagate(err))
	s.run.tellEnd(ctx, e)
	s.run.executor.logger.Error("apcore: a stream does not satisfy what follows it", "module_id", s.run.moduleID, "error", e.Error())
	s.run.executor.emit(EventStreamPostValidation, s.run.moduleID, "error", map[string]any{
		"error_type": string(e.Code), "message": e.Message, "trace_id": s.run.callee.traceID,
	})
}

// MergeChunks merges a chunk into what came before (apcore A24): objects are
// merged by key, everything else is replaced, null included. Neither argument is
// changed. Below 32 levels the chunk replaces what came before.
func MergeChunks(before, chunk map[string]any) map[string]any {
	return mergeObjects(before, chunk, 0)
}

func mergeObjects(before, chunk map[string]any, depth int) map[string]any {
	if depth >= maxMergeDepth {
		return chunk
	}
	merged := make(map[string]any, len(before)+len(chunk))
	for key, value := range before {
		merged[key] = value
	}
	for key, value := range chunk {
		left, isObject := merged[key].(map[string]any)
		right, both := value.(map[string]any)
		if isObject && both {
			merged[key] = mergeObjects(left, right, depth+1)
			continue
		}
		merged[key] = value
	}
	return merged
}

// streamingMismatch checks that a module which says it streams can.
func streamingMismatch(id string, module Module, annotations Annotations) error {
	if _, can := module.(StreamingModule); can || !annotations.Streaming {
		return nil
	}
	return NewError(CodeStreamingInterfaceMismatch, "module %q is annotated as streaming but has no method Stream of a StreamingModule", id).
		WithDetail("module_id", id).WithDetail("expected_signature", "Stream(context.Context, map[string]any, *Context) iter.Seq2[map[string]any, error]").
		WithDetail("actual_signature", typeName(module)).WithDetail("mismatch_reason", "missing_marker")
}
