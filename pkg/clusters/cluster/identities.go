package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// identityPrefix is the prefix of the name of a Cluster's ConfigMap in the platform's namespace. The rest is the
// Cluster's Key.
const identityPrefix = "addon-cluster-"

// annotationCluster is on ConfigMaps of Clusters that are not KKP's: group, namespace and name.
const annotationCluster = v1.Prefix + "cluster"

// identityMarks are the annotations by which identified finds the Cluster.
func identityMarks(cluster target.Ref) map[string]string {
	if cluster.IsKKP() {
		return nil
	}
	return map[string]string{annotationCluster: strings.Join([]string{cluster.Kind.Group, cluster.Namespace, cluster.Name}, "/")}
}

// identified is the Cluster of a ConfigMap, without its UID.
func identified(kept metav1.Object) (cluster target.Ref, isIdentity bool) {
	name, isIdentity := strings.CutPrefix(kept.GetName(), identityPrefix)
	parts := strings.Split(kept.GetAnnotations()[annotationCluster], "/")
	if len(parts) != 3 {
		return target.Ref{Kind: target.KindKKP, Name: name}, isIdentity
	}
	kind := schema.GroupKind{Group: parts[0], Kind: target.KindClusterAPI.Kind}
	return target.Ref{Kind: kind, Namespace: parts[1], Name: parts[2]}, isIdentity
}

// Keys of these ConfigMaps. Each of the first three holds a UID.
const (
	keyCluster     = "clusterUID"
	keyUserCluster = "userClusterUID"
	keyOrigin      = "originUID"
	// keyPrevious holds a line for each previous user cluster, newest first: its UID and that of its origin.
	keyPrevious = "formerOrigins"
)

// maximumPrevious is the maximum number of previous user clusters on record for a Cluster's name.
const maximumPrevious = 8

// Identities records which user cluster each Cluster has, in one ConfigMap for each Cluster, in the platform's
// namespace, where no tenant writes. A ConfigMap outlives its Cluster: a Cluster that is recreated over the same user
// cluster continues with its installations. Data that was read is cached for the life of the process, since only one
// process writes at a time.
type Identities struct {
	client    client.Client
	reader    client.Reader
	finder    Finder
	namespace string
	now       func() time.Time
	// forgotten is called with each Cluster before its record is removed.
	forgotten func(ctx context.Context, cluster target.Ref) error
	// claims lets one Cluster at a time claim a user cluster.
	claims sync.Mutex

	mutex sync.Mutex
	// known by Key; also for Clusters without a ConfigMap.
	known map[string]bond
}

// NewIdentities writes ConfigMaps of the platform's namespace with a client, and reads them with a reader, which must
// bypass caches. The finder decides whether another Cluster still exists.
func NewIdentities(c client.Client, reader client.Reader, finder Finder, namespace string) *Identities {
	return &Identities{client: c, reader: reader, finder: finder, namespace: namespace, now: time.Now, known: map[string]bond{}}
}

// OnForgotten registers a function that is called with each Cluster that is gone, before its ConfigMap is removed:
// other data about it can be deleted.
func (i *Identities) OnForgotten(forgotten func(ctx context.Context, cluster target.Ref) error) {
	i.forgotten = forgotten
}

// bond is a Cluster's user cluster. The zero value is that of a Cluster that was never connected.
type bond struct {
	// cluster is the UID of the Cluster, userCluster that of the namespace kube-system of its user cluster.
	cluster, userCluster types.UID
	// origin is the UID of the Cluster that had the user cluster first. The IDs of installations are derived from it,
	// so they stay the same when the Cluster is recreated with another UID.
	origin types.UID
	// previous are the previous user clusters, newest first: one that is found again keeps its origin.
	previous []previousOrigin
	// version is the ConfigMap's resourceVersion; empty: there is none.
	version string
}

// previousOrigin is a user cluster that a Cluster of the name had before, and the origin of its installations.
type previousOrigin struct{ userCluster, origin types.UID }

// SwappedError reports that a Cluster's kubeconfig leads to another user cluster than the recorded one.
type SwappedError struct {
	Cluster string
	// Kept is the recorded UID of namespace kube-system, Found the current one.
	Kept, Found types.UID
}

// Error implements error.
func (e *SwappedError) Error() string {
	return fmt.Sprintf("the kubeconfig leads to another user cluster than before: its namespace kube-system has UID %s, not %s. Nothing is "+
		"written there, and no finalizer is removed: correct the kubeconfig or, if the change is intended, annotate Cluster %q with %s=%s",
		e.Found, e.Kept, e.Cluster, v1.AnnotationConfirmCluster, e.Found)
}

// SharedError reports that a Cluster's kubeconfig leads to the user cluster of another existing Cluster, which had it
// first. It does not name that Cluster, which may be another tenant's.
type SharedError struct{ Found types.UID }

// Error implements error.
func (e *SharedError) Error() string {
	return fmt.Sprintf("the kubeconfig leads to the user cluster of another Cluster: nothing is written there. Correct the kubeconfig, or "+
		"remove one of the two Clusters: the ConfigMap with label %s=%s in the platform's namespace names the other one",
		v1.LabelUserCluster, e.Found)
}

// Origin is the UID that the IDs of a Cluster's installations are derived from: its own UID or, if it was recreated
// over the same user cluster, that of the first Cluster there.
func (i *Identities) Origin(ctx context.Context, cluster target.Ref) (types.UID, error) {
	kept, err := i.of(ctx, cluster)
	if err != nil {
		return "", err
	}
	if kept.origin == "" {
		return cluster.UID, nil
	}
	return kept.origin, nil
}

// confirm compares the user cluster that a Cluster's kubeconfig leads to with the recorded one, and records it if
// that is allowed. Confirmed is the Cluster's annotation. The errors are SwappedError, SharedError, or a failed call
// to the seed.
func (i *Identities) confirm(ctx context.Context, cluster target.Ref, found types.UID, confirmed string) (origin types.UID, err error) {
	kept, err := i.of(ctx, cluster)
	if err != nil {
		return "", err
	}
	if kept.cluster == cluster.UID && kept.userCluster == found {
		return kept.origin, nil
	}
	next, err := kept.follow(cluster, found, confirmed)
	if err != nil {
		return "", err
	}
	i.claims.Lock()
	defer i.claims.Unlock()
	if err := i.isFree(ctx, cluster, found); err != nil {
		return "", err
	}
	return next.origin, i.write(ctx, cluster, next)
}

// follow computes the new bond when its Cluster's kubeconfig leads to a user cluster.
//
// The same Cluster over another user cluster is a swap, which a user has to confirm. The user cluster was restored or
// recreated then, and the recorded installations are its own. Another Cluster of that name over the same user cluster
// was recreated. If both differ, it is another Cluster with the same name. A previous user cluster gets its own
// origin back: its objects were installed with it, regardless of where the name's kubeconfig led meanwhile.
func (b bond) follow(cluster target.Ref, found types.UID, confirmed string) (bond, error) {
	next := bond{cluster: cluster.UID, userCluster: found, origin: b.origin, previous: b.previous, version: b.version}
	if b.userCluster == found {
		return next, nil
	}
	switch {
	case b.userCluster == "", b.cluster != cluster.UID:
		next.origin = cluster.UID
	case confirmed != string(found):
		return b, &SwappedError{Cluster: cluster.Name, Kept: b.userCluster, Found: found}
	}
	next.previous = nil
	if b.userCluster != "" {
		next.previous = append(next.previous, previousOrigin{b.userCluster, b.origin})
	}
	for _, one := range b.previous {
		switch {
		case one.userCluster == found:
			next.origin = one.origin
		case len(next.previous) < maximumPrevious:
			next.previous = append(next.previous, one)
		}
	}
	return next, nil
}

// isFree returns an error if another existing Cluster has the user cluster on record: the first Cluster keeps it.
func (i *Identities) isFree(ctx context.Context, cluster target.Ref, found types.UID) error {
	var list corev1.ConfigMapList
	err := i.reader.List(ctx, &list, client.InNamespace(i.namespace), client.MatchingLabels{v1.LabelUserCluster: string(found)})
	if err != nil {
		return fmt.Errorf("listing the Clusters of the user cluster: %w", err)
	}
	for n := range list.Items {
		item := &list.Items[n]
		other, isIdentity := identified(item)
		if !isIdentity || other.Key() == cluster.Key() {
			continue
		}
		other.UID = types.UID(item.Data[keyCluster])
		gone, err := i.finder.Gone(ctx, other)
		if err != nil {
			return err
		}
		if !gone {
			return &SharedError{Found: found}
		}
	}
	return nil
}

// of is the record of a Cluster's name.
func (i *Identities) of(ctx context.Context, cluster target.Ref) (bond, error) {
	name := cluster.Key()
	i.mutex.Lock()
	kept, known := i.known[name]
	i.mutex.Unlock()
	if known {
		return kept, nil
	}
	var found corev1.ConfigMap
	err := i.reader.Get(ctx, client.ObjectKey{Namespace: i.namespace, Name: identityPrefix + name}, &found)
	if client.IgnoreNotFound(err) != nil {
		return bond{}, fmt.Errorf("reading the identity of Cluster %q: %w", name, err)
	}
	if err == nil && found.Annotations[annotationCluster] != identityMarks(cluster)[annotationCluster] {
		return bond{}, fmt.Errorf("reading the identity of Cluster %q: ConfigMap %q is another Cluster's", name, found.Name)
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if kept, known := i.known[name]; known { // another caller was faster, and may have written since
		return kept, nil
	}
	i.known[name] = bondOf(&found)
	return i.known[name], nil
}

func bondOf(found *corev1.ConfigMap) bond {
	uid := func(key string) types.UID { return types.UID(found.Data[key]) }
	b := bond{cluster: uid(keyCluster), userCluster: uid(keyUserCluster), origin: uid(keyOrigin), version: found.ResourceVersion}
	for line := range strings.Lines(found.Data[keyPrevious]) {
		userCluster, origin, isPair := strings.Cut(strings.TrimSpace(line), " ")
		if isPair && len(b.previous) < maximumPrevious {
			b.previous = append(b.previous, previousOrigin{types.UID(userCluster), types.UID(origin)})
		}
	}
	return b
}

// data is the ConfigMap's data, which bondOf reads.
func (b bond) data() map[string]string {
	data := map[string]string{keyCluster: string(b.cluster), keyUserCluster: string(b.userCluster), keyOrigin: string(b.origin)}
	for _, one := range b.previous {
		data[keyPrevious] += fmt.Sprintf("%s %s\n", one.userCluster, one.origin)
	}
	return data
}

// write records a bond. If another client wrote meanwhile, the next visit reads it again.
func (i *Identities) write(ctx context.Context, cluster target.Ref, next bond) error {
	name := cluster.Key()
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: i.namespace, Name: identityPrefix + name, ResourceVersion: next.version,
			Labels:      map[string]string{v1.LabelUserCluster: string(next.userCluster)},
			Annotations: identityMarks(cluster),
		},
		Data: next.data(),
	}
	var err error
	if next.version == "" {
		err = i.client.Create(ctx, object)
	} else {
		err = i.client.Update(ctx, object)
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if err != nil {
		if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
			delete(i.known, name)
		}
		return fmt.Errorf("recording the identity of Cluster %q: %w", name, err)
	}
	next.version = object.ResourceVersion
	i.known[name] = next
	return nil
}

// forget removes a deleted Cluster from memory.
func (i *Identities) forget(name string) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	delete(i.known, name)
}
