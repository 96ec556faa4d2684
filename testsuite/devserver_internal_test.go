package testsuite

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// smallModule writes a module that builds in no time.
func smallModule(t *testing.T, body string) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "go.mod"), "module example.com/small\n\ngo 1.26\n")
	writeFile(t, filepath.Join(dir, "main.go"), "package main\n\nfunc main() {"+body+"}\n")
	return dir
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestBuildOnceForAllWhoAsk(t *testing.T) {
	source, dir := smallModule(t, ""), t.TempDir()
	const callers = 4
	said := make([]bytes.Buffer, callers)
	paths := make([]string, callers)
	errs := make([]error, callers)
	var group sync.WaitGroup
	for i := range callers {
		group.Go(func() { paths[i], errs[i] = buildInto(t.Context(), &said[i], source, dir) })
	}
	group.Wait()
	built := 0
	for i := range callers {
		if errs[i] != nil || paths[i] != paths[0] {
			t.Errorf("caller %d got %q, %v", i, paths[i], errs[i])
		}
		built += strings.Count(said[i].String(), "built the Temporal dev server")
	}
	if built != 1 {
		t.Errorf("built %d times", built)
	}
	if info, err := os.Stat(paths[0]); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("no program at %s: %v", paths[0], err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "devserver-build-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestBuildAgainWhenSourcesChange(t *testing.T) {
	source, dir := smallModule(t, ""), t.TempDir()
	rebuilt := func() bool {
		var said bytes.Buffer
		if _, err := buildInto(t.Context(), &said, source, dir); err != nil {
			t.Fatal(err)
		}
		return said.Len() > 0
	}
	if !rebuilt() || rebuilt() {
		t.Fatal("the first call builds, the second does not")
	}
	writeFile(t, filepath.Join(source, "main_test.go"), "package main\n")
	if rebuilt() {
		t.Error("a test is not part of the program")
	}
	writeFile(t, filepath.Join(source, "more.go"), "package main\n")
	if !rebuilt() {
		t.Error("a new source file changes the program")
	}
	writeFile(t, filepath.Join(source, "more.go"), "package main\n\n// more\n")
	if !rebuilt() {
		t.Error("a changed source file changes the program")
	}
	if err := os.Remove(filepath.Join(dir, filepath.Base(mustBuild(t, source, dir)))); err != nil {
		t.Fatal(err)
	}
	if !rebuilt() {
		t.Error("a program that is gone has to be built again")
	}
}

func mustBuild(t *testing.T, source, dir string) string {
	t.Helper()
	path, err := buildInto(t.Context(), t.Output(), source, dir)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBuildFailureKeepsTheCompilersWords(t *testing.T) {
	source, dir := smallModule(t, " undefined() "), t.TempDir()
	_, err := buildInto(t.Context(), t.Output(), source, dir)
	if err == nil || !strings.Contains(err.Error(), "undefined: undefined") || !strings.Contains(err.Error(), EnvBinary) {
		t.Errorf("error is %v", err)
	}
}

func TestBuildEndsWithItsContext(t *testing.T) {
	source, dir := smallModule(t, ""), t.TempDir()
	unlock, err := lock(t.Context(), t.Output(), filepath.Join(dir, "devserver.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var said bytes.Buffer
	if _, err := buildInto(ctx, &said, source, dir); err == nil || !strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("error is %v", err)
	}
	if !strings.Contains(said.String(), "waiting for another process") {
		t.Errorf("said %q", &said)
	}
}

func TestBuiltServerFromTheEnvironment(t *testing.T) {
	t.Setenv(EnvBinary, os.Args[0])
	if path, err := BuildServer(t.Context(), t.Output()); err != nil || path != os.Args[0] {
		t.Errorf("got %q, %v", path, err)
	}
	t.Setenv(EnvBinary, filepath.Join(t.TempDir(), "missing"))
	if _, err := BuildServer(t.Context(), t.Output()); err == nil || !strings.Contains(err.Error(), EnvBinary+"=") {
		t.Errorf("error is %v", err)
	}
}

func TestWrongProgramIsExplained(t *testing.T) {
	source, dir := smallModule(t, ` print("no server"); panic("no flags either") `), t.TempDir()
	t.Setenv(EnvBinary, mustBuild(t, source, dir))
	_, err := startServer(t.Context(), ServerOptions{})
	if err == nil || !strings.Contains(err.Error(), "did not start: exit status 2") || !strings.Contains(err.Error(), "no flags either") {
		t.Errorf("error is %v", err)
	}
}

func TestRunningServerIsUsed(t *testing.T) {
	server := StartServer(t, ServerOptions{Namespace: "mine"})
	t.Setenv(EnvAddress, server.Address())
	t.Setenv(EnvNamespace, "mine")
	used, err := newShared(t.Context())
	if err != nil || used.Address() != server.Address() || used.Namespace() != "mine" || used.PID() != 0 {
		t.Fatalf("got %+v, %v", used, err)
	}
	used.Kill() // it is not ours
	t.Setenv(EnvNamespace, "")
	if used, err = newShared(t.Context()); err != nil || used.Namespace() != defaultNamespace {
		t.Errorf("got %+v, %v", used, err)
	}
	t.Setenv(EnvNamespace, "missing")
	if _, err := newShared(t.Context()); err == nil || !strings.Contains(err.Error(), EnvNamespace+"=missing") {
		t.Errorf("error is %v", err)
	}
	server.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := newShared(ctx); err == nil || !strings.Contains(err.Error(), EnvAddress+"="+server.Address()) {
		t.Errorf("error is %v", err)
	}
}

func TestEndByItselfIsNoticed(t *testing.T) {
	server := StartServer(t, ServerOptions{})
	if server.process.endedByItself() {
		t.Fatal("it runs")
	}
	_ = server.process.cmd.Process.Kill() // not through the server's methods
	<-server.process.ended
	if !server.process.endedByItself() || !strings.Contains(server.lastWords(), "killed") {
		t.Errorf("not noticed, last words %q", server.lastWords())
	}
	server.process.asked.Store(true) // this test is content
}

func TestTailKeepsTheEnd(t *testing.T) {
	var kept tail
	for range 3 {
		_, _ = kept.Write(bytes.Repeat([]byte("x"), tailSize))
	}
	_, _ = kept.Write([]byte("end"))
	if got := kept.String(); len(got) != tailSize || !strings.HasSuffix(got, "xend") {
		t.Errorf("kept %d bytes", len(got))
	}
}

func TestReadOnlyRepositoryBuildsIntoTheCache(t *testing.T) {
	repository, home := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	t.Setenv("LocalAppData", filepath.Join(home, "cache"))
	source := filepath.Join(repository, "testsuite", "devserver")
	if dir, err := binDir(source); err != nil || dir != filepath.Join(repository, ".bin") {
		t.Errorf("writable: %q, %v", dir, err)
	}
	if err := os.Remove(filepath.Join(repository, ".bin")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(repository, ".bin"), "in the way, for the superuser too")
	dir, err := binDir(source)
	if err != nil || !strings.HasPrefix(dir, home) {
		t.Errorf("read-only: %q, %v", dir, err)
	}
}

func TestSourceIsFound(t *testing.T) {
	source, err := serverSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if here, err := filepath.Abs("devserver"); err != nil || source != here {
		t.Errorf("source is %q, want %q (%v)", source, here, err)
	}
}
