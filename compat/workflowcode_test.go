package compat

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// workflowPackages hold code that runs inside workflows.
var workflowPackages = []string{"durable", "temporal", "workflows"}

// workflowImport is in every file of workflow code.
const workflowImport = "go.temporal.io/sdk/workflow"

// Pitfall 1: what workflow code decides depends on nothing that outlives a run.
// No variable of a package it is in is ever written after its declaration.
func TestWorkflowCodeKeepsNoGlobalState(t *testing.T) {
	for _, s := range sources(t) {
		if !slices.Contains(workflowPackages, s.rel()) {
			continue
		}
		variables := packageVariables(s)
		for _, file := range s.files {
			for _, target := range written(file) {
				if name := baseName(target); variables[name] != token.NoPos && !isLocal(file, target, name) {
					t.Errorf("%s writes to %s, a variable of the package", s.at(target.Pos()), name)
				}
			}
		}
	}
}

func packageVariables(s source) map[string]token.Pos {
	variables := map[string]token.Pos{}
	for _, file := range s.files {
		for _, decl := range file.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR {
				continue
			}
			for _, spec := range group.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if name.Name != "_" {
						variables[name.Name] = name.Pos()
					}
				}
			}
		}
	}
	return variables
}

// written are the targets of assignments, and what addresses are taken of or
// what is cleared or deleted from.
func written(file *ast.File) (targets []ast.Expr) {
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				targets = append(targets, n.Lhs...)
			}
		case *ast.IncDecStmt:
			targets = append(targets, n.X)
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				targets = append(targets, n.X)
			}
		case *ast.CallExpr:
			if fn, ok := n.Fun.(*ast.Ident); ok && (fn.Name == "delete" || fn.Name == "clear") {
				targets = append(targets, n.Args[0])
			}
		}
		return true
	})
	return targets
}

// baseName is the variable at the root of an expression, empty for none.
func baseName(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.IndexExpr:
		return baseName(e.X)
	case *ast.SelectorExpr:
		return baseName(e.X)
	case *ast.StarExpr:
		return baseName(e.X)
	case *ast.ParenExpr:
		return baseName(e.X)
	}
	return ""
}

// isLocal reports whether the function around an expression has a variable of
// its own under that name.
func isLocal(file *ast.File, target ast.Expr, name string) bool {
	local := false
	for _, decl := range file.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || target.Pos() < fn.Pos() || target.Pos() > fn.End() {
			continue
		}
		ast.Inspect(fn, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.AssignStmt:
				for _, expr := range n.Lhs {
					ident, ok := expr.(*ast.Ident)
					local = local || ok && n.Tok == token.DEFINE && ident.Name == name
				}
			case *ast.Field:
				local = local || slices.ContainsFunc(n.Names, func(ident *ast.Ident) bool { return ident.Name == name })
			case *ast.ValueSpec:
				local = local || slices.ContainsFunc(n.Names, func(ident *ast.Ident) bool { return ident.Name == name })
			}
			return true
		})
	}
	return local
}

// Pitfalls 3 and 40: files of workflow code have no goroutines, channels, locks,
// limiters or sleeps but those of the SDK's workflow package. That no clock and no
// random number is reachable from them, make workflowcheck looks for.
func TestWorkflowCodeBlocksInWorkflowTermsOnly(t *testing.T) {
	looked := 0
	for _, s := range sources(t) {
		for _, file := range s.files {
			if !slices.Contains(workflowPackages, s.rel()) || !imports(file, workflowImport) {
				continue
			}
			looked++
			for _, name := range []string{"sync", "sync/atomic", "math/rand", "math/rand/v2", "crypto/rand", "github.com/google/uuid", "golang.org/x/time/rate", "golang.org/x/sync/semaphore"} {
				if imports(file, name) {
					t.Errorf("%s imports %s", s.at(file.Package), name)
				}
			}
			ast.Inspect(file, func(node ast.Node) bool {
				if why := blocks(node); why != "" {
					t.Errorf("%s: %s in a file of workflow code", s.at(node.Pos()), why)
				}
				return true
			})
		}
	}
	if looked < 15 {
		t.Errorf("only %d files of workflow code were found", looked)
	}
}

func imports(file *ast.File, path string) bool {
	return slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool { return spec.Path.Value == strconv.Quote(path) })
}

func blocks(node ast.Node) string {
	switch n := node.(type) {
	case *ast.GoStmt:
		return "a goroutine"
	case *ast.SelectStmt:
		return "a select"
	case *ast.ChanType:
		return "a channel"
	case *ast.SelectorExpr:
		pkg, ok := n.X.(*ast.Ident)
		if ok && pkg.Name == "time" && slices.Contains(strings.Fields("Now Since Until Sleep After AfterFunc Tick NewTimer NewTicker"), n.Sel.Name) {
			return "time." + n.Sel.Name
		}
	}
	return ""
}
