package child_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/trellis-addons/trellis/pkg/render/child"
	"github.com/trellis-addons/trellis/test/rendering"
)

func procFile(t *testing.T, pid, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("/proc", pid, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	number, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// TestTheChildHasNothing (AC03): A renderer's process has no environment, no open files, an empty folder, and limits.
// TestTheChildHasNothing inspects a child from outside: environment, descriptors, folder, limits.
func TestTheChildHasNothing(t *testing.T) {
	t.Setenv("TRELLIS_TEST_SECRET", "hunter2")
	inheritable, err := os.Create(filepath.Join(t.TempDir(), "inheritable"))
	if err != nil {
		t.Fatal(err)
	}
	defer inheritable.Close()
	inheritable.Fd() // makes the descriptor inheritable
	pool := rendering.Pool(t, child.Options{Memory: 256 << 20})
	pid := pids(t, pool, "cluster-a", 1)[0]

	if environment := procFile(t, pid, "environ"); environment != "" {
		t.Errorf("the child's environment is %q", environment)
	}
	if folder, err := os.Readlink(filepath.Join("/proc", pid, "cwd")); folder != "/" {
		t.Errorf("the child works in %q, %v", folder, err)
	}
	if group, err := syscall.Getpgid(atoi(t, pid)); strconv.Itoa(group) != pid {
		t.Errorf("the child is in process group %d, %v", group, err)
	}
	if score := procFile(t, pid, "oom_score_adj"); score != "1000\n" {
		t.Errorf("the child's oom_score_adj is %q", score)
	}
	descriptors, err := os.ReadDir(filepath.Join("/proc", pid, "fd"))
	if err != nil {
		t.Fatal(err)
	}
	for _, descriptor := range descriptors {
		target, _ := os.Readlink(filepath.Join("/proc", pid, "fd", descriptor.Name()))
		// The Go runtime opens the standard descriptors if they are closed, its poller, and the limit of its
		// processors.
		if !regexp.MustCompile(`^(pipe:|/dev/null$|anon_inode:|/sys/fs/cgroup/.*cpu)`).MatchString(target) {
			t.Errorf("the child has descriptor %s: %s", descriptor.Name(), target)
		}
	}
	limits := procFile(t, pid, "limits")
	for name, want := range map[string]string{
		"Max file size": "0", "Max core file size": "0", "Max open files": "16",
	} {
		if !regexp.MustCompile(name + ` +` + want + ` +` + want + ` `).MatchString(limits) {
			t.Errorf("%s is not %s:\n%s", name, want, limits)
		}
	}
	data := regexp.MustCompile(`Max data size +(\d+) `).FindStringSubmatch(limits)
	reserved := regexp.MustCompile(`VmData:\s+(\d+) kB`).FindStringSubmatch(procFile(t, pid, "status"))
	if data == nil || reserved == nil || atoi(t, data[1]) > atoi(t, reserved[1])<<10+600<<20 {
		t.Errorf("a child with 256 MiB may have data of %q, and has %q KiB:\n%s", data, reserved, limits)
	}
	if regexp.MustCompile(`Max cpu time +unlimited`).MatchString(limits) {
		t.Error("the child's processor time is not limited")
	}
	if arguments := procFile(t, pid, "cmdline"); strings.Contains(arguments, "cluster") {
		t.Errorf("the child's arguments are %q", arguments)
	}
}

// TestTheChildReachesNothing (AC03): A renderer's process opens no file, no socket and no process.
// TestTheChildReachesNothing runs probes inside a child.
func TestTheChildReachesNothing(t *testing.T) {
	t.Setenv("TRELLIS_TEST_SECRET", "hunter2")
	pool := rendering.Pool(t, child.Options{})
	asked := input(folder())
	asked.Addon = "surroundings"
	result, err := pool.Renderer(probe, child.AllFiles).Render(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	found := result.Objects[0].GetAnnotations()
	for what, want := range map[string]string{
		"environment": "", "read": "refused", "write": "refused", "list": "refused", "socket": "refused",
		"listen": "refused", "program": "refused", "signal": "refused",
	} {
		if found[what] != want {
			t.Errorf("%s: %q, want %q", what, found[what], want)
		}
	}
}
