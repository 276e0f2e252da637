package binaries

import "fmt"

// Need is a group of programs that some work needs.
type Need string

const (
	// Base is the newer minor of Kubernetes with etcd, kwok, kubectl and helm: the demo's main story and most tests need
	// nothing else.
	Base Need = "base"
	// OlderMinor is the minor before, for clusters that differ and for upgrades.
	OlderMinor Need = "older"
	// ClusterAPI is Cluster API's core manager.
	ClusterAPI Need = "cluster-api"
	// Clusterctl installs providers of Cluster API on a management cluster.
	Clusterctl Need = "clusterctl"
)

// Needs are all groups, in building order.
func Needs() []Need { return []Need{Base, OlderMinor, ClusterAPI, Clusterctl} }

// Program is one executable that a fleet runs.
type Program struct {
	// Name is the file name of the executable.
	Name string
	// Need is the group that the program belongs to.
	Need Need
	// Module is the folder below hack/controlplanes whose go.mod pins the release.
	Module string
	// Release is the upstream version without "v"; a test compares it with the go.mod of Module.
	Release string
	// Package is the Go import path of the program.
	Package string
	// Upstream is the module path whose version Release names.
	Upstream string
	// Edit is made to Upstream's source before it is built.
	Edit Edit
	// Extra are files and folders of Upstream's module that are put next to the program.
	Extra []Copy
}

// Edit replaces one place of an upstream's source. The zero Edit changes nothing.
type Edit struct {
	// File is the path in the module; Old is a text that is there exactly once, New replaces it.
	File, Old, New string
}

// Copy is a file or a folder of a module, by its path there, and its name beside the program.
type Copy struct{ From, To string }

// The releases of Kubernetes that the fleet runs. Controller-manager and scheduler of a cluster have the release of its API
// server, since a component is never newer than its API server.
const (
	Older = "1.36.3"
	Newer = "1.37.2"
)

const (
	etcdRelease = "3.7.3"
	kwokRelease = "0.8.0"
	helmRelease = "3.22.0"
	capiRelease = "1.14.2"
	// helmKubernetes is the minor of Kubernetes that helm assumes of a cluster that it does not ask: that of its client-go.
	helmKubernetes = "37"
)

// Modules below hack/controlplanes.
const (
	newerModule      = "newer"
	clusterAPIModule = "cluster-api"
)

// Programs lists every program, in building order.
func Programs() []Program {
	return []Program{
		{
			Name: "etcd", Need: Base, Module: newerModule, Release: etcdRelease,
			Package: "go.etcd.io/etcd/server/v3", Upstream: "go.etcd.io/etcd/server/v3",
		},
		kubernetes("kube-apiserver", Base, newerModule, Newer),
		kubernetes("kube-controller-manager", Base, newerModule, Newer),
		kubernetes("kube-scheduler", Base, newerModule, Newer),
		kubernetes("kubectl", Base, newerModule, Newer),
		{
			Name: "helm", Need: Base, Module: newerModule, Release: helmRelease,
			Package: "helm.sh/helm/v3/cmd/helm", Upstream: "helm.sh/helm/v3",
		},
		{
			Name: "kwok", Need: Base, Module: newerModule, Release: kwokRelease,
			Package: "sigs.k8s.io/kwok/cmd/kwok", Upstream: "sigs.k8s.io/kwok",
		},
		kubernetes("kube-apiserver", OlderMinor, "kubernetes-1.36", Older),
		kubernetes("kube-controller-manager", OlderMinor, "kubernetes-1.36", Older),
		kubernetes("kube-scheduler", OlderMinor, "kubernetes-1.36", Older),
		clusterAPI(),
		{
			Name: "clusterctl", Need: Clusterctl, Module: clusterAPIModule, Release: capiRelease,
			Package: "sigs.k8s.io/cluster-api/cmd/clusterctl", Upstream: "sigs.k8s.io/cluster-api",
		},
	}
}

// clusterAPI is Cluster API's core manager with its CRDs and webhooks. Upstream has no flag for the address of its webhooks,
// which would be open to the network; ours listen on this machine only.
func clusterAPI() Program {
	return Program{
		Name: "cluster-api", Need: ClusterAPI, Module: clusterAPIModule, Release: capiRelease,
		Package: "sigs.k8s.io/cluster-api/core", Upstream: "sigs.k8s.io/cluster-api",
		Edit: Edit{File: "core/main.go", Old: "webhook.Options{\n", New: "webhook.Options{\n\t\t\t\tHost: \"127.0.0.1\",\n"},
		Extra: []Copy{
			{From: "core/config/crd/bases", To: "crds"},
			{From: "core/config/webhook/manifests.yaml", To: "webhooks.yaml"},
		},
	}
}

func kubernetes(name string, need Need, module, release string) Program {
	return Program{
		Name: name, Need: need, Module: module, Release: release,
		Package: "k8s.io/kubernetes/cmd/" + name, Upstream: "k8s.io/kubernetes",
	}
}

// Find returns the absolute path of the built program of that name. Release "" is the newest that the list has. The error
// names the command that builds it.
func Find(cache, name, release string) (string, error) {
	program, err := named(name, release)
	if err != nil {
		return "", err
	}
	return program.existing(cache)
}

func named(name, release string) (Program, error) {
	for _, program := range Programs() {
		if program.Name == name && (release == "" || release == program.Release) {
			return program, nil
		}
	}
	return Program{}, fmt.Errorf("program %q in release %q is not in the list of programs", name, release)
}
