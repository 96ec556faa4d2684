package apcore

import (
	"context"
	"reflect"

	"github.com/apcore-temporal/apcore-temporal/apcore/internal/jsonvalue"
	"github.com/apcore-temporal/apcore-temporal/apcore/internal/schema"
	"github.com/apcore-temporal/apcore-temporal/apcore/internal/typed"
)

// shape is how the values of a typed function become JSON and come from it,
// worked out once.
type shape struct {
	decoder *typed.Decoder // nil if the type is too much for it
	encoder *typed.Encoder // the same
	wrap    bool           // the output is no object
	schema  map[string]any // the inferred one of the output, nil for a given one
}

func newShape(in, out reflect.Type, wrap bool) *shape {
	return &shape{decoder: typed.NewDecoder(in), encoder: typed.NewEncoder(out), wrap: wrap}
}

// decode reads inputs that are known to be JSON; zero is the zero value of the
// target's type, for a second try.
func (s *shape) decode(inputs map[string]any, target any, into, zero reflect.Value) error {
	if s.decoder.Decode(inputs, into) {
		return nil
	}
	into.Set(zero)
	return decodeInto(inputs, target)
}

// encode makes the output of what a function returned.
func (s *shape) encode(out reflect.Value, state *typed.State) (map[string]any, error) {
	object, err := s.object(out, state)
	if err == nil && s.schema != nil && state.Null {
		schema.FillNil(s.schema, object) // a nil slice means an empty list
	}
	return object, err
}

func (s *shape) object(out reflect.Value, state *typed.State) (map[string]any, error) {
	value, ok := s.encoder.Encode(out, state)
	if !ok {
		state.Null = true
		return encodeOutput(out.Interface(), s.wrap)
	}
	if s.wrap {
		return map[string]any{"result": value}, nil
	}
	switch value := value.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return value, nil
	default: // a struct or map that writes itself as something else
		return map[string]any{"result": value}, nil
	}
}

// encodeOutput goes the long way, over JSON.
func encodeOutput(out any, wrap bool) (map[string]any, error) {
	if wrap {
		out = map[string]any{"result": out}
	}
	data, err := jsonvalue.Encode(out)
	if err != nil {
		return nil, NewError(CodeModuleExecuteError, "the output cannot be written as JSON: %w", err).WithRetryable(new(false))
	}
	decoded, err := jsonvalue.Decode(data)
	if err != nil {
		return nil, NewError(CodeModuleExecuteError, "the output cannot be read back from JSON: %w", err).WithRetryable(new(false))
	}
	switch decoded := decoded.(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return decoded, nil
	default: // a struct or map that writes itself as something else
		return map[string]any{"result": decoded}, nil
	}
}

// typedCall is one execution of a typed function.
type typedCall[In, Out any] struct {
	fn     func(context.Context, In) (Out, error)
	shape  *shape
	inputs map[string]any // still to be decoded; nil once in holds them
	in     In
	out    Out
	object map[string]any // of out; nil while it is still to be made
	state  typed.State
}

// beginTyped decodes at once what runs no code of the application; the rest is
// left to the module's goroutine, which gets a copy.
func beginTyped[In, Out any](fn func(context.Context, In) (Out, error), s *shape, inputs map[string]any) invocation {
	call := &typedCall[In, Out]{fn: fn, shape: s}
	if s.decoder.Pure() && s.decoder.Decode(inputs, reflect.ValueOf(&call.in).Elem()) {
		return call
	}
	return &typedCall[In, Out]{fn: fn, shape: s, inputs: jsonvalue.Copy(inputs)}
}

func (c *typedCall[In, Out]) run(ctx context.Context, _ *Context) error {
	if c.inputs != nil {
		if err := c.shape.decode(c.inputs, &c.in, reflect.ValueOf(&c.in).Elem(), reflect.Zero(reflect.TypeFor[In]())); err != nil {
			return err
		}
	}
	var err error
	if c.out, err = c.fn(ctx, c.in); err != nil {
		return err
	}
	if !c.shape.encoder.Pure() {
		c.object, err = c.shape.encode(reflect.ValueOf(&c.out).Elem(), &c.state)
	}
	return err
}

func (c *typedCall[In, Out]) result() (map[string]any, error) {
	if c.object != nil {
		return c.object, nil
	}
	return c.shape.encode(reflect.ValueOf(&c.out).Elem(), &c.state)
}

func (c *typedCall[In, Out]) fresh() bool { return true }
