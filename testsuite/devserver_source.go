package testsuite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	modulePath = "github.com/apcore-temporal/apcore-temporal"
	serverPath = modulePath + "/testsuite/devserver"
)

// serverSource returns the directory of the dev server's module in a checkout
// of this repository.
func serverSource(ctx context.Context) (string, error) {
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) { // relative with -trimpath
		if dir := filepath.Join(filepath.Dir(file), "devserver"); isModule(dir) {
			return dir, nil
		}
	}
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", modulePath).Output()
	if dir := filepath.Join(strings.TrimSpace(string(root)), "testsuite", "devserver"); err == nil && isModule(dir) {
		return dir, nil
	}
	return "", fmt.Errorf("the sources of the dev server are a Go module of their own and not here: "+
		"run go install %s@latest and set %s to the path of what it installs", serverPath, EnvBinary)
}

// isModule reports whether a directory is the root of a Go module.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// binDir returns a directory for the program that can be written to.
func binDir(source string) (string, error) {
	inRepository := filepath.Join(filepath.Dir(filepath.Dir(source)), ".bin")
	err := makeWritable(inRepository)
	if err == nil {
		return inRepository, nil
	}
	cache, cacheErr := os.UserCacheDir()
	if cacheErr == nil {
		cache = filepath.Join(cache, "apcore-temporal")
		cacheErr = makeWritable(cache)
	}
	if cacheErr != nil {
		return "", fmt.Errorf("no place for the dev server's program: %w", errors.Join(err, cacheErr))
	}
	return cache, nil
}

// makeWritable creates a directory if need be and checks that files can be
// created in it.
func makeWritable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(dir, ".writable-")
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// sourceStamp returns a hash of all that decides what the program is: the files
// of the module except its tests, the platform, and the flags of go build.
func sourceStamp(source string) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, runtime.GOOS, runtime.GOARCH, buildFlags)
	entries, err := os.ReadDir(source) // sorted; the module has no directories
	if err != nil {
		return "", err
	}
	for _, entry := range entries {
		name := entry.Name()
		isSource := strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
		if !isSource && name != "go.mod" && name != "go.sum" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(source, name))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%q %d\n%s", name, len(content), content)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// stampFile is where the stamp of a program is kept.
func stampFile(binary string) string { return binary + ".stamp" }

// upToDate reports whether a program exists and has a stamp.
func upToDate(binary, stamp string) bool {
	kept, err := os.ReadFile(stampFile(binary))
	if err != nil || string(kept) != stamp {
		return false
	}
	_, err = os.Stat(binary)
	return err == nil
}

// writeStamp gives a program that is in its place its stamp.
func writeStamp(binary, stamp string) error {
	if err := os.WriteFile(stampFile(binary), []byte(stamp), 0o644); err != nil {
		return fmt.Errorf("note what the dev server was built from: %w", err)
	}
	return nil
}

// removeStamp makes a program count as out of date.
func removeStamp(binary string) error {
	err := os.Remove(stampFile(binary))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
