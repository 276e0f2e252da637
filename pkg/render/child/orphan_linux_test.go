package child_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/trellis-addons/trellis/pkg/render/child"
	"github.com/trellis-addons/trellis/test/rendering"
)

// orphanVariable makes a process of the test binary a parent that waits to be killed.
const orphanVariable = "TRELLIS_TEST_ORPHANS"

func init() { others = append(others, orphanMaker) }

// orphanMaker has children in every state: idle, ready, waiting in a rendering, and spinning.
func orphanMaker() {
	if os.Getenv(orphanVariable) == "" {
		return
	}
	pool := child.New(child.Options{Children: 4, Timeout: time.Hour, CPU: time.Hour})
	asked := input(folder())
	for _, name := range []string{"pid", "wait", "spin"} {
		asked.Addon, asked.Tenant = name, name
		if name == "pid" {
			_, _ = pool.Renderer(probe, child.AllFiles).Render(context.Background(), asked)
			continue
		}
		copied := asked
		go func() { _, _ = pool.Renderer(probe, child.AllFiles).Render(context.Background(), copied) }()
	}
	for len(childrenOf(os.Getpid())) < 4 { // idle, ready and two that work
		<-time.After(10 * time.Millisecond)
	}
	fmt.Println("ready")
	select {}
}

// childrenOf are the renderers among a process's children.
func childrenOf(parent int) []int {
	var found []int
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		arguments, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil || !strings.HasPrefix(string(arguments), "trellis-render-child\x00") {
			continue
		}
		state, _ := os.ReadFile(filepath.Join(folder, "stat"))
		_, fields, _ := strings.Cut(string(state), ") ")
		if list := strings.Fields(fields); len(list) > 1 && list[1] == strconv.Itoa(parent) {
			pid, _ := strconv.Atoi(filepath.Base(folder))
			found = append(found, pid)
		}
	}
	return found
}

// TestChildrenDieWithTheirParent kills a parent as the kernel does when memory runs out.
func TestChildrenDieWithTheirParent(t *testing.T) {
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), orphanVariable+"=1")
	output, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); line != "ready\n" {
		t.Fatalf("the parent says %q, %v", line, err)
	}
	children := childrenOf(parent.Process.Pid)
	if len(children) != 4 {
		t.Errorf("the parent has %d children, want 4", len(children))
	}
	handles := map[int]int{}
	for _, pid := range children {
		handle, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(handle)
		handles[pid] = handle
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	for pid, handle := range handles {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(handle), Events: unix.POLLIN}}, 60_000)
		if ready != 1 || err != nil {
			t.Errorf("child %d outlives its parent: %v", pid, err)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// TestNoneIsLeft: Close returns when all children have exited, also those that work.
func TestNoneIsLeft(t *testing.T) {
	before := len(childrenOf(os.Getpid()))
	pool := rendering.Pool(t, child.Options{Children: 3})
	pids(t, pool, "a", 1)
	failed := make(chan error)
	go func() {
		asked := input(folder())
		asked.Addon, asked.Tenant = "wait", "b"
		_, err := pool.Renderer(probe, child.AllFiles).Render(t.Context(), asked)
		failed <- err
	}()
	for len(childrenOf(os.Getpid())) < before+3 { // idle, working and ready
		<-time.After(10 * time.Millisecond)
	}
	pool.Close()
	if after := len(childrenOf(os.Getpid())); after != before {
		t.Errorf("%d children are left", after-before)
	}
	if err := <-failed; !errors.Is(err, child.ErrClosed) {
		t.Errorf("the rendering that went on got %v, want ErrClosed", err)
	}
}
