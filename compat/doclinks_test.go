package compat

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// docLink matches [Name], [Type.Member], [pkg.Name] and [import/path.Name] in
// the text of a comment. An index (a[I]) or a quoted "[CODE]" is none.
var docLink = regexp.MustCompile(`(?:^|[\s(*,;])\[\*?((?:[\w.-]+/)*(?:[a-z]\w*\.)?[A-Z]\w*(?:\.[A-Z]\w*)?)\]`)

// spelledCode matches what is written like an error code, which is no name.
var spelledCode = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

// majorVersion matches the last element of an import path such as yaml/v3.
var majorVersion = regexp.MustCompile(`^v\d+$`)

// TestDocLinksResolve looks at links to names of this repository, and at the
// package of every other one.
func TestDocLinksResolve(t *testing.T) {
	packages := map[string]names{}
	all := sources(t)
	for _, s := range all {
		packages[s.ImportPath] = namesOf(s)
	}
	for _, s := range all {
		imports := importsOf(s)
		for _, file := range s.files {
			for _, group := range file.Comments {
				for _, link := range docLinks(group) {
					if err := resolve(link, s.ImportPath, imports, packages); err != nil {
						t.Errorf("%s: [%s]: %v", s.at(group.Pos()), link, err)
					}
				}
			}
		}
	}
}

// docLinks returns the links of a comment, without those in its code blocks.
func docLinks(group *ast.CommentGroup) []string {
	var links []string
	for line := range strings.Lines(group.Text()) {
		if strings.HasPrefix(line, "\t") {
			continue
		}
		for _, match := range docLink.FindAllStringSubmatch(line, -1) {
			if !spelledCode.MatchString(match[1]) {
				links = append(links, match[1])
			}
		}
	}
	return links
}

func TestDocLinksAreFound(t *testing.T) {
	group := &ast.CommentGroup{List: []*ast.Comment{
		{Text: "// See [Name], [*Type.Method] and ([pkg.Type.Field]); [path/to/pkg.Func]"},
		{Text: "// but neither a[Index] nor \"[CODE]\" nor [CODE] nor [plain words]:"},
		{Text: "//"},
		{Text: "//\tcode [Name]"},
	}}
	want := []string{"Name", "Type.Method", "pkg.Type.Field", "path/to/pkg.Func"}
	if diff := cmp.Diff(want, docLinks(group)); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
}

func TestDocLinksAreResolved(t *testing.T) {
	imports := map[string]string{"durable": module + "/durable", "workflow": "go.temporal.io/sdk/workflow"}
	packages := map[string]names{
		module + "/temporal": {"Call": true, "Options": true, "Options." + embeds: true},
		module + "/durable":  {"Run": true, "Engine": true, "Engine.Do": true},
	}
	for link, want := range map[string]bool{
		"Call":                        true,
		"Gone":                        false,
		"Call.Gone":                   false,
		"Options.Promoted":            true,
		"durable.Run":                 true,
		"durable.Engine.Do":           true,
		"durable.Gone":                false,
		"workflow.Context":            true,
		"errors.Is":                   true,
		"json.Marshal":                false,
		"unknown.Name":                false,
		module + "/durable.Run":       true,
		module + "/durable.Engine.Do": true,
		module + "/gone.Run":          false,
	} {
		err := resolve(link, module+"/temporal", imports, packages)
		if (err == nil) != want {
			t.Errorf("[%s] resolves: %t (%v), want %t", link, err == nil, err, want)
		}
	}
}

// resolve finds the target of a link in a comment of package from.
func resolve(link, from string, imports map[string]string, packages map[string]names) error {
	folder, name := path.Split(link)
	target := from
	if first, rest, _ := strings.Cut(name, "."); folder != "" {
		target, name = folder+first, rest
	} else if first[0] >= 'a' {
		imported, ok := imports[first]
		if !ok {
			imported, ok = comment.DefaultLookupPackage(first)
		}
		if !ok {
			return fmt.Errorf("this package does not import %s: write the import path", first)
		}
		target, name = imported, rest
	}
	known, ours := packages[target]
	switch {
	case !ours && isOurs(target):
		return fmt.Errorf("there is no package %s", target)
	case ours && !known.has(name):
		return fmt.Errorf("%s has no such name", within(target))
	default:
		return nil
	}
}

// importsOf returns the packages that a package imports, by the name it uses.
func importsOf(s source) map[string]string {
	imports := map[string]string{}
	for _, file := range s.files {
		for _, spec := range file.Imports {
			importPath, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				continue // the parser has checked it
			}
			name := path.Base(importPath)
			if majorVersion.MatchString(name) {
				name = path.Base(path.Dir(importPath))
			}
			if spec.Name != nil {
				name = spec.Name.Name
			}
			imports[name] = importPath
		}
	}
	return imports
}

// names holds what a package declares: Name and Type.Member.
type names map[string]bool

// embeds, as a type's member, says that it has members declared elsewhere.
const embeds = "*"

// has reports whether a package declares a name, or may do so by embedding.
func (n names) has(name string) bool {
	owner, _, isMember := strings.Cut(name, ".")
	return n[name] || isMember && n[owner+"."+embeds]
}

// namesOf collects the names of a package.
func namesOf(s source) names {
	found := names{}
	for _, file := range s.files {
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					found[d.Name.Name] = true
				} else {
					found[baseType(d.Recv.List[0].Type)+"."+d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					found.add(spec)
				}
			}
		}
	}
	return found
}

// add collects the names of one line of a declaration.
func (n names) add(spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, name := range s.Names {
			n[name.Name] = true
		}
	case *ast.TypeSpec:
		n[s.Name.Name] = true
		switch shape := s.Type.(type) {
		case *ast.StructType:
			n.addMembers(s.Name.Name, shape.Fields)
		case *ast.InterfaceType:
			n.addMembers(s.Name.Name, shape.Methods)
		default:
			if s.Assign.IsValid() {
				n[s.Name.Name+"."+embeds] = true // an alias has its target's members
			}
		}
	}
}

// addMembers collects fields or methods of a type.
func (n names) addMembers(owner string, members *ast.FieldList) {
	for _, member := range members.List {
		if len(member.Names) == 0 {
			n[owner+"."+baseType(member.Type)] = true
			n[owner+"."+embeds] = true
		}
		for _, name := range member.Names {
			n[owner+"."+name.Name] = true
		}
	}
}
