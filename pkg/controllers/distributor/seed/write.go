package seed

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

const writesAtOnce = 8

// failures of a plan, by name of the object, safe for status.
type failures struct {
	mutex               sync.Mutex
	catalogues, secrets map[string]string
}

func (f *failures) any() bool { return len(f.catalogues)+len(f.secrets) > 0 }

// carryOut carries out the plan, and continues after failures: Secrets before entries that name them.
func (s *session) carryOut(ctx context.Context, want *Wanted, with *marker, todo plan) *failures {
	failed := &failures{catalogues: map[string]string{}, secrets: map[string]string{}}
	s.each(ctx, todo.writeSecret, failed.secret, func(ctx context.Context, name string) error {
		return s.writeSecret(ctx, name, want.Secrets.Copies[name])
	})
	s.each(ctx, todo.write, failed.catalogue, func(ctx context.Context, name string) error {
		return s.writeCatalogue(ctx, name, want.Addons[name], with.annotations(name, want.Addons[name], want.Leave))
	})
	s.each(ctx, todo.status, failed.catalogue, s.repairStatus)
	s.each(ctx, todo.remove, failed.catalogue, func(ctx context.Context, name string) error {
		return s.remove(ctx, &v1.AddonCatalogue{ObjectMeta: s.named(name)}, s.observed.catalogues)
	})
	s.each(ctx, todo.removeSecret, failed.secret, func(ctx context.Context, name string) error {
		return s.remove(ctx, &corev1.Secret{ObjectMeta: s.named(name)}, s.observed.secrets)
	})
	return failed
}

func (s *session) each(ctx context.Context, names []string, fail func(string, error), do func(context.Context, string) error) {
	var group errgroup.Group
	group.SetLimit(writesAtOnce)
	for _, name := range names {
		group.Go(func() error {
			if err := do(ctx, name); err != nil {
				fail(name, err)
			}
			return nil
		})
	}
	_ = group.Wait() // failures are passed to fail
}

func (f *failures) catalogue(name string, err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.catalogues[name] = fmt.Sprintf("AddonCatalogue %q: %s", name, Describe(err))
	if apierrors.IsAlreadyExists(err) {
		f.catalogues[name] += "; nothing is installed from it until then"
	}
}

func (f *failures) secret(name string, err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.secrets[name] = fmt.Sprintf("Secret %q: %s", name, Describe(err))
}

func (s *session) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name}
}

func (s *session) find(of map[string]observedObject, name string) (observedObject, bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	found, ok := of[name]
	return found, ok
}

func (s *session) noteWrite(of map[string]observedObject, object client.Object) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	of[object.GetName()] = observe(object)
}

func (s *session) writeCatalogue(ctx context.Context, name string, addon *catalogue.MergedAddon, annotations map[string]string) error {
	object := &v1.AddonCatalogue{ObjectMeta: s.named(name), Spec: addon.Spec}
	object.Labels = map[string]string{v1.LabelRole: v1.RoleMerged, v1.LabelManagedBy: ManagedBy} // observe finds it by these labels
	object.Annotations = annotations
	before, _ := s.find(s.observed.catalogues, name)
	expected := before.generation
	if before.edited || before.digest != addon.Digest {
		expected++
	}
	object.Annotations[v1.AnnotationGeneration] = strconv.FormatInt(expected, 10)
	err := s.replace(ctx, object, s.observed.catalogues)
	if apierrors.IsInvalid(err) {
		err = s.recreate(ctx, object, err)
	}
	if err == nil {
		err = s.correct(ctx, object, addon.Digest)
	}
	if err != nil {
		return err
	}
	return s.writeStatus(ctx, object)
}

// correct writes the generation, and the mark if the seed stores other content than was sent, for example a default
// of its CRD.
func (s *session) correct(ctx context.Context, object *v1.AddonCatalogue, digest string) error {
	before := object.DeepCopy()
	object.Annotations[v1.AnnotationGeneration] = strconv.FormatInt(object.Generation, 10)
	content, err := catalogue.ContentDigest(object)
	if err != nil {
		return fmt.Errorf("the seed stored it with content that differs from what was sent: %w", err)
	}
	if content != digest {
		object.Annotations[v1.AnnotationMark] = catalogue.Mark(s.key, object, content)
	}
	s.rememberStored(object.Name+" "+digest, content, content != digest)
	if maps.Equal(before.Annotations, object.Annotations) {
		return nil
	}
	if err := s.client.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return err
	}
	s.noteWrite(s.observed.catalogues, object)
	return nil
}

// rememberStored stores the digest of the content that the seed stores in place of the sent one.
func (s *session) rememberStored(wanted, content string, other bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.stored, wanted)
	if other {
		s.stored[wanted] = content
	}
}

// recreate replaces an object whose type changed, which is immutable. It deletes no object that the seed would not
// recreate: first, the seed's admission evaluates the new object, by a dry run that finds the name taken, and its
// etcd accepts a write of the present one.
func (s *session) recreate(ctx context.Context, object *v1.AddonCatalogue, refusal error) error {
	var live v1.AddonCatalogue
	if err := s.client.Get(ctx, client.ObjectKeyFromObject(object), &live); err != nil {
		return fmt.Errorf("%w, and the seed's AddonCatalogue %q can't be read to replace it", refusal, object.Name)
	}
	if live.Spec.Type == object.Spec.Type || live.Labels[v1.LabelRole] != v1.RoleMerged {
		return refusal
	}
	object.ResourceVersion = ""
	if err := s.client.Create(ctx, object.DeepCopy(), client.DryRunAll); !apierrors.IsAlreadyExists(err) {
		return cmp.Or(err, refusal)
	}
	before := live.DeepCopy()
	metav1.SetMetaDataAnnotation(&live.ObjectMeta, v1.AnnotationGeneration, live.ResourceVersion) // which is another one each time
	if err := s.client.Patch(ctx, &live, client.MergeFrom(before)); err != nil {
		return err
	}
	if err := s.remove(ctx, &live, s.observed.catalogues); err != nil {
		return err
	}
	return s.replace(ctx, object, s.observed.catalogues)
}

func (s *session) writeSecret(ctx context.Context, name string, source SecretCopy) error {
	object := &corev1.Secret{ObjectMeta: s.named(name), Type: corev1.SecretTypeOpaque, Data: source.Data}
	object.Labels = map[string]string{v1.LabelUse: cmp.Or(source.Use, v1.UseSource), v1.LabelManagedBy: ManagedBy}
	object.Annotations = map[string]string{v1.AnnotationDigest: source.Revision}
	if source.Hosts != "" {
		object.Annotations[v1.AnnotationHosts] = source.Hosts
	}
	if source.UsedBy != nil {
		object.Annotations[v1.AnnotationUsedBy] = *source.UsedBy
	}
	return s.replace(ctx, object, s.observed.secrets)
}

// replace creates an object, or replaces the observed one. It fails if another object has the name.
func (s *session) replace(ctx context.Context, object client.Object, of map[string]observedObject) error {
	before, ok := s.find(of, object.GetName())
	var err error
	if ok {
		object.SetResourceVersion(before.resourceVersion)
		err = s.client.Update(ctx, object)
	} else {
		err = s.client.Create(ctx, object)
	}
	if err != nil {
		return err
	}
	s.noteWrite(of, object)
	return nil
}

// remove deletes the observed object, and none that was created since.
func (s *session) remove(ctx context.Context, object client.Object, of map[string]observedObject) error {
	name := object.GetName()
	if before, ok := s.find(of, name); ok {
		err := s.client.Delete(ctx, object, client.Preconditions{UID: &before.uid})
		if client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(of, name)
	return nil
}
