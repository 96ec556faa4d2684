package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// asServer, in the environment of the test binary, makes it the devserver.
const asServer = "DEVSERVER_TEST_AS_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(asServer) != "" {
		main()
	}
	os.Exit(m.Run())
}

// process is a devserver in a process of its own.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr bytes.Buffer
	ready  readyLine
	waited bool
}

// command prepares a devserver process with the arguments of start-dev.
func command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], append([]string{"server", "start-dev"}, args...)...)
	cmd.Env = append(os.Environ(), asServer+"=1")
	return cmd
}

// launch starts a devserver on a free port and waits for its ready line. It is
// killed at the end of the test if it still runs.
func launch(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: command(append([]string{"--port", "0", "--exit-with-parent"}, args...)...)}
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.stdin, p.stdout = stdin, bufio.NewReader(stdout)
	t.Cleanup(p.kill)
	line, err := p.stdout.ReadBytes('\n')
	if err != nil {
		p.kill()
		t.Fatalf("no ready line (%v), stderr:\n%s", err, p.stderr.String())
	}
	if err := json.Unmarshal(line, &p.ready); err != nil {
		t.Fatalf("ready line %q: %v", line, err)
	}
	return p
}

// wait waits for the end of the process, and returns its exit code and what it
// printed on stdout after the ready line.
func (p *process) wait() (int, string) {
	p.t.Helper()
	timeout := time.AfterFunc(2*stopTimeout, func() { _ = p.cmd.Process.Kill() })
	defer timeout.Stop()
	rest, err := io.ReadAll(p.stdout)
	if err != nil {
		p.t.Fatalf("read stdout: %v", err)
	}
	p.waited = true
	_ = p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode(), string(rest)
}

// stop closes the server's stdin and checks that it ends well.
func (p *process) stop() {
	p.t.Helper()
	if err := p.stdin.Close(); err != nil {
		p.t.Fatal(err)
	}
	p.mustEndWell()
}

// mustEndWell waits for the end of a server that was told to stop.
func (p *process) mustEndWell() {
	p.t.Helper()
	code, rest := p.wait()
	if code != exitOK || rest != "" || p.stderr.Len() != 0 {
		p.t.Fatalf("exit code %d, more on stdout %q, stderr:\n%s", code, rest, p.stderr.String())
	}
}

// kill ends the process without any grace.
func (p *process) kill() {
	if !p.waited {
		_ = p.cmd.Process.Kill()
		p.wait()
	}
}
