package rights

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// builtIn are the kinds that Kubernetes itself has and that an agent may have, by group and resource. Of those
// with byName, only named objects of the agent's own may be written.
var builtIn = map[string]map[string]limit{
	"":                    {"configmaps": byName, "events": free},
	"events.k8s.io":       {"events": free},
	"coordination.k8s.io": {"leases": byName},
}

type limit int

const (
	free limit = iota
	byName
)

// denied groups, with all below them: doc.go says why each class is. Groups without a dot and those of
// Kubernetes itself need no entry.
var denied = []string{
	// Kubernetes' own, and those of its projects: Cluster API's, Gateway API's, Kueue's, the autoscaler's.
	"k8s.io", "x-k8s.io", "kubernetes.io",
	// The platform's own.
	"k8c.io",
	// What applies manifests, installs or runs programs with rights of its own.
	"fluxcd.io", "argoproj.io", "cattle.io", "k14s.io", "carvel.dev", "crossplane.io", "upbound.io", "kro.run", "oam.dev",
	"projectsveltos.io", "pulumi.com", "kyverno.io", "gatekeeper.sh", "coreos.com", "openshift.io", "operatorframework.io",
	"tekton.dev", "knative.dev", "keda.sh", "kruise.io", "volcano.sh", "kubeflow.org", "ray.io", "opentelemetry.io", "dapr.io", "kanister.io",
	// Machines, and control planes of clusters with their etcd.
	"kubevirt.io", "harvesterhci.io", "metal3.io", "tinkerbell.org", "vmware.com", "clastix.io", "k0smotron.io", "gardener.cloud",
	"sapcloud.io", "loft.sh", "k3k.io", "etcd.io", "aenix.io",
	// Clouds, by the rights of their controllers.
	"k8s.aws", "cloud.google.com", "azure.com",
	// Certificates and Secrets, written or read on behalf of who asks.
	"cert-manager.io", "external-secrets.io", "bitnami.com", "hashicorp.com", "isindir.github.com", "mittwald.de",
	// The network of the control plane.
	"cilium.io", "projectcalico.org", "tigera.io", "antrea.io", "ovn.org", "kubeovn.io", "cncf.io", "submariner.io", "istio.io",
	"linkerd.io", "envoyproxy.io", "traefik.io", "containo.us", "projectcontour.io", "getambassador.io", "konghq.com", "nginx.org",
	"haproxy.org", "metallb.io",
	// Its disks and their copies.
	"velero.io", "k8up.io", "appscode.com", "kubestash.com", "kasten.io", "trilio.io", "libopenstorage.org", "longhorn.io", "rook.io",
	// Databases, queues, dashboards and runners of jobs, whose pods come from templates of who asks.
	"elastic.co", "cnpg.io", "strimzi.io", "rabbitmq.com", "integreatly.org", "actions.github.com", "summerwind.dev",
}

// checkGroup refuses what is denied, and what is no group of a custom kind: those have a dot.
func checkGroup(group string) error {
	if _, isBuiltIn := builtIn[group]; isBuiltIn {
		return nil
	}
	if len(validation.IsDNS1123Subdomain(group)) > 0 {
		return fmt.Errorf("%s is no group of kinds in lower case, and no wildcard is one", quoted(group))
	}
	if !strings.Contains(group, ".") {
		return fmt.Errorf("agents may have nothing of group %s, as of all that Kubernetes has built in", quoted(group))
	}
	for _, one := range denied {
		if group == one || strings.HasSuffix(group, "."+one) {
			return fmt.Errorf("agents may have nothing of group %s", quoted(group))
		}
	}
	return nil
}
