package compat

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	// module is the path of the root module.
	module = "github.com/apcore-temporal/apcore-temporal"
	// root is the repository, seen from this package.
	root = ".."
	// serverModule is the folder of the nested module.
	serverModule = root + "/testsuite/devserver"
)

// goPackage is what go list says about a package.
type goPackage struct {
	Dir          string
	ImportPath   string
	Name         string
	GoFiles      []string
	Imports      []string
	Deps         []string
	TestImports  []string
	XTestImports []string
}

// rel returns the package's path within the repository.
func (p goPackage) rel() string { return within(p.ImportPath) }

// within cuts the module path off; a foreign path stays as it is.
func within(importPath string) string { return strings.TrimPrefix(importPath, module+"/") }

// isOurs reports whether a package is of this repository.
func isOurs(importPath string) bool { return strings.HasPrefix(importPath, module+"/") }

// isUnder reports whether a path is folder or below it.
func isUnder(name, folder string) bool {
	return name == folder || strings.HasPrefix(name, folder+"/")
}

// isUnderAny reports whether a path is one of folders or below one of them.
func isUnderAny(name string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool { return isUnder(name, folder) })
}

// isInternal reports whether a package is hidden from users.
func isInternal(importPath string) bool {
	return slices.Contains(strings.Split(importPath, "/"), "internal")
}

// goOutput runs the go command in dir.
func goOutput(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s in %s: %v\n%s", strings.Join(args, " "), dir, err, stderr.String())
	}
	return out
}

// listPackages returns the packages of the module in dir.
func listPackages(t *testing.T, dir string, flags ...string) []goPackage {
	t.Helper()
	out := goOutput(t, dir, append(append([]string{"list", "-json"}, flags...), "./...")...)
	var packages []goPackage
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("read what go list says: %v", err)
		}
		packages = append(packages, p)
	}
	if len(packages) == 0 {
		t.Fatalf("go list finds no package in %s", dir)
	}
	return packages
}

// source is a parsed package without its tests.
type source struct {
	goPackage
	fset  *token.FileSet
	files []*ast.File
}

// sources parses the packages of both modules.
func sources(t *testing.T) []source {
	t.Helper()
	packages := slices.Concat(listPackages(t, root), listPackages(t, serverModule, "-find"))
	parsed := make([]source, 0, len(packages))
	for _, p := range packages {
		s := source{goPackage: p, fset: token.NewFileSet()}
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(s.fset, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			s.files = append(s.files, file)
		}
		parsed = append(parsed, s)
	}
	return parsed
}

// at returns a position as file:line within the repository.
func (s source) at(pos token.Pos) string {
	position := s.fset.Position(pos)
	position.Filename = path.Join(s.rel(), filepath.Base(position.Filename))
	position.Column = 0
	return position.String()
}
