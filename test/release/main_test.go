package release

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/long"
	"github.com/trellis-addons/trellis/test/pod"
)

// insideVariable is set in the process that has a network of its own: to the folder of what was built.
const insideVariable = "TRELLIS_TEST_RELEASE"

// asked is the version of the release that is made; that of a checkout with changes has more to it.
const asked = "0.0.1-check.1"

// The API servers, which have nothing of Trellis.
const masterName, seedName, userName = "master", "seed", "user"

func TestMain(m *testing.M) {
	if long.Skips() {
		os.Exit(m.Run())
	}
	log.SetLogger(logr.Discard()) // the clients' library warns at length when nobody has said where to log
	if os.Getenv(insideVariable) == "" {
		os.Exit(outside())
	}
	if err := raiseLoopback(); err != nil {
		fmt.Fprintln(os.Stderr, "raising the loopback interface:", err)
		os.Exit(1)
	}
	fleet.Main(m, // no pool is in this network
		fleet.ClusterOptions{Name: masterName, Controllers: true},
		fleet.ClusterOptions{Name: seedName, Controllers: true},
		fleet.ClusterOptions{Name: userName, Workloads: true})
}

// outside builds what takes the module cache's network, and runs this program again in a network of its own.
func outside() int {
	folder, err := os.MkdirTemp("", "trellis-release-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	if err := build(folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	again := exec.CommandContext(ctx, "/proc/self/exe", os.Args[1:]...)
	again.Cancel, again.WaitDelay = func() error { return again.Process.Signal(syscall.SIGTERM) }, time.Minute // it cleans up
	again.Env, again.Stdout, again.Stderr = append(os.Environ(), insideVariable+"="+folder), os.Stdout, os.Stderr
	again.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	runtime.LockOSThread() // who dies with the thread that started it
	err = again.Run()
	if exit := (&exec.ExitError{}); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "starting in a network of its own:", err)
		return 1
	}
	return 0
}

// build writes the release of this checkout for this machine into folder/VERSION, and the program that pods take into folder/bin.
func build(folder string) error {
	root, err := binaries.Root()
	if err != nil {
		return err
	}
	command := exec.CommandContext(context.Background(), "go", "run", "./hack/release", "-out", folder, "-version", asked,
		"-platforms", "linux/"+runtime.GOARCH)
	command.Dir = root
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("making a release: %w\n%s", err, output)
	}
	return binaries.BuildOwn(context.Background(), root, filepath.Join(folder, "bin"), pod.EnterPackage)
}

// raiseLoopback has the one interface of a new network work.
func raiseLoopback() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(socket, unix.SIOCGIFFLAGS, request); err != nil {
		return err
	}
	request.SetUint16(request.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}
