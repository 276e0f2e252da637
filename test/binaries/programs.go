package binaries

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// Program is one executable that a fleet runs.
type Program struct {
	// Name is the file name of the executable.
	Name string
	// Module is the folder below hack/controlplanes whose go.mod pins the release.
	Module string
	// Release is the upstream version without "v"; a test holds it against the go.mod of Module.
	Release string
	// Package is the Go import path of the program.
	Package string
	// Upstream is the module path whose version Release names.
	Upstream string
	// Build counts the ways in which one release was built: with another one, what is in the cache is built anew.
	Build int
	// OnDemand programs are built by Provide alone, for the few tests that ask for them.
	OnDemand bool
	// Edit is made to Upstream's source before it is built.
	Edit Edit
	// Beside are files and folders of Upstream's module that are put next to the program.
	Beside []Copy
}

// Edit is one place of an upstream's source that is written anew. The zero Edit changes nothing.
type Edit struct {
	// File is the path in the module, Old the text that is there exactly once, New what stands in its place.
	File, Old, New string
}

// Copy is a file or a folder of a module, by its path there, and its name beside the program.
type Copy struct{ From, To string }

// The releases of Kubernetes that the fleet runs. Controller-manager, scheduler and kubectl are those of Older: a
// component is never newer than its API server. Oldest is there for upgrades over two minors, and built on demand.
const (
	Oldest = "1.35.4"
	Older  = "1.36.3"
	Newer  = "1.37.1"
)

const (
	etcdRelease = "3.6.12"
	kwokRelease = "0.8.0"
	helmRelease = "3.22.0"
	capiRelease = "1.14.2"
	// helmKubernetes is the minor of Kubernetes that helm is made with: what it takes a cluster for that it does not ask.
	helmKubernetes = "37"
)

// Programs lists everything Build makes, in building order.
func Programs() []Program {
	return []Program{
		{Name: "etcd", Module: "etcd", Release: etcdRelease, Package: "go.etcd.io/etcd/server/v3", Upstream: "go.etcd.io/etcd/server/v3"},
		kubernetes("kube-apiserver", Older),
		kubernetes("kube-controller-manager", Older),
		kubernetes("kube-scheduler", Older),
		kubernetes("kubectl", Older),
		{Name: "helm", Module: "helm", Release: helmRelease, Package: "helm.sh/helm/v3/cmd/helm", Upstream: "helm.sh/helm/v3", Build: 2},
		{Name: "kwok", Module: "kwok", Release: kwokRelease, Package: "sigs.k8s.io/kwok/cmd/kwok", Upstream: "sigs.k8s.io/kwok"},
		kubernetes("kube-apiserver", Newer),
		clusterAPI(),
		clusterctl(),
		oldest(),
	}
}

// clusterAPI is Cluster API's core manager with its CRDs and webhooks. Upstream has no flag for the address of its webhooks, which would
// be open to the network; ours listen on this machine alone.
func clusterAPI() Program {
	return Program{
		Name: "cluster-api", Module: "cluster-api", Release: capiRelease,
		Package: "sigs.k8s.io/cluster-api/core", Upstream: "sigs.k8s.io/cluster-api",
		Edit: Edit{File: "core/main.go", Old: "webhook.Options{\n", New: "webhook.Options{\n\t\t\t\tHost: \"127.0.0.1\",\n"},
		Beside: []Copy{
			{From: "core/config/crd/bases", To: "crds"},
			{From: "core/config/webhook/manifests.yaml", To: "webhooks.yaml"},
		},
	}
}

// clusterctl is what installs providers on a management cluster, ours among them: test/clusterctl asks for it.
func clusterctl() Program {
	return Program{
		Name: "clusterctl", Module: "cluster-api", Release: capiRelease, OnDemand: true,
		Package: "sigs.k8s.io/cluster-api/cmd/clusterctl", Upstream: "sigs.k8s.io/cluster-api",
	}
}

func oldest() Program {
	program := kubernetes("kube-apiserver", Oldest)
	program.OnDemand = true
	return program
}

func kubernetes(name, release string) Program {
	return Program{
		Name: name, Release: release, Module: "kubernetes-" + minor(release),
		Package: "k8s.io/kubernetes/cmd/" + name, Upstream: "k8s.io/kubernetes",
	}
}

// Path is where the program lies once it is built, below the cache folder.
func (p Program) Path(cache string) string {
	folder := p.Module + "@" + p.Release
	if p.Build > 0 {
		folder += "-" + strconv.Itoa(p.Build)
	}
	return filepath.Join(cache, "controlplanes", folder, p.Name)
}

// Find returns the absolute path of the built program of that name, for kube-apiserver in the given release; release ""
// means the only one there is. The error says how to build it.
func Find(cache, name, release string) (string, error) {
	program, err := named(name, release)
	if err != nil {
		return "", err
	}
	return existing(program.Path(cache))
}

func named(name, release string) (Program, error) {
	for _, program := range Programs() {
		if program.Name == name && (release == "" || release == program.Release) {
			return program, nil
		}
	}
	return Program{}, fmt.Errorf("program %q in release %q is not in the list of programs", name, release)
}
