package compat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// layer says what the packages under one folder may link, directly or through
// others. Folders are those of the repository.
type layer struct {
	folder string
	ours   []string
	// temporal allows modules of Temporal.
	temporal bool
}

// layers is the one direction of imports (docs/design.md), from the ground up.
// Tests are held to it too where Temporal is not allowed; elsewhere they may use
// what they like.
var layers = []layer{
	{folder: "apcore", ours: []string{"apcore"}},
	{folder: "durable", ours: []string{"apcore", "durable"}},
	{folder: "temporal", ours: []string{"apcore", "durable", "temporal"}, temporal: true},
	{folder: "activities", ours: []string{"apcore", "durable", "temporal", "activities"}, temporal: true},
	{folder: "workflows", ours: []string{"apcore", "durable", "temporal", "workflows"}, temporal: true},
	{folder: "worker", ours: []string{"apcore", "durable", "temporal", "activities", "workflows", "worker"}, temporal: true},
	{folder: "cmd", ours: []string{"apcore", "durable", "temporal", "activities", "workflows", "worker", "cmd"}, temporal: true},
	{folder: "examples", ours: []string{"apcore", "durable", "temporal", "activities", "workflows", "worker", "examples"}, temporal: true},
	{folder: "testsuite", ours: []string{"apcore", "durable", "temporal", "activities", "workflows", "worker", "testsuite"}, temporal: true},
	{folder: "compat", ours: []string{"compat"}},
}

// isTemporal reports whether a package comes from Temporal.
func isTemporal(importPath string) bool {
	return isUnder(importPath, "go.temporal.io") || isUnder(importPath, "github.com/temporalio") ||
		isUnder(importPath, "github.com/nexus-rpc")
}

// forbidden returns those of the packages that a layer may not link, each with
// the reason.
func (l layer) forbidden(importPaths []string) []string {
	var found []string
	for _, importPath := range importPaths {
		switch {
		case isOurs(importPath) && !isUnderAny(within(importPath), l.ours):
			found = append(found, within(importPath)+" (it may build on "+strings.Join(l.ours, ", ")+" only)")
		case isTemporal(importPath) && !l.temporal:
			found = append(found, importPath+" (it knows nothing of Temporal)")
		}
	}
	return found
}

func TestImportsGoOneWay(t *testing.T) {
	for _, p := range listPackages(t, root) {
		i := slices.IndexFunc(layers, func(l layer) bool { return isUnder(p.rel(), l.folder) })
		if i < 0 {
			t.Errorf("%s has no layer: say in this test what it may import", p.rel())
			continue
		}
		if imports := layers[i].forbidden(p.Imports); len(imports) > 0 {
			t.Errorf("%s imports %s", p.rel(), strings.Join(imports, "; "))
		} else if links := layers[i].forbidden(p.Deps); len(links) > 0 {
			t.Errorf("%s links, through others, %s", p.rel(), links[0])
		}
		if layers[i].temporal || layers[i].folder == "compat" {
			continue
		}
		if imports := layers[i].forbidden(slices.Concat(p.TestImports, p.XTestImports)); len(imports) > 0 {
			t.Errorf("a test of %s imports %s", p.rel(), strings.Join(imports, "; "))
		}
	}
}

// Direct imports only: go.temporal.io/sdk/workflow itself links testing, so no
// program that uses it can be free of it.
func TestTestCodeStaysInTests(t *testing.T) {
	forTests := []string{"testing", "go.temporal.io/sdk/testsuite", "go.temporal.io/sdk/mocks", "github.com/stretchr/testify", module + "/testsuite"}
	for _, p := range listPackages(t, root) {
		if isUnder(p.rel(), "testsuite") {
			continue
		}
		for _, imported := range p.Imports {
			if isUnderAny(imported, forTests) {
				t.Errorf("%s imports %s: only tests and testsuite may", p.rel(), within(imported))
			}
		}
	}
}

// The server's module and this one cannot share a build list.
func TestServerStaysAModuleOfItsOwn(t *testing.T) {
	var mod struct{ Require []struct{ Path string } }
	if err := json.Unmarshal(goOutput(t, root, "mod", "edit", "-json"), &mod); err != nil {
		t.Fatal(err)
	}
	for _, required := range mod.Require {
		if isUnderAny(required.Path, []string{"go.temporal.io/server", "github.com/temporalio/ui-server", module}) {
			t.Errorf("go.mod requires %s: the server belongs to testsuite/devserver", required.Path)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "go.work")); err == nil {
		t.Error("a go.work file joins the build lists of two modules that cannot be joined")
	}
}
