package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// stopPatience is how long a process may take to end before it is killed.
const stopPatience = 15 * time.Second

// process is a program that the demo has started and will end.
type process struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
}

// launch starts a program in a process group of its own, so that Ctrl-C reaches
// the demo alone and things end in order.
func launch(name string, cmd *exec.Cmd) (*process, error) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &process{name: name, cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // how it ended is seen by what it did not do
		close(p.done)
	}()
	return p, nil
}

// stop ends the process, gracefully if it can.
func (p *process) stop() {
	if p == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(stopPatience):
		p.kill()
	}
}

// kill ends the process at once, as a crash of its machine would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// serverReady is the line a dev server prints when it serves.
type serverReady struct {
	Address string `json:"address"`
	UI      string `json:"ui"`
}

// startServer starts the dev server on free loopback ports with its state in a
// SQLite file.
func (s *stage) startServer() error {
	args := []string{"server", "start-dev", "--port", "0", "--exit-with-parent", "--db-filename", filepath.Join(s.directory, "server.db")}
	if !s.keep {
		args = append(args, "--headless")
	}
	binary := os.Getenv("APCORE_DEVSERVER")
	if binary == "" {
		binary = filepath.Join(s.binaries, "devserver")
	}
	cmd := exec.Command(binary, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	alive, err := cmd.StdinPipe() // the server ends when the demo does
	if err != nil {
		return err
	}
	s.alive = alive
	if s.server, err = launch("dev server", cmd); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		return errors.New("the dev server ended before it served: what it said is above")
	}
	var ready serverReady
	if err := json.Unmarshal(line, &ready); err != nil {
		return fmt.Errorf("the dev server said %q: %w", line, err)
	}
	s.address, s.ui = ready.Address, ready.UI
	return nil
}

// startWorker starts the example's worker as a process of its own.
func (s *stage) startWorker() error {
	cmd := exec.Command(filepath.Join(s.binaries, "refund-worker"))
	cmd.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+s.address, "TEMPORAL_NAMESPACE=default", "REFUND_LEDGER="+s.ledger)
	log, err := os.OpenFile(filepath.Join(s.directory, "worker.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	s.worker, err = launch("worker", cmd)
	return errors.Join(err, log.Close()) // the worker has a handle of its own
}

// command runs one of the example's programs to its end and returns what it
// printed.
func (s *stage) command(name string, args ...string) (string, error) {
	cmd := exec.CommandContext(s.ctx, filepath.Join(s.binaries, name), args...)
	cmd.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+s.address, "TEMPORAL_NAMESPACE=default")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %v: %w", name, args, err)
	}
	return string(out), nil
}
