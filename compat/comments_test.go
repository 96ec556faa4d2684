package compat

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

func TestPackagesSayWhatTheyAreFor(t *testing.T) {
	for _, s := range sources(t) {
		var comment strings.Builder
		for _, file := range s.files {
			comment.WriteString(file.Doc.Text())
		}
		text := strings.TrimSpace(comment.String())
		switch {
		case text == "":
			t.Errorf("%s has no package comment", s.rel())
		case !strings.Contains(text, "\n"):
			t.Errorf("%s: a package comment of one line says too little: %s", s.rel(), text)
		}
	}
}

func TestExportedNamesAreDocumented(t *testing.T) {
	for _, s := range sources(t) {
		if s.Name == "main" || isInternal(s.ImportPath) {
			continue
		}
		for _, file := range s.files {
			for _, declaration := range file.Decls {
				for _, name := range undocumented(declaration) {
					t.Errorf("%s: exported %s has no comment", s.at(name.Pos()), name.Name)
				}
			}
		}
	}
}

// undocumented returns the exported names of a declaration that nothing
// explains.
func undocumented(declaration ast.Decl) []*ast.Ident {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && isVisible(d) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		var names []*ast.Ident
		for _, spec := range d.Specs {
			names = append(names, undocumentedIn(d, spec)...)
		}
		return names
	}
	return nil
}

// undocumentedIn is undocumented for one line of a declaration. A comment over a
// group of constants or variables speaks for all of them, one over a group of
// types for none.
func undocumentedIn(group *ast.GenDecl, spec ast.Spec) []*ast.Ident {
	var names []*ast.Ident
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Doc == nil && (group.Doc == nil || group.Lparen.IsValid()) {
			names = append(names, s.Name)
		}
	case *ast.ValueSpec:
		if s.Doc == nil && s.Comment == nil && group.Doc == nil {
			names = append(names, s.Names...)
		}
	}
	return slices.DeleteFunc(names, func(name *ast.Ident) bool { return !name.IsExported() })
}

// isVisible reports whether documentation shows a function: it is no method of
// an unexported type, and none whose meaning an interface of the standard
// library has fixed.
func isVisible(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	conventional := []string{"Error", "Unwrap", "Is", "String", "MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "LogValue"}
	return token.IsExported(baseType(f.Recv.List[0].Type)) && !slices.Contains(conventional, f.Name.Name)
}

// baseType returns the name of a receiver's or embedded field's type.
func baseType(expr ast.Expr) string {
	switch e := expr.(type) {
	case *ast.StarExpr:
		return baseType(e.X)
	case *ast.IndexExpr:
		return baseType(e.X)
	case *ast.IndexListExpr:
		return baseType(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	default:
		return ""
	}
}
