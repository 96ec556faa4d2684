package testsuite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gofrs/flock"
)

const (
	// progressInterval is how often a long wait says that it goes on.
	progressInterval = 15 * time.Second
	// lockInterval is how often a lock that another process holds is tried.
	lockInterval = 200 * time.Millisecond
)

// buildFlags are the flags of go build for the dev server. They decide what
// build caches are good for, so use the same everywhere.
var buildFlags = []string{"-trimpath", "-ldflags=-s -w", "-buildvcs=false", "-mod=readonly"}

// BuildServer returns the path of the dev server's program: that in
// APCORE_DEVSERVER if it is set, else .bin/devserver in this repository (or the
// same in the user's cache directory, if the repository is read-only), which it
// builds when it is missing or older than its sources in testsuite/devserver.
//
// A first build takes 3 to 4 minutes on two cores. Its beginning, every 15
// seconds of it, and its end are a line each on w; nothing else is. Any number of
// processes may call BuildServer at once: one builds, the others wait. It ends
// with an error when ctx does.
func BuildServer(ctx context.Context, w io.Writer) (string, error) {
	if path := os.Getenv(EnvBinary); path != "" {
		return builtServer(path)
	}
	source, err := serverSource(ctx)
	if err != nil {
		return "", err
	}
	dir, err := binDir(source)
	if err != nil {
		return "", err
	}
	return buildInto(ctx, w, source, dir)
}

// builtServer checks the path that the environment gives.
func builtServer(path string) (string, error) {
	found, err := exec.LookPath(path)
	if err == nil {
		found, err = filepath.Abs(found)
	}
	if err != nil {
		return "", fmt.Errorf("%s=%s is no program: %w; unset it to have one built", EnvBinary, path, err)
	}
	return found, nil
}

// buildInto returns the program in dir, after building it from source if it is
// not up to date.
func buildInto(ctx context.Context, w io.Writer, source, dir string) (string, error) {
	stamp, err := sourceStamp(source)
	if err != nil {
		return "", fmt.Errorf("read the sources of the dev server: %w", err)
	}
	binary := filepath.Join(dir, "devserver")
	if runtime.GOOS == "windows" {
		binary += ".exe"
	}
	if upToDate(binary, stamp) {
		return binary, nil
	}
	unlock, err := lock(ctx, w, binary+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if upToDate(binary, stamp) { // by who held the lock before
		return binary, nil
	}
	if err := build(ctx, w, source, binary); err != nil {
		return "", fmt.Errorf("build the dev server in %s (to use one that is built, set %s to its path): %w", source, EnvBinary, err)
	}
	if err := writeStamp(binary, stamp); err != nil {
		return "", err
	}
	return binary, nil
}

// lock takes the lock file, so that one process builds at a time. A process that
// dies leaves no lock behind.
func lock(ctx context.Context, w io.Writer, path string) (unlock func(), err error) {
	file := flock.New(path)
	locked, err := file.TryLock()
	if err == nil && !locked {
		done := progress(w, "waiting for another process to build the Temporal dev server")
		_, err = file.TryLockContext(ctx, lockInterval)
		done()
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { _ = file.Unlock() }, nil
}

// build compiles the program beside its place and then moves it there, so that
// nobody ever starts half of one.
func build(ctx context.Context, w io.Writer, source, binary string) error {
	temporary, err := os.MkdirTemp(filepath.Dir(binary), "devserver-build-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temporary) }()
	output := filepath.Join(temporary, filepath.Base(binary))

	begin := time.Now()
	done := progress(w, "building the Temporal dev server, first time only, takes some minutes...")
	err = compile(ctx, source, output)
	done()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "built the Temporal dev server in %v\n", time.Since(begin).Round(time.Second))
	if err := removeStamp(binary); err != nil {
		return err
	}
	return os.Rename(output, binary)
}

// compile runs go build. Its error carries what the command said.
func compile(ctx context.Context, source, output string) error {
	args := append([]string{"build"}, buildFlags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "-o", output, ".")...)
	cmd.Dir = source
	// A workspace around this repository must not mix the two modules.
	cmd.Env = append(os.Environ(), "GOWORK=off")
	// go build ends its compilers when interrupted, not when killed.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w: give it more time, in tests with -timeout", ctx.Err())
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("the go command is needed: %w", err)
	default:
		return fmt.Errorf("%w\n%s", err, bytes.TrimSpace(said.Bytes()))
	}
}

// progress writes a message now, and the time that has passed since at
// intervals, until the returned function is called. That function returns after
// the last line.
func progress(w io.Writer, message string) (done func()) {
	fmt.Fprintln(w, message)
	begin, stop, stopped := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for {
			select {
			case <-stop:
				return
			case <-ticker.C:
				fmt.Fprintf(w, "%s (%v so far)\n", message, time.Since(begin).Round(time.Second))
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}
