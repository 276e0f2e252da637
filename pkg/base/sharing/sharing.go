// Package sharing stores equal parts of the objects in a cache once in memory. The tens of thousands of
// AddonInstallations of a seed are copies of a few: if each were decoded alone, every walk over them would wait for
// the memory of each one's labels, names and values. Shared parts are only read, as everything in a cache is.
package sharing

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/lru"
)

// The bounds: text that tenants choose can displace shared text of others, but takes no more memory. Most are how
// many are kept; longest are bytes, for labels of all of an object; longer ones are not shared.
const (
	mostTexts, longestText    = 8192, 256
	mostLabels, longestLabels = 1024, 1024
	mostValues, longestValues = 1024, 4096
	// mostNames is the largest number of annotations, or finalizers, whose names are shared.
	mostNames = 32
	// life is how long unused parts may be kept.
	life = time.Hour
)

// Installations shares equal parts of AddonInstallations.
type Installations struct {
	texts  *lru.Cache[string, string]
	labels *lru.Cache[string, map[string]string]
	values *lru.Cache[string, *runtime.RawExtension]
}

// NewInstallations shares among the objects that it gets.
func NewInstallations() *Installations {
	return &Installations{
		texts:  lru.New[string, string](mostTexts, nil),
		labels: lru.New[string, map[string]string](mostLabels, nil),
		values: lru.New[string, *runtime.RawExtension](mostValues, nil),
	}
}

// Transform is for a cache. It changes the given object, and drops managedFields; objects of other kinds lose only
// those. Many goroutines may call it.
func (i *Installations) Transform(object any) (any, error) {
	object, err := cache.TransformStripManagedFields()(object)
	one, isInstallation := object.(*v1.AddonInstallation)
	if err != nil || !isInstallation {
		return object, err
	}
	one.Namespace = i.text(one.Namespace)
	one.Labels = i.labelsOf(one.Labels)
	one.Annotations = i.annotationsOf(one.Annotations)
	for at := range min(len(one.Finalizers), mostNames) {
		one.Finalizers[at] = i.text(one.Finalizers[at])
	}
	i.shareSpec(&one.Spec)
	i.shareStatus(&one.Status)
	return one, nil
}

func (i *Installations) shareSpec(spec *v1.AddonInstallationSpec) {
	spec.ClusterName = i.text(spec.ClusterName)
	of := &spec.AddonRef
	of.Name, of.Version, of.Digest = v1.AddonName(i.text(string(of.Name))), i.text(of.Version), i.text(of.Digest)
	spec.TargetNamespace, spec.ReleaseName = i.text(spec.TargetNamespace), i.text(spec.ReleaseName)
	spec.ReconcileStrategy = v1.ReconcileStrategy(i.text(string(spec.ReconcileStrategy)))
	spec.DeletionPolicy = v1.DeletionPolicy(i.text(string(spec.DeletionPolicy)))
	spec.Values = i.valuesOf(spec.Values)
}

func (i *Installations) shareStatus(status *v1.AddonInstallationStatus) {
	for at := range status.Conditions {
		one := &status.Conditions[at]
		one.Type, one.Reason, one.Message = i.text(one.Type), i.text(one.Reason), i.text(one.Message)
	}
	status.Version, status.Target, status.AvailableUpdate = i.text(status.Version), i.text(status.Target), i.text(status.AvailableUpdate)
	if of := status.LastApplied; of != nil {
		of.Addon, of.Version, of.EntryDigest = i.text(of.Addon), i.text(of.Version), i.text(of.EntryDigest)
		of.ArtifactDigest, of.K8sVersion = i.text(of.ArtifactDigest), i.text(of.K8sVersion)
	}
	if of := status.Artifact; of != nil {
		of.Revision, of.Digest = i.text(of.Revision), i.text(of.Digest)
	}
}

func (i *Installations) text(one string) string {
	if one == "" || len(one) > longestText {
		return one
	}
	return i.texts.Renew(one, life, func() string { return one })
}

// labelsOf returns one map of labels for all installations with equal labels.
func (i *Installations) labelsOf(of map[string]string) map[string]string {
	size := 0
	for name, value := range of {
		size += len(name) + len(value)
	}
	if size == 0 || size > longestLabels {
		return of
	}
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(of)) {
		for _, part := range []string{name, of[name]} {
			key.WriteString(part)
			key.WriteByte(0) // no label contains it: they have letters, digits and "-_./"
		}
	}
	return i.labels.Renew(key.String(), life, func() map[string]string {
		shared := make(map[string]string, len(of))
		for name, value := range of {
			shared[i.text(name)] = i.text(value)
		}
		return shared
	})
}

// annotationsOf returns a map of the installation's own, with shared names and digest.
func (i *Installations) annotationsOf(of map[string]string) map[string]string {
	if len(of) == 0 || len(of) > mostNames {
		return of
	}
	shared := make(map[string]string, len(of))
	for name, value := range of {
		if name == v1.AnnotationDigest {
			value = i.text(value)
		}
		shared[i.text(name)] = value
	}
	return shared
}

func (i *Installations) valuesOf(of *runtime.RawExtension) *runtime.RawExtension {
	if of == nil || of.Object != nil || len(of.Raw) > longestValues {
		return of
	}
	return i.values.Renew(string(of.Raw), life, func() *runtime.RawExtension { return of })
}
