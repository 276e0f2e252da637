package seed

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/fence"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/copies"
	"github.com/trellis-addons/trellis/pkg/controllers/distributor/usage"
)

// fieldOwner is the field manager of this controller's writes.
const fieldOwner = "trellis-distributor"

const (
	listedAtOnce    = 250
	annotationLimit = 256 << 10
)

var listTotals = remote.Totals{Calls: 80, Items: 20_000, Bytes: 64 << 20, Time: time.Minute}

// session is a client for one seed with one kubeconfig, and the memory about that seed.
type session struct {
	id        string
	namespace string
	remote    *remote.Client
	client    client.Client
	counter   rest.Interface

	// platform is the platform namespace; key and keyState are for the marks.
	platform string
	key      []byte
	keyState keyState

	mutex    sync.Mutex
	observed observed
	// stored and stamps are those of a marker.
	stored map[string]string
	stamps map[string]knownStamp
	// observedAt is when the seed was listed; zero: it must be listed again.
	observedAt time.Time
	// setsProblem is why copies of sets could not be listed before everything else, so that there is no watch; empty if
	// they could, or there were none.
	setsProblem string

	// copies are those of AddonSets, followed while a watch of them runs: endWatch ends it. broke says that it broke
	// since its start, which was before the seed was listed.
	copies    *copies.Keeper
	followed  atomic.Bool
	broke     atomic.Bool
	endWatch  context.CancelFunc
	following sync.WaitGroup
}

var seedScheme = runtime.NewScheme()

func init() {
	utilruntime.Must(clientgoscheme.AddToScheme(seedScheme))
	utilruntime.Must(v1.AddToScheme(seedScheme))
}

// seedMapper uses no discovery: the kinds are few and fixed.
func seedMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion, v1.GroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(v1.GroupVersion.WithKind("AddonCatalogue"), meta.RESTScopeNamespace)
	mapper.Add(v1.GroupVersion.WithKind("AddonSet"), meta.RESTScopeNamespace)
	return mapper
}

func newSession(to Target, platform, namespace string, budget *remote.Budget, fence *fence.Fence) (*session, error) {
	foreign, err := remote.New(to.Config, remote.Options{Budget: budget, Heaviest: heaviestAnswer, Fence: fence})
	if err != nil {
		return nil, fmt.Errorf("creating a transport: %w", err)
	}
	plain, err := foreign.Kinds(client.Options{Scheme: seedScheme, Mapper: seedMapper()})
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	counter, err := usage.NewClient(foreign)
	if err != nil {
		return nil, err
	}
	// A field that the seed's CRD does not know is an error.
	owned := client.WithFieldOwner(client.WithFieldValidation(plain, metav1.FieldValidationStrict), fieldOwner)
	return &session{
		id: to.ConfigID, namespace: namespace, remote: foreign, client: owned, counter: counter, platform: platform,
		stored: map[string]string{}, stamps: map[string]knownStamp{},
		copies: copies.NewKeeper(owned, to.Name, namespace), endWatch: func() {},
	}, nil
}

func (s *session) uid(ctx context.Context) (types.UID, error) {
	var system corev1.Namespace
	if err := s.client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system); err != nil {
		return "", fmt.Errorf("reading the seed's identity: %w", err)
	}
	if !remote.IsUID(system.UID) {
		return "", &remote.MisbehavesError{Did: "its namespace kube-system has no UID"}
	}
	return system.UID, nil
}

func (s *session) observe(ctx context.Context, now time.Time) error {
	if err := s.ensureNamespace(ctx); err != nil {
		return err
	}
	if err := s.readKey(ctx); err != nil {
		return err
	}
	catalogues, err := s.list(ctx, v1.GroupVersion.WithKind("AddonCatalogueList"), client.MatchingLabels{v1.LabelRole: v1.RoleMerged})
	if err != nil {
		return err
	}
	secrets, err := s.list(ctx, corev1.SchemeGroupVersion.WithKind("SecretList"), client.MatchingLabels{v1.LabelManagedBy: ManagedBy})
	if err != nil {
		return err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.observed = observed{
		catalogues: observeAll(catalogues, s.observed.catalogues), secrets: observeAll(secrets, s.observed.secrets),
	}
	s.observedAt = now
	s.copies.Evaluate(s.key)
	return nil
}

func (s *session) list(
	ctx context.Context, kind schema.GroupVersionKind, labels client.MatchingLabels,
) ([]metav1.PartialObjectMetadata, error) {
	ctx = remote.Within(ctx, "the list of the master's objects", listTotals)
	var all []metav1.PartialObjectMetadata
	for next, more := "", true; more; more = next != "" {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(kind)
		err := s.client.List(ctx, &list, client.InNamespace(s.namespace), labels, client.Limit(listedAtOnce), client.Continue(next))
		if err != nil {
			return nil, fmt.Errorf("listing the master's objects: %w", err)
		}
		all, next = append(all, list.Items...), list.Continue
	}
	return all, nil
}

// observeAll reads listed metadata. A Secret was edited if it changed since our last write; catalogues show edits
// themselves. Whether a status is written is known from before, or from managedFields.
func observeAll(items []metav1.PartialObjectMetadata, before map[string]observedObject) map[string]observedObject {
	found := make(map[string]observedObject, len(items))
	for i := range items {
		now := observe(&items[i])
		was, known := before[items[i].Name]
		if !isMerged(&items[i]) && known && was.uid == now.uid && was.resourceVersion != now.resourceVersion {
			now.edited = true
		}
		if known && was.uid == now.uid && was.statusAt == now.generation || statusFollowed(&items[i]) {
			now.statusAt = now.generation
		}
		found[items[i].Name] = now
	}
	return found
}

// bounded drops a seed's text that is longer than any of ours.
func bounded(text string) string {
	if len(text) > 256 {
		return ""
	}
	return text
}

// observe reads the metadata of one object.
func observe(object client.Object) observedObject {
	annotations := object.GetAnnotations()
	found := observedObject{
		uid: types.UID(bounded(string(object.GetUID()))), resourceVersion: bounded(object.GetResourceVersion()),
		generation: object.GetGeneration(), forValues: object.GetLabels()[v1.LabelUse] == v1.UseValues,
		digest: bounded(annotations[v1.AnnotationDigest]), stamp: bounded(annotations[v1.AnnotationDigest]), statusAt: -1,
	}
	if isMerged(object) {
		found.stamp, found.mark = stampOf(annotations), bounded(annotations[v1.AnnotationMark])
		found.origins = slices.Concat(originsOf(annotations[v1.AnnotationVersions]))
		if secrets, known := annotations[v1.AnnotationSecrets]; known && len(secrets) <= annotationLimit {
			found.secrets = strings.Split(secrets, ",")
		}
		found.edited = annotations[v1.AnnotationGeneration] != strconv.FormatInt(found.generation, 10)
	}
	return found
}

// originsOf are the catalogues that a merged one was made of, and those in git that these were generated from.
func originsOf(annotation string) (catalogues, inGit []string) {
	var versions map[string]catalogue.Origin
	if len(annotation) > annotationLimit {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(annotation), &versions); err != nil {
		return nil, nil
	}
	names, parents := sets.New[string](), sets.New[string]()
	for _, origin := range versions {
		names.Insert(origin.Catalogue)
		parents.Insert(origin.Git)
	}
	return sets.List(names), sets.List(parents.Delete(""))
}

func isMerged(object client.Object) bool { return object.GetLabels()[v1.LabelRole] == v1.RoleMerged }

// ensureNamespace creates the catalogue namespace if it is missing.
func (s *session) ensureNamespace(ctx context.Context) error {
	var have corev1.Namespace
	switch err := s.client.Get(ctx, client.ObjectKey{Name: s.namespace}, &have); {
	case err == nil:
		return nil
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("reading namespace %q: %w", s.namespace, err)
	}
	err := s.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating namespace %q: %w", s.namespace, err)
	}
	return nil
}
