package schema

import (
	"fmt"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// graph visits everything that a schema leads to, so that validating always
// comes to an end: from one place in a value, references must not lead back.
type graph struct {
	state     map[*jsonschema.Schema]visit
	refs      map[*jsonschema.Schema]int // the longest row of references from here
	dynamic   *jsonschema.Schema         // one with $dynamicRef
	resources int                        // schemas with an $id of their own
}

type visit int

const (
	unvisited visit = iota
	open
	done
)

func checkGraph(root *jsonschema.Schema) error {
	g := &graph{state: map[*jsonschema.Schema]visit{}, refs: map[*jsonschema.Schema]int{}}
	if err := g.visit(root); err != nil {
		return err
	}
	if g.dynamic != nil && g.resources > 0 {
		return &CompileError{Kind: KindParse, Ref: place(g.dynamic), Reason: "$dynamicRef across several $id cannot be enforced"}
	}
	return nil
}

// visit takes the schemas below in a row of their own: only those beside can
// close a circle.
func (g *graph) visit(root *jsonschema.Schema) error {
	queue := []*jsonschema.Schema{root}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		if g.state[next] == done {
			continue
		}
		below, err := g.beside(next)
		if err != nil {
			return err
		}
		queue = append(queue, below...)
	}
	return nil
}

func (g *graph) beside(s *jsonschema.Schema) (below []*jsonschema.Schema, err error) {
	switch g.state[s] {
	case open:
		return nil, &CompileError{Kind: KindCircularRef, Ref: place(s), Reason: "references lead back to where they began"}
	case done:
		return nil, nil
	}
	if err := g.inspect(s); err != nil {
		return nil, err
	}
	g.state[s] = open
	below = schemasBelow(s)
	for _, edge := range schemasBeside(s) {
		more, err := g.beside(edge.to)
		if err != nil {
			return nil, err
		}
		below = append(below, more...)
		g.refs[s] = max(g.refs[s], g.refs[edge.to]+edge.refs)
	}
	g.state[s] = done
	if g.refs[s] > MaxRefDepth {
		return nil, &CompileError{Kind: KindMaxDepth, Ref: place(s), Reason: fmt.Sprintf("more than %d references follow one another", MaxRefDepth)}
	}
	return below, nil
}

// inspect refuses what this package does not enforce.
func (g *graph) inspect(s *jsonschema.Schema) error {
	if s.DraftVersion != jsonschemaVersion || s.RecursiveRef != nil {
		return &CompileError{Kind: KindParse, Ref: place(s), Reason: "the dialect is JSON Schema 2020-12"}
	}
	if s.DynamicRef != nil {
		g.dynamic = s
	}
	if s.ID != "" && s.Location != location+"#" {
		g.resources++
	}
	return nil
}

const jsonschemaVersion = 2020

func place(s *jsonschema.Schema) string { return local(s.Location) }

// edge leads to a schema for the same place in the value.
type edge struct {
	to   *jsonschema.Schema
	refs int // 1 for a reference
}

func schemasBeside(s *jsonschema.Schema) (edges []edge) {
	add := func(refs int, targets ...*jsonschema.Schema) {
		for _, target := range targets {
			if target != nil {
				edges = append(edges, edge{target, refs})
			}
		}
	}
	add(1, s.Ref)
	if s.DynamicRef != nil {
		add(1, s.DynamicRef.Ref)
	}
	add(0, s.Not, s.If, s.Then, s.Else)
	add(0, s.AllOf...)
	add(0, s.AnyOf...)
	add(0, s.OneOf...)
	for _, target := range s.DependentSchemas {
		add(0, target)
	}
	for _, dependency := range s.Dependencies {
		if target, ok := dependency.(*jsonschema.Schema); ok {
			add(0, target)
		}
	}
	return edges
}

func schemasBelow(s *jsonschema.Schema) (below []*jsonschema.Schema) {
	add := func(targets ...*jsonschema.Schema) {
		for _, target := range targets {
			if target != nil {
				below = append(below, target)
			}
		}
	}
	for _, target := range s.Properties {
		add(target)
	}
	for _, target := range s.PatternProperties {
		add(target)
	}
	if target, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
		add(target)
	}
	add(s.PropertyNames, s.UnevaluatedProperties, s.Items2020, s.UnevaluatedItems, s.Contains)
	add(s.PrefixItems...)
	return below
}
