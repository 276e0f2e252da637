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
	"github.com/trellis-addons/trellis/pkg/target"
)

// identityPrefix begins the name of the ConfigMap of a Cluster in the platform's namespace; what
// follows is the Cluster's Key.
const identityPrefix = "addon-cluster-"

// annotationCluster is on ConfigMaps of Clusters that are not KKP's: group, namespace and name.
const annotationCluster = v1.Prefix + "cluster"

// identityMarks are the annotations by which identified knows a Cluster again.
func identityMarks(cluster target.Ref) map[string]string {
	if cluster.IsKKP() {
		return nil
	}
	return map[string]string{annotationCluster: strings.Join([]string{cluster.Kind.Group, cluster.Namespace, cluster.Name}, "/")}
}

// identified is the Cluster that a ConfigMap is of, without its UID.
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
	// keyFormer holds a line for each user cluster of before, newest first: its UID and its
	// origin's.
	keyFormer = "formerOrigins"
)

// maximumFormer is how many user clusters of before are remembered for a Cluster's name.
const maximumFormer = 8

// Identities keeps which user cluster each Cluster has, in one ConfigMap for each Cluster, in the
// platform's namespace, where no tenant writes. A ConfigMap outlives its Cluster: one that comes
// back over the same user cluster goes on with what is installed there. What was read is kept for
// the life of the process, since one process writes at a time.
type Identities struct {
	client    client.Client
	reader    client.Reader
	finder    Finder
	namespace string
	now       func() time.Time
	// forgotten is told of each Cluster that is forgotten, before it is.
	forgotten func(ctx context.Context, cluster target.Ref) error
	// claims lets one Cluster at a time take a user cluster.
	claims sync.Mutex

	mutex sync.Mutex
	// known by Key; of Clusters without a ConfigMap too.
	known map[string]bond
}

// NewIdentities writes ConfigMaps of the platform's namespace by a client, and reads them by a
// reader, which must see past caches. Whether another Cluster still exists is the finder's to say.
func NewIdentities(c client.Client, reader client.Reader, finder Finder, namespace string) *Identities {
	return &Identities{client: c, reader: reader, finder: finder, namespace: namespace, now: time.Now, known: map[string]bond{}}
}

// OnForgotten has a function called for each Cluster that is gone, before its ConfigMap is removed: what
// else is kept about it can go.
func (i *Identities) OnForgotten(forgotten func(ctx context.Context, cluster target.Ref) error) {
	i.forgotten = forgotten
}

// bond is a Cluster's user cluster. The zero value is that of a Cluster which was never connected
// to.
type bond struct {
	// cluster is the UID of the Cluster, userCluster that of its user cluster's namespace
	// kube-system.
	cluster, userCluster types.UID
	// origin is the UID of the Cluster that had the user cluster first: the IDs of installations
	// derive from it, so that they stay what they are when the Cluster comes back with another UID.
	origin types.UID
	// former are the user clusters of before, newest first: one of them that is found again keeps
	// its origin.
	former []formerOrigin
	// version is the ConfigMap's resourceVersion; empty: there is none.
	version string
}

// formerOrigin is a user cluster that a Cluster of the name had before, and the origin of what was
// installed there.
type formerOrigin struct{ userCluster, origin types.UID }

// SwappedError says that a Cluster's kubeconfig leads to another user cluster than the one on
// record.
type SwappedError struct {
	Cluster string
	// Kept is the UID on record of namespace kube-system, Found the one that is there now.
	Kept, Found types.UID
}

// Error implements error.
func (e *SwappedError) Error() string {
	return fmt.Sprintf("the kubeconfig leads to another user cluster than before: its namespace kube-system has UID %s, not %s. Nothing is "+
		"written there and nothing is let go: put the kubeconfig right or, if it is meant, annotate Cluster %q with %s=%s",
		e.Found, e.Kept, e.Cluster, v1.AnnotationConfirmCluster, e.Found)
}

// SharedError says that a Cluster's kubeconfig leads to the user cluster of another Cluster, which
// had it first and exists. It does not name that one, which may be another tenant's.
type SharedError struct{ Found types.UID }

// Error implements error.
func (e *SharedError) Error() string {
	return fmt.Sprintf("the kubeconfig leads to the user cluster of another Cluster: nothing is written there. Put the kubeconfig right, or "+
		"remove one of the two Clusters: the ConfigMap with label %s=%s in the platform's namespace names the other one",
		v1.LabelUserCluster, e.Found)
}

// Origin is the UID that the IDs of a Cluster's installations derive from: its own or, where it
// came back over the same user cluster, that of the Cluster which was there first.
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

// confirm compares the user cluster that a Cluster's kubeconfig leads to with the one on record,
// and puts it on record where that may be. Confirmed is the Cluster's annotation. The errors are
// SwappedError, SharedError, or a failed call to the seed.
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

// follow decides what becomes of a bond when its Cluster's kubeconfig leads to a user cluster.
//
// The same Cluster over another user cluster is a swap, which somebody has to confirm. The user
// cluster is restored or made anew then, and the installations on record are its own. Another
// Cluster of that name over the same user cluster is one that came back. Where both are others, it
// is another Cluster that happens to have the name. A user cluster of before has its own origin
// again: what stands there was installed with it, whatever the name's kubeconfig led to meanwhile.
func (b bond) follow(cluster target.Ref, found types.UID, confirmed string) (bond, error) {
	next := bond{cluster: cluster.UID, userCluster: found, origin: b.origin, former: b.former, version: b.version}
	if b.userCluster == found {
		return next, nil
	}
	switch {
	case b.userCluster == "", b.cluster != cluster.UID:
		next.origin = cluster.UID
	case confirmed != string(found):
		return b, &SwappedError{Cluster: cluster.Name, Kept: b.userCluster, Found: found}
	}
	next.former = nil
	if b.userCluster != "" {
		next.former = append(next.former, formerOrigin{b.userCluster, b.origin})
	}
	for _, one := range b.former {
		switch {
		case one.userCluster == found:
			next.origin = one.origin
		case len(next.former) < maximumFormer:
			next.former = append(next.former, one)
		}
	}
	return next, nil
}

// isFree looks whether another Cluster has a user cluster on record and exists: who had it first
// keeps it.
func (i *Identities) isFree(ctx context.Context, cluster target.Ref, found types.UID) error {
	var list corev1.ConfigMapList
	err := i.reader.List(ctx, &list, client.InNamespace(i.namespace), client.MatchingLabels{v1.LabelUserCluster: string(found)})
	if err != nil {
		return fmt.Errorf("listing who has the user cluster: %w", err)
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

// of is what is on record of a Cluster's name.
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
	if kept, known := i.known[name]; known { // somebody was faster, and may have written since
		return kept, nil
	}
	i.known[name] = bondOf(&found)
	return i.known[name], nil
}

func bondOf(found *corev1.ConfigMap) bond {
	uid := func(key string) types.UID { return types.UID(found.Data[key]) }
	b := bond{cluster: uid(keyCluster), userCluster: uid(keyUserCluster), origin: uid(keyOrigin), version: found.ResourceVersion}
	for line := range strings.Lines(found.Data[keyFormer]) {
		userCluster, origin, isPair := strings.Cut(strings.TrimSpace(line), " ")
		if isPair && len(b.former) < maximumFormer {
			b.former = append(b.former, formerOrigin{types.UID(userCluster), types.UID(origin)})
		}
	}
	return b
}

// data is what bondOf reads.
func (b bond) data() map[string]string {
	data := map[string]string{keyCluster: string(b.cluster), keyUserCluster: string(b.userCluster), keyOrigin: string(b.origin)}
	for _, one := range b.former {
		data[keyFormer] += fmt.Sprintf("%s %s\n", one.userCluster, one.origin)
	}
	return data
}

// write puts a bond on record. What somebody else wrote meanwhile is read again with the next
// visit.
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

// forget drops what is kept in memory of a Cluster that goes.
func (i *Identities) forget(name string) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	delete(i.known, name)
}
