package mergedcatalogue

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/lru"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// verdictLimit bounds the verdicts; at that number they are cleared.
const verdictLimit = 8192

// entryLimit is several times the number of add-ons on large platforms.
const entryLimit = 4096

// Marks recognises merged catalogues by the seed's key; without a key, by their role.
type Marks struct {
	logger logr.Logger

	mutex    sync.Mutex
	key      []byte
	verdicts map[types.UID]verdict
	entries  *lru.Cache[types.NamespacedName, parsed]
	wakes    []func()
}

type verdict struct {
	// of is a catalogue's resourceVersion, or the checked parts of a set.
	of       string
	believed bool
}

type parsed struct {
	uid             types.UID
	resourceVersion string
	entry           *catalogue.Entry
}

// New returns Marks without a key.
func New(logger logr.Logger) *Marks {
	return &Marks{
		logger: logger, verdicts: map[types.UID]verdict{}, entries: lru.New[types.NamespacedName, parsed](entryLimit, nil),
	}
}

// Believes says whether an object is a merged catalogue that the distributor wrote.
func (m *Marks) Believes(object *v1.AddonCatalogue) bool {
	if object.Labels[v1.LabelRole] != v1.RoleMerged {
		return false
	}
	return m.evaluate(object.UID, object.ResourceVersion, func() bool { return catalogue.IsMarked(m.key, object) }, func() {
		m.logger.Info("an object with the role of merged catalogues was not written by the distributor, and is ignored",
			"catalogue", object.Name)
	})
}

// evaluate says whether the distributor wrote an object, which it finds out, and tells of one that it did not write, once for each version.
func (m *Marks) evaluate(uid types.UID, version string, isMarked func() bool, report func()) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.key == nil {
		return true
	}
	if known, ok := m.verdicts[uid]; ok && uid != "" && known.of == version {
		return known.believed
	}
	found := verdict{version, isMarked()}
	if len(m.verdicts) >= verdictLimit {
		clear(m.verdicts)
	}
	m.verdicts[uid] = found
	if !found.believed {
		report()
	}
	return found.believed
}

// Entry reads an add-on of the merged catalogue, parsed once; nil if none has a valid mark.
func (m *Marks) Entry(ctx context.Context, reader client.Reader, key client.ObjectKey) (*catalogue.Entry, error) {
	object := &v1.AddonCatalogue{}
	err := reader.Get(ctx, key, object)
	if apierrors.IsNotFound(err) || err == nil && (!m.Believes(object) || len(object.Spec.Addons) == 0) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if known, ok := m.entries.Get(key); ok && known.uid == object.UID && known.resourceVersion == object.ResourceVersion {
		return known.entry, nil
	}
	entry, err := catalogue.NewEntry(object)
	if err != nil {
		return nil, err
	}
	m.entries.Put(key, parsed{object.UID, object.ResourceVersion, entry}, lru.Forever)
	return entry, nil
}

// Addons are the names of the add-ons of all merged catalogues with a valid mark, sorted.
func (m *Marks) Addons(ctx context.Context, reader client.Reader, namespace string) ([]string, error) {
	var merged v1.AddonCatalogueList
	if err := reader.List(ctx, &merged, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the merged AddonCatalogues of namespace %q: %w", namespace, err)
	}
	var names []string
	for i := range merged.Items {
		if m.Believes(&merged.Items[i]) {
			names = append(names, merged.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// OnChange sets a function to call when the key changes, since then any verdict may change.
func (m *Marks) OnChange(wake func()) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.wakes = append(m.wakes, wake)
}

// Read reads the seed's key. The reader must bypass caches: Read runs before them, so that no
// object is accepted without a check.
func (m *Marks) Read(ctx context.Context, reader client.Reader, namespace string) error {
	secret := &corev1.Secret{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: v1.SecretCatalogueKey}, secret)
	if apierrors.IsNotFound(err) {
		m.logger.Info("the master has not written the key of merged catalogues yet: their role alone identifies them",
			"secret", namespace+"/"+v1.SecretCatalogueKey)
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the key of merged catalogues, Secret %q: %w", namespace+"/"+v1.SecretCatalogueKey, err)
	}
	m.adopt(secret)
	return nil
}

// Follow reads the key again when its Secret changes, from a cache of only that Secret.
func (m *Marks) Follow(ctx context.Context, secrets cache.Informers) error {
	informer, err := secrets.GetInformer(ctx, &corev1.Secret{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching Secret %q: %w", v1.SecretCatalogueKey, err)
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    m.put,
		UpdateFunc: func(_, now any) { m.put(now) },
		DeleteFunc: func(any) { m.Forget() },
	})
	if err != nil {
		return fmt.Errorf("watching Secret %q: %w", v1.SecretCatalogueKey, err)
	}
	return nil
}

// Forget removes the key: then only the role counts.
func (m *Marks) Forget() { m.adopt(&corev1.Secret{}) }

func (m *Marks) put(object any) {
	if secret, ok := object.(*corev1.Secret); ok && secret.Name == v1.SecretCatalogueKey {
		m.adopt(secret)
	}
}

// adopt sets a key and calls the functions of OnChange. A Secret without a valid key means none.
func (m *Marks) adopt(secret *corev1.Secret) {
	key := secret.Data[v1.MarkKeyField]
	if len(key) != catalogue.MarkKeySize {
		key = nil
	}
	m.mutex.Lock()
	if slices.Equal(m.key, key) {
		m.mutex.Unlock()
		return
	}
	m.key = slices.Clone(key)
	clear(m.verdicts)
	wakes := slices.Clone(m.wakes)
	m.mutex.Unlock()
	if key == nil {
		m.logger.Info("the key of merged catalogues was deleted: their role alone identifies them until the master writes another one")
	} else {
		m.logger.Info("marks identify merged catalogues", "keyID", catalogue.MarkKeyID(key))
	}
	for _, wake := range wakes {
		wake()
	}
}
