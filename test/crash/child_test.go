package crash_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/cluster"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/fairqueue"
	"github.com/trellis-addons/trellis/pkg/fence"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
	"github.com/trellis-addons/trellis/pkg/fetch/image"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
	"github.com/trellis-addons/trellis/pkg/mergedcatalogue"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/render/chart"
	"github.com/trellis-addons/trellis/pkg/render/gotemplate"
	"github.com/trellis-addons/trellis/pkg/render/images"
	"github.com/trellis-addons/trellis/pkg/render/kept"
	"github.com/trellis-addons/trellis/pkg/revision"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/test/fleet"
)

// childVariable names the file with the assignment of a process of this binary that is to be a controller.
const childVariable = "TRELLIS_TEST_CRASH_CHILD"

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
}

// startController starts a process with the assignment; it ends with the test at the latest.
func startController(t testing.TB, name string, work assignment) *fleet.Process {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	work.Folder = t.TempDir()
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
	made, err := newController(work, func(*addoninstallation.Dependencies) {})
	if err != nil {
		return err
	}
	return made.Start(context.Background())
}

// newController is a manager with the controller, whose dependencies may be adjusted.
func newController(work assignment, adjust func(*addoninstallation.Dependencies)) (manager.Manager, error) {
	reach := &rest.Config{
		Host: work.Server, BearerToken: work.Token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: work.CA},
	}
	options := manager.Options{
		Scheme: wiring.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&kubermaticv1.AddonCatalogue{}:    {Namespaces: map[string]cache.Config{work.Catalogue: {}}},
			&kubermaticv1.AddonInstallation{}: {Label: labels.SelectorFromSet(work.Installations)},
		}},
	}
	var limit *fence.Fence
	if work.Lease != "" {
		var err error
		if limit, err = electionTimes.Join(reach, work.Catalogue, work.Lease, &options); err != nil {
			return nil, err
		}
	}
	made, err := ctrl.NewManager(reach, options)
	if err != nil {
		return nil, err
	}
	if limit != nil {
		if err := made.Add(limit); err != nil {
			return nil, err
		}
	}
	if err := cluster.IndexNamespaceName(context.Background(), made.GetFieldIndexer()); err != nil {
		return nil, err
	}
	dependencies, err := dependenciesOf(made, work)
	if err != nil {
		return nil, err
	}
	if connections, ok := dependencies.Connections.(*cluster.Connections); ok && limit != nil {
		connections.Fence = limit
	}
	adjust(&dependencies)
	return made, addoninstallation.New(dependencies).SetupWithManager(made)
}

// dependenciesOf are those of the seed's manager, but that rendering happens in this process: that of a child ends with its
// parent, and changes nothing that lasts.
func dependenciesOf(made manager.Manager, work assignment) (addoninstallation.Dependencies, error) {
	var none addoninstallation.Dependencies
	marked, err := cache.New(made.GetConfig(), cache.Options{
		Scheme: made.GetScheme(), DefaultNamespaces: map[string]cache.Config{work.Catalogue: {}},
	})
	if err != nil {
		return none, err
	}
	network := outbound.New(outbound.Options{AllowCIDRs: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	kinds := fetch.NewKinds(fetch.Serve(git.New(network)), fetch.Serve(image.New(network)), fetch.Serve(helmrepo.New(network)))
	content, err := store.New(store.Options{Folder: filepath.Join(work.Folder, "store"), Kinds: kinds, Interval: time.Minute})
	if err != nil {
		return none, err
	}
	connections := cluster.NewConnections(made.GetAPIReader())
	kubeconfigs, err := watchKubeconfigs(made, connections)
	if err != nil {
		return none, err
	}
	platform := cluster.NewPlatform(made.GetCache(), made.GetAPIReader(), made.GetRESTMapper(), work.Catalogue, nil)
	for _, runnable := range []manager.Runnable{marked, kubeconfigs, connections, content, platform} {
		if err := made.Add(runnable); err != nil {
			return none, err
		}
	}
	templates := gotemplate.New()
	renders := kept.New(kept.Options{
		Methods: map[string]render.Renderer{
			string(kubermaticv1.MethodGoTemplate): templates, string(kubermaticv1.MethodHelm): chart.New(),
		},
		Values: templates,
	})
	saving := addoninstallation.SavingClient(made.GetClient(), made.GetAPIReader())
	return addoninstallation.Dependencies{
		Client: made.GetClient(), Marks: mergedcatalogue.New(logr.Discard()), Marked: marked, Direct: made.GetAPIReader(), Recorder: made.GetEventRecorder("addoninstallation"),
		Finder:      cluster.NewKKPFinder(made.GetClient(), made.GetAPIReader(), made.GetClient()),
		Connections: connections, Store: content, SourceKinds: kinds, Renders: renders, Values: renders,
		Platform: platform, ClusterSecrets: cluster.NewSecrets(made.GetAPIReader()), Images: images.Rules{},
		Records: revision.NewRecords(saving, saving, revision.NewSeal([]byte("key"))), InputsKey: []byte("key"),
		Options: addoninstallation.Options{CatalogueNamespace: work.Catalogue, DriftInterval: cmp.Or(work.DriftInterval, 10*time.Minute), Passes: fairqueue.Limits{Workers: 10}},
	}, nil
}

// watchKubeconfigs has the connections read a kubeconfig again when it changes, as the seed's manager does.
func watchKubeconfigs(made manager.Manager, connections *cluster.Connections) (cache.Cache, error) {
	watched, err := cache.New(made.GetConfig(), cache.Options{
		Scheme: made.GetScheme(), ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {
			Field: fields.OneTermEqualSelector("metadata.name", kubeconfigSecret),
		}},
	})
	if err != nil {
		return nil, err
	}
	informer, err := watched.GetInformer(context.Background(), &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return nil, err
	}
	refresh := func(object any) {
		if secret, isSecret := object.(*corev1.Secret); isSecret {
			connections.Refresh(target.Ref{Namespace: secret.Namespace})
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: refresh, UpdateFunc: func(_, object any) { refresh(object) }, DeleteFunc: refresh,
	})
	return watched, err
}
