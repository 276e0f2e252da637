package child_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/trellis-addons/trellis/pkg/render"
)

// says is a result with one object of a name, with annotations.
func says(name string, annotations map[string]string) (render.Result, error) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	object.SetName(name)
	object.SetAnnotations(annotations)
	return render.Result{Objects: []*unstructured.Unstructured{object}}, nil
}

// hoard keeps the memory that a probe allocates.
var hoard [][]byte

// probes by the name of the add-on.
var probes = map[string]func(context.Context, render.Input) (render.Result, error){
	"pid": func(context.Context, render.Input) (render.Result, error) {
		return says(strconv.Itoa(os.Getpid()), nil)
	},
	"files": func(_ context.Context, input render.Input) (render.Result, error) {
		var found []string
		err := fs.WalkDir(input.Content, ".", func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				found = append(found, path)
			}
			return err
		})
		if err != nil {
			return render.Result{}, err
		}
		return says("files", map[string]string{"files": strings.Join(found, " ")})
	},
	"surroundings": func(context.Context, render.Input) (render.Result, error) { return surroundings() },
	"hoard": func(context.Context, render.Input) (render.Result, error) {
		for {
			page := make([]byte, 1<<20)
			for at := 0; at < len(page); at += 4096 {
				page[at] = 1
			}
			hoard = append(hoard, page)
		}
	},
	"spin": func(context.Context, render.Input) (render.Result, error) {
		for turns := 0; ; turns++ { // a loop that no compiler removes
			runtime.KeepAlive(turns)
		}
	},
	"wait": func(context.Context, render.Input) (render.Result, error) { select {} },
	"deep stack": func(context.Context, render.Input) (render.Result, error) {
		return says(strconv.Itoa(deeper(0)), nil)
	},
	"exit": func(context.Context, render.Input) (render.Result, error) {
		os.Exit(0)
		return render.Result{}, nil
	},
	"all at once": func(context.Context, render.Input) (render.Result, error) {
		hoard = append(hoard, make([]byte, 4<<30))
		return says("all at once", nil)
	},
	"noise": func(context.Context, render.Input) (render.Result, error) {
		_, err := os.NewFile(4, "answers").WriteString("Z nothing of ours, and quite a lot of it")
		return render.Result{}, errors.Join(err, errors.New("noise"))
	},
	"flood": func(context.Context, render.Input) (render.Result, error) {
		answers, zeros := os.NewFile(4, "answers"), make([]byte, 1<<20)
		for {
			// It sends objects of a MiB each, without end.
			if _, err := answers.Write(append([]byte{'O', 0, 0x10, 0, 0}, zeros...)); err != nil {
				return render.Result{}, err
			}
		}
	},
	"secret failure": func(_ context.Context, input render.Input) (render.Result, error) {
		return render.Result{}, errors.New(strings.Repeat("\x1b[31m long\n", 1<<20) + input.Values["b"].(string))
	},
	"secret": func(_ context.Context, input render.Input) (render.Result, error) {
		return render.Result{}, errors.New("the value is " + input.Values["b"].(string) + "\x1b[31m\n")
	},
}

func deeper(level int) int {
	if level < 0 {
		return 0
	}
	return deeper(level+1) + 1
}

// surroundings tries to reach all that a child must not reach.
func surroundings() (render.Result, error) {
	found := map[string]string{
		"environment": strings.Join(os.Environ(), " "),
	}
	note := func(what string, err error) {
		found[what] = "allowed"
		if err != nil {
			found[what] = "refused"
		}
	}
	_, err := os.ReadFile("/etc/hostname")
	note("read", err)
	note("write", os.WriteFile("/tmp/trellis-child-was-here", []byte("x"), 0o600))
	_, err = os.ReadDir(".")
	note("list", err)
	_, err = net.Dial("udp", "127.0.0.1:53")
	note("socket", err)
	_, err = net.Listen("tcp", "127.0.0.1:0")
	note("listen", err)
	note("program", exec.Command("/proc/self/exe").Run())
	note("signal", syscall.Kill(os.Getppid(), 0))
	return says("surroundings", found)
}
