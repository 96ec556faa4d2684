package main

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/primitives"
)

// defaultNamespace always exists; it is the one that clients use when they are
// told of none.
const defaultNamespace = "default"

// options is the checked command line: everything a server needs to start.
type options struct {
	ip               netip.Addr
	port             int // 0: a free one
	uiPort           int // 0: near port, or a free one
	headless         bool
	dbFile           string   // empty: in memory
	namespaces       []string // never empty; the first is the one reported
	searchAttributes searchAttributes
	dynamicConfig    dynamicconfig.StaticClient
	log              logger
}

// parseNamespaces reads the --namespace flags: names in the order given, each
// once, with the default namespace last if it is not among them.
func parseNamespaces(flags []string) ([]string, error) {
	var names []string
	for _, name := range append(slices.Clone(flags), defaultNamespace) {
		switch {
		case name == "" || strings.ContainsFunc(name, isSpaceOrControl):
			return nil, fmt.Errorf("--namespace %q is no name: give one without spaces", name)
		case name == primitives.SystemLocalNamespace:
			return nil, fmt.Errorf("--namespace %q belongs to the server itself: give another name", name)
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	return names, nil
}

// isSpaceOrControl reports whether a rune has no place in a name.
func isSpaceOrControl(r rune) bool { return r <= ' ' || r == 0x7f }
