package query

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// These bound the memory for RoleBindings. Users of namespaces may write them.
const (
	mostSubjects            = 64 // of a RoleBinding
	mostSubjectsOfNamespace = 1000
)

// kindHashes is the kind of the only subject of a trimmed RoleBinding, whose name has the hashes of all.
const kindHashes = "Hashes"

// Bindings are the namespaces whose RoleBindings name a user or a group: candidates for where the user may list installations. What a
// binding grants is not read; a review confirms each candidate. Subjects beyond the bounds are left out.
type Bindings struct {
	source toolscache.ResourceEventHandlerRegistration

	mutex sync.RWMutex
	// namespaces counts the RoleBindings that name a subject; sizes counts the subjects of a namespace.
	namespaces map[subject]map[string]int
	sizes      map[string]int
}

// subject is the hash of a user or a group, as names may be long. Two with one hash would only make one more candidate.
type subject [16]byte

func subjectOf(isGroup bool, name string) subject {
	kind := rbacv1.UserKind
	if isGroup {
		kind = rbacv1.GroupKind
	}
	sum := sha256.Sum256([]byte(kind + "/" + name))
	return subject(sum[:len(subject{})])
}

// NewBindings makes an empty index.
func NewBindings() *Bindings {
	return &Bindings{namespaces: map[subject]map[string]int{}, sizes: map[string]int{}}
}

// TrimBinding is the transform of the cache of RoleBindings: it keeps hashes of their subjects only.
func TrimBinding(object any) (any, error) {
	found, ok := object.(*rbacv1.RoleBinding)
	if !ok || len(found.Subjects) == 1 && found.Subjects[0].Kind == kindHashes { // a list may pass twice
		return object, nil
	}
	kept := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: found.Namespace, Name: found.Name, UID: found.UID, ResourceVersion: found.ResourceVersion,
	}}
	var hashes []byte
	for _, one := range found.Subjects[:min(len(found.Subjects), mostSubjects)] {
		name := one.Name
		if one.Kind == rbacv1.ServiceAccountKind {
			name = serviceAccounts + one.Namespace + ":" + one.Name
		}
		of := subjectOf(one.Kind == rbacv1.GroupKind, name)
		hashes = append(hashes, of[:]...)
	}
	kept.Subjects = []rbacv1.Subject{{Kind: kindHashes, Name: string(hashes)}}
	return kept, nil
}

// Watch follows the RoleBindings of a cache.
func (b *Bindings) Watch(ctx context.Context, informers cache.Informers) error {
	informer, err := informers.GetInformer(ctx, &rbacv1.RoleBinding{}, cache.BlockUntilSynced(false))
	if err == nil {
		b.source, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(now any) { b.change(nil, now) }, UpdateFunc: b.change, DeleteFunc: func(before any) { b.change(before, nil) },
		})
	}
	if err != nil {
		return fmt.Errorf("watching RoleBindings for queries: %w", err)
	}
	return nil
}

func (b *Bindings) change(before, now any) {
	if tombstone, missed := before.(toolscache.DeletedFinalStateUnknown); missed {
		before = tombstone.Obj
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if gone, ok := before.(*rbacv1.RoleBinding); ok {
		b.count(gone, -1)
	}
	if added, ok := now.(*rbacv1.RoleBinding); ok {
		b.count(added, 1)
	}
}

func (b *Bindings) count(binding *rbacv1.RoleBinding, by int) {
	for _, one := range binding.Subjects {
		for hash := range slices.Chunk([]byte(one.Name), len(subject{})) {
			b.countOne(subject(hash), binding.Namespace, by)
		}
	}
}

func (b *Bindings) countOne(of subject, namespace string, by int) {
	counts := b.namespaces[of]
	before := counts[namespace]
	switch {
	case before == 0 && (by < 0 || b.sizes[namespace] >= mostSubjectsOfNamespace):
		return
	case before == 0 && counts == nil:
		counts = map[string]int{}
		b.namespaces[of] = counts
	}
	if before == 0 {
		b.sizes[namespace]++
	}
	if counts[namespace] = before + by; counts[namespace] > 0 {
		return
	}
	delete(counts, namespace)
	if b.sizes[namespace]--; b.sizes[namespace] == 0 {
		delete(b.sizes, namespace)
	}
	if len(counts) == 0 {
		delete(b.namespaces, of)
	}
}

// candidates are the namespaces whose RoleBindings name a user or one of the user's groups, sorted. Errors: *UnavailableError.
func (b *Bindings) candidates(user *authenticationv1.UserInfo) ([]string, error) {
	if !b.source.HasSynced() {
		return nil, &UnavailableError{"the RoleBindings are being read", errNotRead}
	}
	found := map[string]int{}
	b.mutex.RLock()
	defer b.mutex.RUnlock()
	maps.Copy(found, b.namespaces[subjectOf(false, user.Username)])
	for _, group := range user.Groups {
		maps.Copy(found, b.namespaces[subjectOf(true, group)])
	}
	return slices.Sorted(maps.Keys(found)), nil
}
