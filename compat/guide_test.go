package compat

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Pitfall 46: the guide of the core says nothing of an Example that is not there,
// and every Example of the package's executor side stands in it.
func TestGuideNamesItsExamples(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "docs", "core.md"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join("..", "apcore", "example*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	there := map[string]string{}
	for _, file := range files {
		code, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range regexp.MustCompile(`(?m)^func (Example\w*)\(\) \{`).FindAllStringSubmatch(string(code), -1) {
			there[found[1]] = filepath.Base(file)
		}
		if !strings.Contains(string(code), "// Output:") {
			t.Errorf("%s checks no output", file)
		}
	}
	named := map[string]bool{}
	for _, name := range regexp.MustCompile("`(Example[A-Z_]\\w*|Example_\\w+)`").FindAllStringSubmatch(string(guide), -1) {
		named[name[1]] = true
		if there[name[1]] == "" {
			t.Errorf("docs/core.md names %s, which is not there", name[1])
		}
	}
	for name, file := range there {
		if mine := file == "example_test.go" || file == "example_call_test.go" || file == "example_middleware_test.go" || file == "example_task_test.go"; mine && !named[name] {
			t.Errorf("docs/core.md does not name %s", name)
		}
	}
	for _, link := range regexp.MustCompile(`\]\(([^)#]+)\)`).FindAllStringSubmatch(string(guide), -1) {
		if _, err := os.Stat(filepath.Join("..", "docs", link[1])); err != nil {
			t.Errorf("docs/core.md links to %s: %v", link[1], err)
		}
	}
}
