package catalogue

import (
	"fmt"
	"slices"
	"strings"
)

// FlagRestrictions sets what a seed keeps from add-ons of Custom catalogues. Whoever is refused is told of it by this name.
const FlagRestrictions = "--restrict-custom-addons"

// Names of restrictions.
const (
	RestrictKubeNamespaces = "kube-namespaces"
	RestrictPodSecurity    = "pod-security"
)

// Restrictions are what a seed keeps from add-ons of Custom catalogues (ADR 42). The zero value keeps nothing from them.
type Restrictions struct {
	// KubeNamespaces keeps them out of the namespaces of Kubernetes itself: their objects, and those of the users' choice.
	KubeNamespaces bool
	// PodSecurity keeps them from labels of pod security on Namespaces.
	PodSecurity bool
}

// kubeNamespaces are made by every API server and hold the cluster's own parts. Others whose names begin like theirs are anybody's.
var kubeNamespaces = []string{"kube-system", "kube-public", "kube-node-lease"}

// IsKubeNamespace says whether a namespace is one of Kubernetes itself, which is there in every cluster.
func IsKubeNamespace(name string) bool { return slices.Contains(kubeNamespaces, name) }

// Target is why an add-on of a Custom catalogue may not go into a namespace that a user chose; "" where it may.
func (r Restrictions) Target(namespace string) string {
	if !r.KubeNamespaces || !IsKubeNamespace(namespace) {
		return ""
	}
	return fmt.Sprintf("this seed keeps add-ons of Custom catalogues out of %s (%s=%s): make the installation anew with another "+
		"targetNamespace", strings.Join(kubeNamespaces, ", "), FlagRestrictions, RestrictKubeNamespaces)
}

// MarshalText gives the names of restrictions, by commas.
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

// UnmarshalText reads names of restrictions, by commas.
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
			return fmt.Errorf("restriction %q: there are %s and %s", name, RestrictKubeNamespaces, RestrictPodSecurity)
		}
	}
	return nil
}
