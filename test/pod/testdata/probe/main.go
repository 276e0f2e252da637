// Command probe tells what a container has, and with TRY among its variables tries what it may, then follows the file that its last argument
// names and tells each new content of it.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

var statusLine = regexp.MustCompile(`(?m)^(Uid|Gid|NoNewPrivs|Seccomp|CapPrm|CapEff|CapInh|CapAmb|CapBnd):\s+(\S+)`)

// init keeps main on the first thread, which alone has the signal that comes when the parent ends.
func init() { runtime.LockOSThread() }

func main() {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	for _, line := range statusLine.FindAllStringSubmatch(string(status), -1) {
		fmt.Println(line[1], line[2])
	}
	fmt.Println("arguments", os.Args)
	fmt.Println("environment", os.Environ())
	if os.Getenv("TRY") != "" {
		try()
	}
	token, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/token")
	fmt.Println("token", len(strings.Split(string(token), ".")), err)
	followed := os.Args[len(os.Args)-1]
	for last := ""; ; time.Sleep(10 * time.Millisecond) {
		content, err := os.ReadFile(followed)
		if now := fmt.Sprint(string(content), " ", err); now != last {
			fmt.Println("followed", now)
			last = now
		}
	}
}

// try what a program in a container may not: it is let alone where it may.
func try() {
	for _, folder := range []string{"/", "/dev"} {
		entries, err := os.ReadDir(folder)
		var names []string
		for _, entry := range entries {
			names = append(names, entry.Name())
		}
		fmt.Println("folder", folder, names, err)
	}
	writes := []string{"/written", "/dev/written", "/probe", "/proc/sys/kernel/domainname"}
	for _, argument := range os.Args[1:] {
		writes = append(writes, filepath.Join(filepath.Dir(argument), "written"))
	}
	for _, path := range writes {
		fmt.Println("write", path, reason(os.WriteFile(path, []byte("x"), 0o600)))
	}
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, entry := range entries {
		if target, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil && strings.HasPrefix(target, "/") {
			fmt.Println("open", entry.Name())
		}
	}
	var ending int32
	err := unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&ending)), 0, 0, 0)
	fmt.Println("ends with its parent by signal", ending, err)
	fmt.Println("null", reason(os.WriteFile("/dev/null", []byte("x"), 0o600)))
	for what, tried := range map[string]error{
		"mount": unix.Mount("", "/", "", unix.MS_PRIVATE, ""), "namespace": unix.Unshare(unix.CLONE_NEWUSER), "chroot": unix.Chroot("/dev"),
	} {
		fmt.Println(what, reason(tried))
	}
}

// reason is an error without the call that met it.
func reason(err error) error {
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err
}
