package compat

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pitfalls is how many docs/pitfalls.md answers.
const pitfalls = 46

var (
	pitfallRow = regexp.MustCompile(`(?m)^\| (\d+) \| (.+) \| (.+) \|$`)
	testName   = regexp.MustCompile("`([a-z0-9/_]+)\\.((?:Test|Fuzz|Benchmark|Example)\\w*)`")
)

// Pitfall 46: docs/pitfalls.md answers every pitfall, in order, each with at least
// one test, and every test it names is in the source of the package it names.
func TestPitfallsNameTheirTests(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "pitfalls.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range pitfallProblems(string(page), testsOf(t)) {
		t.Error(problem)
	}
}

func pitfallProblems(page string, tests map[string]bool) (problems []string) {
	rows := pitfallRow.FindAllStringSubmatch(page, -1)
	for i, row := range rows {
		if row[1] != strconv.Itoa(i+1) {
			problems = append(problems, "row "+strconv.Itoa(i+1)+" has number "+row[1])
		}
		named := testName.FindAllStringSubmatch(row[3], -1)
		if len(named) == 0 || len(named) != strings.Count(row[3], "`")/2 {
			problems = append(problems, "pitfall "+row[1]+" names no test, or something that is none: "+row[3])
		}
	}
	if len(rows) != pitfalls {
		problems = append(problems, "there are "+strconv.Itoa(len(rows))+" rows")
	}
	for _, named := range testName.FindAllStringSubmatch(page, -1) {
		if name := named[1] + "." + named[2]; !tests[name] {
			problems = append(problems, "there is no test "+name)
		}
	}
	return problems
}

// The check above finds what it is there for.
func TestPitfallProblemsAreFound(t *testing.T) {
	tests := map[string]bool{"worker.TestA": true}
	var page strings.Builder
	for i := range pitfalls {
		page.WriteString("| " + strconv.Itoa(i+1) + " | What it is | `worker.TestA` |\n")
	}
	good := page.String()
	for name, test := range map[string]struct {
		page string
		want int
	}{
		"good":         {good, 0},
		"no such test": {strings.Replace(good, "TestA", "TestB", 1), 1},
		"a row less":   {strings.Replace(good, "| 46 |", "46", 1), 1},
		"twice":        {strings.Replace(good, "| 46 |", "| 45 |", 1), 1},
		"no test":      {strings.Replace(good, "`worker.TestA`", "to be written", 1), 1},
		"no package":   {strings.Replace(good, "`worker.TestA`", "`worker.TestA`, `TestA`", 1), 1},
	} {
		if got := pitfallProblems(test.page, tests); len(got) != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// testFiles parses the test files of both modules, by path within the repository.
func testFiles(t *testing.T) map[string]*ast.File {
	t.Helper()
	files := map[string]*ast.File{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), ".") && name != root) {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, "_test.go") {
			rel, _ := filepath.Rel(root, name)
			files[filepath.ToSlash(rel)], err = parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// testsOf are the tests of the source, as folder.Name.
func testsOf(t *testing.T) map[string]bool {
	t.Helper()
	tests := map[string]bool{}
	for name, file := range testFiles(t) {
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok && fn.Recv == nil {
				tests[filepath.ToSlash(filepath.Dir(name))+"."+fn.Name.Name] = true
			}
		}
	}
	return tests
}

// skips are the test files that may leave a test out, each with its reason.
var skips = map[string]string{
	"apcore/acl_file_test.go":                  "a file system without symbolic links",
	"apcore/conformance_test.go":               "-short, which CI does not set",
	"apcore/internal/schema/validator_test.go": "inputs that a generator drew and that are no case",
	"apcore/internal/typed/typed_test.go":      "inputs that a generator drew and that are no case",
	"apcore/performance_test.go":               "the race detector, which allocates",
	"durable/inbox_test.go":                    "a step that a model test drew and that does not apply",
	"durable/roundtrip_fuzz_test.go":           "inputs that a fuzzer drew and that are no case",
	"temporal/taskstore_suite_test.go":         "-short, which CI does not set",
	"testsuite/devserver_test.go":              "-short, which CI does not set",
	"testsuite/devserver_unix_test.go":         "the child process of another test",
}

// Pitfall 45: no test is left out because something is missing, such as a server.
func TestSkipsAreKnown(t *testing.T) {
	found := map[string]bool{}
	for name, file := range testFiles(t) {
		ast.Inspect(file, func(node ast.Node) bool {
			if call, ok := node.(*ast.CallExpr); ok {
				if fn, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, fn.Sel.Name) {
					found[name] = true
				}
			}
			return true
		})
	}
	if diff := cmp.Diff(slices.Sorted(maps.Keys(skips)), slices.Sorted(maps.Keys(found))); diff != "" {
		t.Errorf("files that skip tests (-known +found): write a test that fails instead, or give the reason here:\n%s", diff)
	}
}
