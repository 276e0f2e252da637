package rights

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// builtIn are Kubernetes' own kinds that an agent may have, by group and resource. Of those with byName, only the
// agent's own named objects may be written.
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

// denied groups, with all groups below them: doc.go explains each class. Groups without a dot and Kubernetes' own
// need no entry.
var denied = []string{
	// Groups of Kubernetes and its projects: Cluster API, Gateway API, Kueue, the autoscaler.
	"k8s.io", "x-k8s.io", "kubernetes.io",
	// The platform's own.
	"k8c.io",
	// Controllers that apply manifests, or install or run programs with rights of their own.
	"fluxcd.io", "argoproj.io", "cattle.io", "k14s.io", "carvel.dev", "crossplane.io", "upbound.io", "kro.run", "oam.dev",
	"projectsveltos.io", "pulumi.com", "kyverno.io", "gatekeeper.sh", "coreos.com", "openshift.io", "operatorframework.io",
	"tekton.dev", "knative.dev", "keda.sh", "kruise.io", "volcano.sh", "kubeflow.org", "ray.io", "opentelemetry.io", "dapr.io", "kanister.io",
	// Machines, and control planes of clusters with their etcd.
	"kubevirt.io", "harvesterhci.io", "metal3.io", "tinkerbell.org", "vmware.com", "clastix.io", "k0smotron.io", "gardener.cloud",
	"sapcloud.io", "loft.sh", "k3k.io", "etcd.io", "aenix.io",
	// Clouds: their controllers have rights there.
	"k8s.aws", "cloud.google.com", "azure.com",
	// Certificates and Secrets, written or read for the requester.
	"cert-manager.io", "external-secrets.io", "bitnami.com", "hashicorp.com", "isindir.github.com", "mittwald.de",
	// The network of the control plane.
	"cilium.io", "projectcalico.org", "tigera.io", "antrea.io", "ovn.org", "kubeovn.io", "cncf.io", "submariner.io", "istio.io",
	"linkerd.io", "envoyproxy.io", "traefik.io", "containo.us", "projectcontour.io", "getambassador.io", "konghq.com", "nginx.org",
	"haproxy.org", "metallb.io",
	// Its disks and their copies.
	"velero.io", "k8up.io", "appscode.com", "kubestash.com", "kasten.io", "trilio.io", "libopenstorage.org", "longhorn.io", "rook.io",
	// Databases, queues, dashboards and job runners, whose pods come from templates of the requester.
	"elastic.co", "cnpg.io", "strimzi.io", "rabbitmq.com", "integreatly.org", "actions.github.com", "summerwind.dev",
}

// checkGroup refuses denied groups, and names that are no group of a custom kind: those have a dot.
func checkGroup(group string) error {
	if _, isBuiltIn := builtIn[group]; isBuiltIn {
		return nil
	}
	if len(validation.IsDNS1123Subdomain(group)) > 0 {
		return fmt.Errorf("%s is not an API group in lower case; wildcards are not allowed", quoted(group))
	}
	if !strings.Contains(group, ".") {
		return fmt.Errorf("agents can't get rights for group %s, nor for any other group built into Kubernetes: remove the rule", quoted(group))
	}
	for _, one := range denied {
		if group == one || strings.HasSuffix(group, "."+one) {
			return fmt.Errorf("agents can't get rights for group %s: remove the rule", quoted(group))
		}
	}
	return nil
}
