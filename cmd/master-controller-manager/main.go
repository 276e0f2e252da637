// Command master-controller-manager runs on the master: it merges all catalogues and pushes the
// result to every seed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/trellis-addons/trellis/cmd/internal/manager"
	"github.com/trellis-addons/trellis/cmd/internal/sources"
	"github.com/trellis-addons/trellis/cmd/wiring"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/fleet"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/report"
	"github.com/trellis-addons/trellis/pkg/controllers/gitcatalogue"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/store"
)

// lease is the lease of the leader election.
const lease = "trellis-master.addons.kubermatic.k8c.io"

func main() {
	var flags manager.Flags
	flags.Register(flag.CommandLine)
	var fetching sources.Flags
	fetching.Register(flag.CommandLine, "trellis-catalogues", "1Gi")
	kkpVersion := flag.String("kkp-version", "",
		"the KKP version that constraints are compared with if no Seed reports one; only with --standalone")
	if code, goesOn := manager.Parse(flag.CommandLine, os.Args[1:], os.Stdout, os.Stderr); !goesOn {
		os.Exit(code)
	}
	if flags.PrintVersion(os.Stdout, "master-controller-manager") {
		return
	}
	logger := flags.Logger()
	program := manager.Program{Chart: "trellis-master", Lease: lease}
	if code, asked := flags.Task(context.Background(), program, os.Stdout, os.Stderr); asked {
		os.Exit(code)
	}
	flags.LimitMemory(0)
	err := checkVersion(*kkpVersion, flags.Standalone)
	if err == nil {
		err = run(flags, &fetching, *kkpVersion)
	}
	if err != nil {
		logger.Error(manager.Explain(err), "master-controller-manager ends")
		os.Exit(1)
	}
}

// checkVersion refuses a version of KKP that can't be read, or is not the platform's.
func checkVersion(version string, isStandalone bool) error {
	if version == "" {
		return nil
	}
	if !isStandalone {
		return errors.New("flag --kkp-version is for --standalone: with KKP the Seeds report the version")
	}
	if _, isVersion := catalogue.PlatformVersion(version); !isVersion {
		return fmt.Errorf("flag --kkp-version is %q, which is not a version such as 2.31.0", version)
	}
	return nil
}

func run(flags manager.Flags, fetching *sources.Flags, kkpVersion string) error {
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	made, err := flags.New(rest.AddUserAgent(config, "trellis-master"), lease, wiring.Cache(nil, wiring.NewInstallations()))
	if err != nil {
		return err
	}
	master, err := distributor.NewMaster(made, flags.Namespace)
	if err != nil {
		return err
	}
	kinds := fetching.Kinds()
	dependencies := wiring.Distributor(made, master, kinds, distributor.Options{
		Namespace: flags.Namespace, CatalogueNamespace: flags.CatalogueNamespace, WorkerName: flags.WorkerName, KKPVersion: kkpVersion,
	})
	dependencies.Fence = flags.Fence
	if err := distributor.New(dependencies).SetupWithManager(made); err != nil {
		return err
	}
	if err := errors.Join(
		metrics.Registry.Register(report.NewCensus(master.GetClient(), flags.Namespace, made.Elected())),
		metrics.Registry.Register(report.NewSeedCensus(master.GetClient(), flags.Namespace, made.Elected())),
		metrics.Registry.Register(report.NewSyncTimes(master.GetClient(), flags.Namespace, made.Elected())),
		metrics.Registry.Register(fleet.NewCensus(master.GetClient(), flags.Namespace, made.Elected())),
	); err != nil {
		return fmt.Errorf("registering metrics of catalogues and sets: %w", err)
	}
	if err := addGitCatalogues(made, master, flags.Namespace, fetching, kinds); err != nil {
		return err
	}
	if err := admit(made, master, &flags); err != nil {
		return err
	}
	return made.Start(ctrl.SetupSignalHandler())
}

// addGitCatalogues adds controller gitcatalogue, with its store.
func addGitCatalogues(
	made ctrl.Manager, master cluster.Cluster, namespace string, flags *sources.Flags, kinds fetch.Kinds,
) error {
	content, err := flags.Store(store.Options{Kinds: kinds, Keeps: gitcatalogue.Reads})
	if err != nil {
		return err
	}
	if err := made.Add(content); err != nil {
		return fmt.Errorf("adding the store: %w", err)
	}
	options := gitcatalogue.Options{Namespace: namespace}
	return gitcatalogue.New(wiring.GitCatalogue(made, master, content, kinds, options)).SetupWithManager(made)
}
