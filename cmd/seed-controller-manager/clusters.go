package main

import (
	"flag"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	flags "github.com/trellis-addons/trellis/cmd/internal/manager"
	"github.com/trellis-addons/trellis/pkg/clusters/cluster"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/fleet/upgrade"
)

// Values of --cluster-kinds.
const (
	kindKKP        = "kkp"
	kindClusterAPI = "cluster-api"
)

// clusterOptions are the flags that say which objects represent clusters.
type clusterOptions struct {
	served        clusterKinds
	controlPlanes []schema.GroupResource
	allowCIDRs    []netip.Prefix
	upgrades      upgrade.Rules
}

func newClusterOptions() clusterOptions { return clusterOptions{served: clusterKinds{kindKKP}} }

func (o *clusterOptions) register(set *flag.FlagSet) {
	set.Var(&o.served, "cluster-kinds",
		"kinds of Clusters to serve: "+kindKKP+", "+kindClusterAPI+", or both, comma-separated; each is served once its CRD exists; "+
			"no other kind is read")
	flags.ListVar(set, &o.controlPlanes, "cluster-api-providers",
		"kinds of providers, comma-separated, that Cluster API's Clusters refer to and that the manager reads: control planes for versions, "+
			"and objects that templates name as .CAPI; each as resource.group, such as kubeadmcontrolplanes.controlplane.cluster.x-k8s.io",
		controlPlane)
	flags.ListVar(set, &o.allowCIDRs, "allow-cluster-cidrs",
		"address ranges, comma-separated, that kubeconfigs of Cluster API's Clusters may use although they are loopback or link-local",
		flags.CIDR)
	set.BoolVar(&o.upgrades.Hold, "hold-upgrades", false,
		"upgrades of Cluster API's Clusters wait for add-ons that have a slot; false releases waiting upgrades")
	set.DurationVar(&o.upgrades.Timeout, "upgrade-hold-timeout", time.Hour,
		"with --hold-upgrades: how long a stage of an upgrade waits at most; 0: until an admin releases the upgrade")
}

// has says whether Clusters of a kind are served.
func (o *clusterOptions) has(word string) bool { return slices.Contains(o.served, word) }

// kinds are the kinds in the flags.
func (o *clusterOptions) kinds() cluster.Kinds {
	kinds := cluster.Kinds{ControlPlanes: o.controlPlanes}
	for _, word := range o.served {
		kind := target.KindKKP
		if word == kindClusterAPI {
			kind = target.KindClusterAPI
		}
		kinds.Served = append(kinds.Served, kind)
	}
	return kinds
}

// clusterKinds is a flag with values for kinds of Clusters.
type clusterKinds []string

func (k *clusterKinds) String() string { return strings.Join(*k, ",") }

// Set replaces the previous value.
func (k *clusterKinds) Set(text string) error {
	var words clusterKinds
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if word != kindKKP && word != kindClusterAPI {
			return fmt.Errorf("%q is neither %s nor %s", word, kindKKP, kindClusterAPI)
		}
		if !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	*k = words
	return nil
}

// controlPlane reads a resource that versions may be read from; an empty part is none.
func controlPlane(part string) ([]schema.GroupResource, error) {
	if part == "" {
		return nil, nil
	}
	resource := schema.ParseGroupResource(part)
	if resource.Group == "" || resource.Resource == "" {
		return nil, fmt.Errorf("control plane %q: write it as resource.group", part)
	}
	return []schema.GroupResource{resource}, nil
}
