package upgrade

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/pod"
)

const (
	// older is a commit that knows neither AddonSets, nor tasks of the charts, nor several fields, and its records are of today's form.
	older = "c97aa55ec160ae503d78f072f3279e4f379a7d48"
	// alike is a commit that writes records, hashes and statuses as this one does. Choose a later one with each change of them.
	alike = "04112f8abdcdf2c06ca0e0ef74bdd58416b85e01"
)

var previous = flag.String("former", alike, "the commit whose release this one takes the place of; managers beside each other are always tried with "+older)

// release is a checkout with its programs.
type release struct {
	name string
	// charts, standalone and rights are folders: those of trellis-master and trellis-seed, of the kinds that stand for KKP's, and of what the
	// kubeconfig of a Seed may do.
	charts, standalone, rights string
	// programs is the folder of both.
	programs string
}

func (r release) String() string { return r.name }

// program is the path of one by its name.
func (r release) program(name string) string { return filepath.Join(r.programs, name) }

func newRelease(name, root, programs string) release {
	return release{
		name: name, charts: filepath.Join(root, "charts"), standalone: filepath.Join(root, "deploy", "standalone", "crds"),
		rights: filepath.Join(root, "deploy", "seed", "rights.yaml"), programs: programs,
	}
}

// builds are the releases of this run by their commit; "" is this checkout.
var builds = struct {
	sync.Mutex
	made map[string]release
}{made: map[string]release{}}

// both gives the release of a commit, and this one.
func both(t *testing.T, commit string) (before, now release) {
	t.Helper()
	return releaseOf(t, commit), thisRelease(t)
}

// thisRelease is this checkout's, with what pods take.
func thisRelease(t *testing.T) release {
	t.Helper()
	return releaseOf(t, "")
}

// releaseOf is that of a commit; "": of this checkout.
func releaseOf(t *testing.T, commit string) release {
	t.Helper()
	builds.Lock()
	defer builds.Unlock()
	if made, isBuilt := builds.made[commit]; isBuilt {
		return made
	}
	made, err := buildRelease(commit)
	if err != nil {
		t.Fatal(err)
	}
	builds.made[commit] = made
	return made
}

func buildRelease(commit string) (release, error) {
	root, err := binaries.Root()
	if err != nil {
		return release{}, err
	}
	if commit != "" {
		return buildPrevious(root, commit)
	}
	now := newRelease("this release", root, filepath.Join(folder, "now"))
	return now, binaries.BuildOwn(context.Background(), root, now.programs, "./cmd/...", pod.EnterPackage)
}

// buildPrevious takes the former release out of the history of the repository, and builds it, unless the cache has it.
func buildPrevious(root, commit string) (release, error) {
	found, err := git(root, "rev-parse", "--verify", commit+"^{commit}")
	if err != nil {
		return release{}, fmt.Errorf("there is no commit %s, maybe since the clone is shallow: run git fetch --unshallow, or name another "+
			"one by -former: %w", commit, err)
	}
	cache, err := binaries.Cache()
	if err != nil {
		return release{}, err
	}
	name := strings.TrimSpace(string(found))
	kept := filepath.Join(cache, "releases", name)
	made := newRelease("release "+name[:7], kept, filepath.Join(kept, "bin"))
	if _, err := os.Stat(kept); err == nil {
		return made, nil
	}
	archive, err := git(root, "archive", name)
	if err != nil {
		return release{}, err
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		return release{}, err
	}
	begun, err := os.MkdirTemp(filepath.Dir(kept), name+"-") // whole, or not there
	if err != nil {
		return release{}, err
	}
	defer os.RemoveAll(begun)
	unpack := exec.Command("tar", "-x", "-C", begun)
	unpack.Stdin = bytes.NewReader(archive)
	if output, err := unpack.CombinedOutput(); err != nil {
		return release{}, fmt.Errorf("unpacking commit %s: %w\n%s", name, err, output)
	}
	if err := binaries.BuildOwn(context.Background(), begun, filepath.Join(begun, "bin"), "./cmd/..."); err != nil {
		return release{}, err
	}
	if err := os.Rename(begun, kept); err != nil && !errors.Is(err, fs.ErrExist) { // another run was faster
		return release{}, err
	}
	return made, nil
}

func git(root string, arguments ...string) ([]byte, error) {
	command := exec.Command("git", append([]string{"-C", root}, arguments...)...)
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w", strings.Join(arguments, " "), err)
	}
	return output, nil
}

// crds is the folder of a chart's.
func (r release) crds(chart string) string { return filepath.Join(r.charts, chart, "crds") }
