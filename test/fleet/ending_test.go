package fleet

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ownerVariable turns the test binary into an owner of a fleet, for tests that end the owner.
const ownerVariable = "TRELLIS_TEST_FLEET_OWNER"

func TestMain(m *testing.M) {
	if os.Getenv(ownerVariable) != "" {
		os.Exit(own())
	}
	os.Exit(m.Run())
}

// owned is an owner's report about its fleet, once before the start, without processes, and once after it.
type owned struct {
	Folder    string
	Processes []int
}

// own starts a fleet as ForTest does, reports it and waits until its input ends.
func own() int {
	report := json.NewEncoder(os.Stdout)
	_ = report.Encode(owned{})
	f, end, err := startGuarded(context.Background(), []ClusterOptions{{Name: "one", Workloads: true}})
	defer end()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	reported := owned{Folder: f.Folder()}
	for _, process := range f.Processes() {
		reported.Processes = append(reported.Processes, process.PID())
	}
	_ = report.Encode(reported)
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

type owner struct {
	command  *exec.Cmd
	reported *json.Decoder
	folder   string
}

func startOwner(t *testing.T) *owner {
	t.Helper()
	o := &owner{command: exec.Command(os.Args[0]), folder: t.TempDir()}
	cache := os.Getenv("TRELLIS_CACHE")
	o.command.Env = append(os.Environ(), ownerVariable+"=1", "TMPDIR="+o.folder, "TRELLIS_CACHE="+cache)
	o.command.Stderr = os.Stderr
	if _, err := o.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	output, err := o.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	o.reported = json.NewDecoder(bufio.NewReader(output))
	if err := o.command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.command.Process.Kill() })
	o.next(t)
	return o
}

func (o *owner) next(t *testing.T) owned {
	t.Helper()
	var reported owned
	if err := o.reported.Decode(&reported); err != nil {
		t.Fatalf("the owner says nothing: %v", err)
	}
	return reported
}

func (o *owner) end(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := o.command.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	_ = o.command.Wait()
	if status := o.command.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != signal {
		t.Errorf("the owner ended with %v, want the signal %v itself", o.command.ProcessState, signal)
	}
}

// left are the remaining files in the owner's temporary folder.
func (o *owner) left(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(o.folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// runs reports whether the process still runs; a zombie does not.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

func expectEnded(t *testing.T, pids []int) {
	t.Helper()
	if len(pids) < 5 {
		t.Fatalf("the fleet had processes %v, want etcd and all of a cluster with workloads", pids)
	}
	eventually(t, fmt.Sprintf("processes %v to end", pids), func(context.Context) (bool, error) {
		for _, pid := range pids {
			if runs(pid) {
				return false, fmt.Errorf("process %d runs", pid)
			}
		}
		return true, nil
	})
}

func TestKilledOwnerLeavesNoProcesses(t *testing.T) {
	o := startOwner(t)
	reported := o.next(t)
	o.end(t, syscall.SIGKILL)
	expectEnded(t, reported.Processes)

	if _, err := os.Stat(reported.Folder); err != nil {
		t.Fatalf("the folder should wait for the next start: %v", err)
	}
	sweep(filepath.Join(o.folder, "trellis-fleet-"))
	if left := o.left(t); len(left) > 0 {
		t.Errorf("the next start leaves %v of a killed owner", left)
	}
}

func TestInterruptedOwnerLeavesNothing(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			o := startOwner(t)
			reported := o.next(t)
			o.end(t, signal)
			expectEnded(t, reported.Processes)
			if left := o.left(t); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
	t.Run("while starting", func(t *testing.T) {
		o := startOwner(t)
		eventually(t, "the start to begin", func(context.Context) (bool, error) { return len(o.left(t)) > 0, nil })
		o.end(t, syscall.SIGINT)
		if left := o.left(t); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// TestSweepSparesTheLiving checks that other fleets' starts keep a fleet's folder while its owner lives.
func TestSweepSparesTheLiving(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	mine, err := claim("")
	if err != nil {
		t.Fatal(err)
	}
	other, err := claim("")
	if err != nil {
		t.Fatal(err)
	}
	defer other.release()
	if _, err := os.Stat(mine.path); err != nil {
		t.Errorf("another start removed a living fleet's folder: %v", err)
	}
	if _, err := claim(mine.path); err == nil {
		t.Error("a folder in use was given away")
	}
	mine.release()
	if _, err := os.Stat(mine.path); !os.IsNotExist(err) {
		t.Errorf("a released folder is still there: %v", err)
	}
}

// TestFailureShowsLog checks that the error of a program that ends has its log.
func TestFailureShowsLog(t *testing.T) {
	f := ForTest(t)
	process, err := f.run("kube-apiserver", "", "broken", "--etcd-servers", "http://127.0.0.1:1", "--no-such-flag")
	if err != nil {
		t.Fatal(err)
	}
	err = process.Await(t.Context(), "nothing", func(context.Context) error { return errNotYet })
	if err == nil || !strings.Contains(err.Error(), "unknown flag: --no-such-flag") {
		t.Errorf("the error is %v, want the end of the program's log in it", err)
	}
}

// TestTakenPort checks that a program that finds its port in use gets another.
func TestTakenPort(t *testing.T) {
	f := ForTest(t)
	cluster, err := f.newCluster(ClusterOptions{Name: "late"})
	if err != nil {
		t.Fatal(err)
	}
	listener, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var ports []int
	err = WithPort(t.Context(), func(ctx context.Context, port int) error {
		ports = append(ports, port)
		cluster.port = port
		if len(ports) == 1 { // another process was faster
			_, _ = fmt.Sscanf(listener.Addr().String(), "127.0.0.1:%d", &cluster.port)
		}
		return cluster.StartServer(ctx)
	})
	if err != nil || len(ports) != 2 {
		t.Errorf("attempts with ports %v, %v; want a second one that succeeds", ports, err)
	}
}
