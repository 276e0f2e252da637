package standins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/fence"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/gate"
	"github.com/trellis-addons/trellis/test/world"
)

// childVariable names the file with the assignment of a process of a test binary that is to be a set controller.
const childVariable = "TRELLIS_TEST_SETS_CHILD"

// linesShown are those of a set controller's log, after a test that failed.
const linesShown = 20

// Assignment is what a set controller in a process of its own is to do.
type Assignment struct {
	// Server, CA and Token lead to the seed; Start fills them in.
	Server, Token string
	CA            []byte
	// Catalogue is the namespace of merged catalogues and copies.
	Catalogue string
	// Platform is the namespace with the key that a real distributor brings; "" where Copies plays it, which knows none.
	Platform string
	// Clusters are labels of those that it sees; none is all.
	Clusters map[string]string
	// Lease, in the namespace of catalogues, is what the process must hold to work; "": it need not.
	Lease string
	// Upgrades has it serve Cluster API's Clusters, with all controllers that their upgrades wait for; nil: KKP's, with that of sets alone.
	Upgrades *Upgrades
}

// ServeIfAsked makes this process a set controller if Start started it as one, until it is killed; otherwise it does nothing. TestMain
// calls it first.
func ServeIfAsked() {
	path := os.Getenv(childVariable)
	if path == "" {
		return
	}
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	if err := serve(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func serve(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var work Assignment
	if err := json.Unmarshal(content, &work); err != nil {
		return err
	}
	ctx := context.Background()
	reach := &rest.Config{Host: work.Server, BearerToken: work.Token, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: work.CA}}
	var limit *fence.Fence
	var refused error
	made, err := world.NewSeedOf(ctx, reach, work.Catalogue, work.kinds(), func(options *manager.Options) {
		if work.Lease != "" {
			limit, refused = world.Election.Join(reach, work.Catalogue, work.Lease, options)
		}
		if work.Clusters != nil {
			options.Cache.ByObject[&kkpv1.Cluster{}] = cache.ByObject{Label: labels.SelectorFromSet(work.Clusters)}
		}
		if work.Platform != "" {
			options.Cache.ByObject[&corev1.Secret{}] = cache.ByObject{
				Field:      fields.OneTermEqualSelector("metadata.name", v1.SecretCatalogueKey),
				Namespaces: map[string]cache.Config{work.Platform: {}},
			}
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
	if err := setUp(ctx, made, work); err != nil {
		return err
	}
	return made.Start(ctx)
}

// Start starts a set controller in a process of its own, which the gate knows by that name. It ends with the test at the latest.
func Start(t testing.TB, through *gate.Gate, who string, work Assignment) *fleet.Process {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	config, folder := through.Config(who), t.TempDir()
	work.Server, work.CA, work.Token = config.Host, config.CAData, config.BearerToken
	content, err := json.Marshal(work)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "assignment.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	reported := filepath.Join(folder, "log")
	process, err := fleet.Shared().Run(fleet.Command{
		Name: who, Path: binary, Environment: []string{childVariable + "=" + path}, Home: folder, Log: reported,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Kill()
		if t.Failed() {
			t.Logf("the end of the log of %s:\n%s", who, fleet.Tail(reported, linesShown))
		}
	})
	return process
}
