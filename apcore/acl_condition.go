package apcore

import "slices"

// outcome is the answer of a condition (§6.1.1). The zero value holds nothing.
type outcome int

const (
	unsatisfied outcome = iota
	satisfied
	unevaluable
)

func outcomeOf(holds bool) outcome {
	if holds {
		return satisfied
	}
	return unsatisfied
}

// condition is a part of a rule's conditions, well-formed and with its handler
// at hand. A check asks it only if there is a context.
type condition interface {
	evaluate(q *question) outcome
}

// allOf holds if every part does. One that cannot be evaluated settles the
// matter, even beside one that does not hold: otherwise $not would make an error
// hold.
type allOf []condition

func (c allOf) evaluate(q *question) outcome {
	result := satisfied
	for _, part := range c {
		switch part.evaluate(q) {
		case unevaluable:
			return unevaluable
		case unsatisfied:
			result = unsatisfied
		}
	}
	return result
}

// anyOf holds if one part does, whatever the others are.
type anyOf []condition

func (c anyOf) evaluate(q *question) outcome {
	result := unsatisfied
	for _, part := range c {
		switch part.evaluate(q) {
		case satisfied:
			return satisfied
		case unevaluable:
			result = unevaluable
		}
	}
	return result
}

// negated holds if its part does not; what cannot be evaluated stays so.
type negated struct{ part condition }

func (c negated) evaluate(q *question) outcome {
	switch c.part.evaluate(q) {
	case satisfied:
		return unsatisfied
	case unsatisfied:
		return satisfied
	default:
		return unevaluable
	}
}

// identityTypes is the condition identity_types.
type identityTypes []string

func (c identityTypes) evaluate(q *question) outcome {
	identity := q.identity()
	return outcomeOf(identity != nil && slices.Contains(c, identity.Type()))
}

// anyRole is the condition roles.
type anyRole []string

func (c anyRole) evaluate(q *question) outcome {
	identity := q.identity()
	return outcomeOf(identity != nil && slices.ContainsFunc(c, identity.HasRole))
}

// maxCallDepth bounds the callee's chain.
type maxCallDepth int64

func (c maxCallDepth) evaluate(q *question) outcome {
	return outcomeOf(int64(q.request.Context.Depth()) <= int64(c))
}

// argumentNames is the condition arguments; it needs the names of the inputs.
type argumentNames struct {
	path       string
	predicates []func(names []string) bool
}

func (c argumentNames) evaluate(q *question) outcome {
	if q.request.ArgumentKeys == nil {
		return q.fail(c.path, "the names of the inputs are unknown")
	}
	for _, holds := range c.predicates {
		if !holds(q.request.ArgumentKeys) {
			return unsatisfied
		}
	}
	return satisfied
}

// custom is a condition that the host registered.
type custom struct {
	path    string
	value   any
	handler ACLCondition
}

func (c custom) evaluate(q *question) outcome {
	holds, err := c.ask(q)
	if err != nil {
		return q.fail(c.path, "the handler failed: %v", err)
	}
	return outcomeOf(holds)
}

// ask gives the handler copies, for handlers of other checks run beside it.
func (c custom) ask(q *question) (holds bool, err error) {
	defer recoverTo(&err, "it")
	value, err := copyCondition(c.value, 0)
	if err != nil {
		return false, err
	}
	request := q.request
	request.ArgumentKeys = slices.Clone(request.ArgumentKeys)
	return c.handler(q.ctx, value, request)
}

// checkCondition tells whether a handler may be registered under a key.
func checkCondition(known map[string]ACLCondition, key string, handler ACLCondition) error {
	_, taken := known[key]
	switch {
	case key == "" || key[0] == '$':
		return NewError(CodeInvalidInput, "condition key %q is not allowed: it must not be empty or begin with $", key)
	case standardConditions[key] != nil:
		return NewError(CodeInvalidInput, "condition key %q is the standard's: choose another one", key)
	case taken:
		return NewError(CodeInvalidInput, "condition key %q is registered already", key)
	case handler == nil:
		return NewError(CodeInvalidInput, "condition key %q has no handler", key)
	default:
		return nil
	}
}
