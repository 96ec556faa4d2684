package compat

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// maxLines is where a file starts to hold a second noun.
const maxLines = 400

// longFiles holds the files that may be longer, each with its reason.
var longFiles = map[string]string{}

func TestFilesHoldOneNoun(t *testing.T) {
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			hidden := strings.HasPrefix(entry.Name(), ".") && name != root
			if hidden || entry.Name() == "testdata" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		lines := bytes.Count(content, []byte("\n"))
		rel := filepath.ToSlash(strings.TrimPrefix(name, root+string(filepath.Separator)))
		found[rel] = lines > maxLines
		if _, allowed := longFiles[rel]; lines > maxLines && !allowed {
			t.Errorf("%s has %d lines: is there a second noun in it?", rel, lines)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range longFiles {
		if !found[name] {
			t.Errorf("%s is allowed to be long and no longer is: take it off the list", name)
		}
	}
}
