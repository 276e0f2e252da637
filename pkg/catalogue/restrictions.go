package catalogue

import (
	"fmt"
	"slices"
	"strings"
)

// FlagRestrictions is the flag that sets the restrictions of a seed. Refusals name it.
const FlagRestrictions = "--restrict-custom-addons"

// Names of restrictions.
const (
	RestrictKubeNamespaces = "kube-namespaces"
	RestrictPodSecurity    = "pod-security"
)

// Restrictions of a seed on add-ons of Custom catalogues (ADR 42). The zero value has none.
type Restrictions struct {
	// KubeNamespaces forbids objects and target namespaces in Kubernetes' own namespaces.
	KubeNamespaces bool
	// PodSecurity forbids pod security labels on Namespaces.
	PodSecurity bool
}

// kubeNamespaces are created by every API server. Other names with the prefix kube- are free.
var kubeNamespaces = []string{"kube-system", "kube-public", "kube-node-lease"}

// IsKubeNamespace reports whether a namespace is Kubernetes' own, which every cluster has.
func IsKubeNamespace(name string) bool { return slices.Contains(kubeNamespaces, name) }

// Target is the reason why a Custom add-on may not use a target namespace; "": it may.
func (r Restrictions) Target(namespace string) string {
	if !r.KubeNamespaces || !IsKubeNamespace(namespace) {
		return ""
	}
	return fmt.Sprintf("this seed allows no add-ons of Custom catalogues in %s (%s=%s): create the installation again with another "+
		"targetNamespace", strings.Join(kubeNamespaces, ", "), FlagRestrictions, RestrictKubeNamespaces)
}

// MarshalText implements encoding.TextMarshaler: names, separated by commas.
func (r Restrictions) MarshalText() ([]byte, error) {
	var names []string
	if r.KubeNamespaces {
		names = append(names, RestrictKubeNamespaces)
	}
	if r.PodSecurity {
		names = append(names, RestrictPodSecurity)
	}
	return []byte(strings.Join(names, ",")), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (r *Restrictions) UnmarshalText(text []byte) error {
	*r = Restrictions{}
	for name := range strings.SplitSeq(string(text), ",") {
		switch strings.TrimSpace(name) {
		case "":
		case RestrictKubeNamespaces:
			r.KubeNamespaces = true
		case RestrictPodSecurity:
			r.PodSecurity = true
		default:
			return fmt.Errorf("restriction %q is unknown: use %s or %s", name, RestrictKubeNamespaces, RestrictPodSecurity)
		}
	}
	return nil
}
