//go:build linux && (amd64 || arm64)

package child_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/trellis-addons/trellis/pkg/render/child"
	"github.com/trellis-addons/trellis/test/pod/entry"
	"github.com/trellis-addons/trellis/test/rendering"
)

// podVariable says which process of TestAPodIsEnough this one is: "node" creates the pod's root as read-only;
// "container" is another user without rights, and gives up all ways to get some; "manager" renders.
const podVariable = "TRELLIS_TEST_POD"

// podUser is that of the charts' pods.
const podUser = 65532

func init() { others = append(others, podProcess) }

func podProcess() {
	steps := map[string]func() error{"node": podNode, "container": podContainer, "manager": podManager}
	step, is := steps[os.Getenv(podVariable)]
	if !is {
		return
	}
	if err := step(); err != nil {
		fmt.Println(os.Getenv(podVariable)+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// as starts this program again, in separate namespaces, where the user who runs the test has another ID.
func as(user int, step string, namespaces uintptr) *exec.Cmd {
	command := exec.CommandContext(context.Background(), "/proc/self/exe")
	command.Env = []string{podVariable + "=" + step}
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | namespaces,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	return command
}

func podNode() error {
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("making all mounts read-only: %w", err)
	}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/proc", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("making /proc writable again, as it is in pods: %w", err)
	}
	output, err := as(podUser, "container", 0).CombinedOutput()
	fmt.Print(string(output))
	return err
}

func podContainer() error {
	runtime.LockOSThread() // the following settings are the thread's, and the next program's
	if err := entry.Confine(); err != nil {
		return err
	}
	return unix.Exec("/proc/self/exe", []string{"manager"}, []string{podVariable + "=manager"})
}

var statusLine = regexp.MustCompile(`(?m)^(Uid|NoNewPrivs|Seccomp|Seccomp_filters|CapPrm|CapEff|CapInh|CapAmb):\s+(\S+)`)

// podManager reports its rights, and renders by both methods.
func podManager() error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for _, line := range statusLine.FindAllStringSubmatch(string(status), -1) {
		fmt.Println(line[1], line[2])
	}
	for what, tried := range map[string]error{
		"write": os.WriteFile("/tmp/written", nil, 0o600), "mount": unix.Mount("", "/", "", unix.MS_PRIVATE, ""), "namespace": unix.Unshare(unix.CLONE_NEWUSER),
	} {
		fmt.Println(what, tried)
	}
	pool := child.New(child.Options{})
	defer pool.Close()
	for method, content := range map[string]map[string]string{
		rendering.GoTemplate: {"a.yaml": configMap + "rendered"},
		rendering.Helm:       {"Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.2.3\n", "templates/a.yaml": configMap + "rendered"},
	} {
		var pairs []string
		for name, text := range content {
			pairs = append(pairs, name, text)
		}
		result, err := pool.Renderer(method, child.AllFiles).Render(context.Background(), input(folder(pairs...)))
		if err != nil {
			return fmt.Errorf("rendering by %s: %w", method, err)
		}
		fmt.Println(method, result.Objects[0].GetName())
	}
	asked := input(folder())
	asked.Addon = "surroundings"
	result, err := pool.Renderer(probe, child.AllFiles).Render(context.Background(), asked)
	if err != nil {
		return fmt.Errorf("probing: %w", err)
	}
	for _, what := range []string{"program", "read", "socket"} {
		fmt.Println(what, result.Objects[0].GetAnnotations()[what])
	}
	return nil
}

// TestAPodIsEnough renders as the charts' pods do: as user 65532 without a capability and without a way to get one,
// on a read-only root, under a filter of system calls like RuntimeDefault of container runtimes. It turns red when a
// renderer can't start, can't confine itself or can't compute there.
func TestAPodIsEnough(t *testing.T) {
	output, err := as(0, "node", syscall.CLONE_NEWNS).CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, output)
	}
	for _, line := range []string{
		"Uid 65532", "NoNewPrivs 1", "Seccomp 2", "CapPrm 0000000000000000", "CapEff 0000000000000000", "CapInh 0000000000000000",
		"CapAmb 0000000000000000", "write open /tmp/written: read-only file system", "mount operation not permitted",
		"namespace operation not permitted", "go-template rendered", "helm rendered", "program refused", "read refused", "socket refused",
	} {
		if !strings.Contains(string(output), line+"\n") {
			t.Errorf("it does not say %q:\n%s", line, output)
		}
	}
	if _, err := os.Stat(filepath.Join(os.TempDir(), "written")); err == nil {
		t.Error("it wrote a file")
	}
}
