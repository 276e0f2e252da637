package laws

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
)

// floors are the lowest versions of what the product is made of that have the fixes it needs. A module that is not
// required has no floor to keep.
var floors = map[string]string{
	"go":                                     "1.26.6",
	"helm.sh/helm/v3":                        "3.21.4",
	"github.com/go-git/go-git/v5":            "5.19.2",
	"github.com/go-git/go-billy/v5":          "5.9.0",
	"github.com/google/go-containerregistry": "0.21.9",
	"oras.land/oras-go/v2":                   "2.6.2",
	"golang.org/x/crypto":                    "0.52.0",
	"golang.org/x/net":                       "0.56.0",
	"golang.org/x/text":                      "0.39.0",
	"github.com/moby/spdystream":             "0.5.1",
	"google.golang.org/grpc":                 "1.82.1",
	"github.com/sigstore/sigstore-go":        "1.2.1",
}

// goMod is what `go mod edit -json` says.
type goMod struct {
	Go      string
	Require []struct{ Path, Version string }
	Replace []struct{ Old struct{ Path string } }
}

// versions are those that the module requires, by module.
func (m goMod) versions() map[string]string {
	found := map[string]string{}
	for _, required := range m.Require {
		found[required.Path] = required.Version
	}
	return found
}

func readGoMod(t *testing.T, folder string) goMod {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	command.Dir = filepath.Join(checkout(t), folder)
	text, err := command.Output()
	if err != nil {
		t.Fatalf("reading go.mod: %v", err)
	}
	var read goMod
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatalf("reading go.mod: %v", err)
	}
	return read
}

// tooOld lists what lies below its floor.
func tooOld(versions map[string]string) ([]string, error) {
	var found []string
	for name, text := range versions {
		floor, listed := floors[name]
		if !listed {
			continue
		}
		version, err := semver.NewVersion(strings.TrimSuffix(text, "+incompatible"))
		if err != nil {
			return nil, err
		}
		if version.LessThan(semver.MustParse(floor)) {
			found = append(found, name+" "+text+" is below its floor "+floor)
		}
	}
	return found, nil
}

func TestDependenciesKeepTheirFloors(t *testing.T) {
	ours, ofKinds := readGoMod(t, "."), readGoMod(t, kinds)
	for _, name := range []string{"helm.sh/helm/v3", "github.com/go-git/go-git/v5", "golang.org/x/crypto"} {
		if ours.versions()[name] == "" {
			t.Errorf("go.mod does not require %s: this test reads the wrong file", name)
		}
	}
	for _, versions := range []map[string]string{{"go": ours.Go}, ours.versions(), ofKinds.versions()} {
		found, err := tooOld(versions)
		if err != nil {
			t.Fatal(err)
		}
		for _, complaint := range found {
			t.Error(complaint)
		}
	}
	for _, replaced := range slices.Concat(ours.Replace, ofKinds.Replace) {
		if replaced.Old.Path != module+"/"+kinds {
			t.Errorf("go.mod replaces %s: whoever imports the module would not", replaced.Old.Path)
		}
	}
}

func TestToolchainKeepsItsFloor(t *testing.T) {
	found, err := tooOld(map[string]string{"go": strings.Fields(strings.TrimPrefix(runtime.Version(), "go"))[0]})
	if err != nil || len(found) > 0 {
		t.Errorf("built with %s: %v %v", runtime.Version(), found, err)
	}
}

func TestFloorsCatch(t *testing.T) {
	found, err := tooOld(map[string]string{
		"go": "1.26.5", "golang.org/x/net": "v0.55.9", "helm.sh/helm/v3": "v3.21.4", "example.com/x": "v0.0.1",
	})
	if err != nil || len(found) != 2 {
		t.Errorf("got %q, %v, expected complaints about go and x/net", found, err)
	}
}
