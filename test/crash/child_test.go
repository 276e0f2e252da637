package crash_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/cmd/wiring/contents"
	"github.com/trellis-addons/trellis/pkg/base/fairqueue"
	"github.com/trellis-addons/trellis/pkg/base/fence"
	"github.com/trellis-addons/trellis/pkg/clusters/access"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/fetch/fetchtest"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/pkg/fleet/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/chart"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
	"github.com/trellis-addons/trellis/pkg/render/kept"
	"github.com/trellis-addons/trellis/pkg/values/images"
	"github.com/trellis-addons/trellis/test/disk"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/world"
)

// childVariable names the file with the assignment of a process of this binary that is to be a controller.
const childVariable = "TRELLIS_TEST_CRASH_CHILD"

// inputsKey keys the digests of all controllers.
const inputsKey = "key"

// Labels of installations: a controller sees those of its assignment only, so that many can work at a time.
const (
	labelStory = "crash.example/story"
	labelCase  = "crash.example/case"
)

// assignment is what a controller process is to do.
type assignment struct {
	// Server, CA and Token lead to the seed.
	Server, Token string
	CA            []byte
	// Catalogue is the namespace of merged catalogues; Folder, where content is kept.
	Catalogue, Folder string
	// Installations selects those to work on.
	Installations map[string]string
	// Lease, in the namespace of catalogues, is what the process must hold to work; "": it need not.
	Lease string
	// DriftInterval is ten minutes where it is 0.
	DriftInterval time.Duration
	// PullSecret is copied to user clusters, and a second after it went its copies go; "": none is.
	PullSecret string
	// Hub is where agents reach the seed; the zero one: none gets a credential. For credentials it is later by Later.
	Hub   access.Hub
	Later time.Duration
}

// startController starts a process with the assignment; it ends with the test at the latest.
func startController(t testing.TB, name string, work assignment) *fleet.Process {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	work.Folder = disk.TempDir(t)
	content, err := json.Marshal(work)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(work.Folder, "assignment.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	process, err := fleet.Shared().Run(fleet.Command{
		Name: name, Path: binary, Environment: []string{childVariable + "=" + path}, Home: work.Folder,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	return process
}

// runChild is the controller, until the process is killed.
func runChild(path string) {
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	if err := serve(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var work assignment
	if err := json.Unmarshal(content, &work); err != nil {
		return err
	}
	ctx, reach := context.Background(), work.reach()
	var limit *fence.Fence
	var refused error
	made, err := world.NewSeed(ctx, reach, work.Catalogue, work.choose, func(options *manager.Options) {
		if work.Lease != "" {
			limit, refused = world.Election.Join(reach, work.Catalogue, work.Lease, options)
		}
	})
	if err := errors.Join(refused, err); err != nil {
		return err
	}
	if limit != nil {
		if err := made.Add(limit); err != nil {
			return err
		}
	}
	dependencies, err := dependenciesOf(ctx, made, work, limit)
	if err != nil {
		return err
	}
	if err := addoninstallation.New(dependencies).SetupWithManager(made); err != nil {
		return err
	}
	return made.Start(ctx)
}

// reach is how the seed is reached.
func (a assignment) reach() *rest.Config {
	return &rest.Config{Host: a.Server, BearerToken: a.Token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: a.CA}}
}

// choose has a manager see the installations to work on.
func (a assignment) choose(options *manager.Options) {
	options.Cache.ByObject[&kubermaticv1.AddonInstallation{}] = cache.ByObject{Label: labels.SelectorFromSet(a.Installations)}
}

// dependenciesOf are those of the seed's manager, but that rendering happens in this process: that of a child ends with its
// parent, and changes nothing that lasts.
func dependenciesOf(
	ctx context.Context, made wiring.Seed, work assignment, limit *fence.Fence,
) (addoninstallation.Dependencies, error) {
	kinds := contents.Kinds(outbound.New(outbound.Options{AllowCIDRs: fetchtest.Loopback}))
	content, err := store.New(store.Options{Folder: filepath.Join(work.Folder, "store"), Kinds: kinds, Interval: time.Minute})
	if err != nil {
		return addoninstallation.Dependencies{}, err
	}
	templates, key := gotemplate.New(), []byte(inputsKey)
	renders := kept.New(kept.Options{
		Methods: map[string]render.Renderer{
			string(kubermaticv1.MethodGoTemplate): templates, string(kubermaticv1.MethodHelm): chart.New(),
		},
		Values: templates,
	})
	parts := wiring.InstallationParts{
		PullSecret: work.PullSecret,
		Namespace:  work.Catalogue, Fence: limit, SourceKinds: kinds, Store: content, Renders: renders, Images: images.Rules{},
		Records: wiring.Records(made, key), InputsKey: key,
		Options: addoninstallation.Options{
			CatalogueNamespace: work.Catalogue, DriftInterval: cmp.Or(work.DriftInterval, 10*time.Minute),
			Limits: fairqueue.Limits{Workers: 10},
		},
	}
	if work.Hub.Server != "" {
		parts.Agents = &access.Options{Hub: func() (access.Hub, error) { return work.Hub, nil }}
	}
	dependencies, err := wiring.AddonInstallation(ctx, made, mergedcatalogue.New(logr.Discard()), parts)
	if dependencies.Access != nil {
		dependencies.Access = later{dependencies.Access, work.Later}
	}
	if work.PullSecret != "" {
		dependencies.PullSecret.Away = time.Second
	}
	return dependencies, err
}
