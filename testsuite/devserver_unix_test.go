//go:build unix

package testsuite_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/apcore-temporal/apcore-temporal/testsuite"
)

// asVictim, in the environment, makes the victim's test run.
const asVictim = "APCORE_TEST_AS_VICTIM"

// TestVictim is run by the test below in a process of its own. It tells the
// process id of its server and then waits to be killed.
func TestVictim(t *testing.T) {
	if os.Getenv(asVictim) == "" {
		t.Skip("runs for TestServerDiesWithItsTests only")
	}
	fmt.Printf("server %d\n", testsuite.DevServer(t).PID())
	select {}
}

func TestServerDiesWithItsTests(t *testing.T) {
	needsServer(t)
	victim := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestVictim$", "-test.v")
	victim.Env = append(os.Environ(), asVictim+"=1", testsuite.EnvAddress+"=")
	stdout, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	pid, said := 0, ""
	for lines := bufio.NewScanner(stdout); pid == 0 && lines.Scan(); {
		said += lines.Text() + "\n"
		if _, number, ok := strings.Cut(lines.Text(), "server "); ok {
			pid, _ = strconv.Atoi(number)
		}
	}
	if pid == 0 {
		t.Fatalf("the victim told no process id, but:\n%s", said)
	}
	if gone(t, pid) {
		t.Fatal("there is no server to begin with")
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait()
	for deadline := time.Now().Add(20 * time.Second); !gone(t, pid); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			t.Fatal("the server outlives the tests that it was started for")
		}
	}
}

// gone reports whether a process has ended. One that nobody has waited for yet
// has ended too.
func gone(t *testing.T, pid int) bool {
	t.Helper()
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return true
	} else if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return errors.Is(err, os.ErrNotExist) && runtime.GOOS == "linux"
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "Z")
}
