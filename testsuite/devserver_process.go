package testsuite

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// stopTimeout is how long a graceful stop may take before it becomes a kill.
	stopTimeout = 30 * time.Second
	// tailSize is how many bytes of a server's stderr are kept for messages.
	tailSize = 8 << 10
)

// serverProcess is the process of a dev server. It ends when its stdin is
// closed, which the end of this process does too.
type serverProcess struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stderr tail
	asked  atomic.Bool   // to end
	ended  chan struct{} // closed once the process has ended and is waited for
}

// launch starts the program and waits for the first line on its stdout.
func launch(ctx context.Context, path string, args []string) (*serverProcess, []byte, error) {
	//nolint:noctx // the process outlives ctx, which only limits its start
	p := &serverProcess{cmd: exec.Command(path, args...), ended: make(chan struct{})}
	p.cmd.Stderr = &p.stderr
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, nil, fmt.Errorf("start the dev server: %w", err)
	}
	p.stdin = stdin
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, nil, fmt.Errorf("start the dev server: %w", err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, nil, fmt.Errorf("start the dev server: %w", err)
	}
	first := make(chan []byte, 1)
	go p.watch(stdout, first)
	select {
	case line := <-first:
		return p, line, nil
	case <-p.ended:
		return nil, nil, fmt.Errorf("the dev server did not start%s", p.lastWords())
	case <-ctx.Done():
		p.kill()
		return nil, nil, fmt.Errorf("the dev server was not ready in time: %w%s", ctx.Err(), p.lastWords())
	}
}

// watch reads stdout until the process ends and hands out the first line.
func (p *serverProcess) watch(stdout io.Reader, first chan<- []byte) {
	defer close(p.ended)
	reader := bufio.NewReader(stdout)
	if line, err := reader.ReadBytes('\n'); err == nil {
		first <- line
	}
	_, _ = io.Copy(io.Discard, reader)
	_ = p.cmd.Wait() // how it ended stays in ProcessState
}

// stop asks the process to end, and kills it when it takes too long.
func (p *serverProcess) stop() {
	p.asked.Store(true)
	_ = p.stdin.Close()
	select {
	case <-p.ended:
	case <-time.After(stopTimeout):
		p.kill()
	}
}

// kill ends the process and waits for its end.
func (p *serverProcess) kill() {
	p.asked.Store(true)
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// endedByItself reports whether the process has ended though nobody asked it to.
func (p *serverProcess) endedByItself() bool {
	select {
	case <-p.ended:
		return !p.asked.Load()
	default:
		return false
	}
}

// lastWords says how the process ended, if it has, and what it last wrote to
// stderr. The text continues a sentence.
func (p *serverProcess) lastWords() string {
	var words strings.Builder
	select {
	case <-p.ended:
		fmt.Fprintf(&words, ": %v", p.cmd.ProcessState)
	default:
	}
	if text := p.stderr.String(); text != "" {
		fmt.Fprintf(&words, "; it last said:\n%s", text)
	}
	return words.String()
}

// tail is a writer that keeps the end of what was written.
type tail struct {
	mu   sync.Mutex
	text []byte
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if excess := len(t.text) - tailSize; excess > 0 {
		t.text = append(t.text[:0], t.text[excess:]...)
	}
	return len(p), nil
}

// String returns what is kept, without space around it.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
