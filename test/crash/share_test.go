package crash_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// sibling is the second installation of a subject's add-on, in a namespace of its own.
func (s *subject) sibling() *kubermaticv1.AddonInstallation {
	return &kubermaticv1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace(), Name: s.name + "-also"}}
}

func (s *subject) siblingOwner() ownership.Owner {
	return ownership.Owner{ClusterUID: s.cluster.UID, Installation: s.sibling().Name}
}

// notSharing says what the sibling lacks to be ready and to use what the subject's installation has.
func (s *subject) notSharing(t testing.TB) error {
	t.Helper()
	sibling, reported, err := s.readSibling(t)
	if err != nil {
		return err
	}
	if want := fmt.Sprintf("belongs to installation %q", s.name); !strings.Contains(reported, want) {
		err = fmt.Errorf("Applied says %q, want %q", reported, want)
	}
	return errors.Join(ready(sibling), err)
}

// notHandedOver says what the sibling lacks to be ready and to have everything itself, by the label and the field manager.
func (s *subject) notHandedOver(t testing.TB) error {
	t.Helper()
	sibling, reported, err := s.readSibling(t)
	if err != nil {
		return err
	}
	if err = ready(sibling); strings.Contains(reported, "belongs to installation") {
		err = errors.Join(err, fmt.Errorf("Applied says %q", reported))
	}
	shared, owner := 0, s.siblingOwner()
	for _, object := range s.look(t).of(s) {
		if object.GetNamespace() != "" || object.GetKind() == "Namespace" {
			continue
		}
		shared++
		managers := 0
		for _, entry := range object.GetManagedFields() {
			if strings.HasPrefix(entry.Manager, "addon-installation/") {
				managers++
			}
			if entry.Manager == owner.FieldManager() && object.GetLabels()[kubermaticv1.LabelInstallation] == owner.ID() {
				managers += 10
			}
		}
		if managers != 11 {
			err = errors.Join(err, fmt.Errorf("%s %s is not the sibling's alone", object.GetKind(), object.GetName()))
		}
	}
	if shared != 2 {
		err = errors.Join(err, fmt.Errorf("there are %d objects of the whole cluster, want 2", shared))
	}
	return err
}

// siblingLeft says whether the sibling is still there.
func (s *subject) siblingLeft(t testing.TB) error {
	t.Helper()
	_, _, err := s.readSibling(t)
	if err == nil {
		return fmt.Errorf("%s is still there", s.sibling().Name)
	}
	return client.IgnoreNotFound(err)
}

func (s *subject) readSibling(t testing.TB) (sibling *kubermaticv1.AddonInstallation, reported string, err error) {
	t.Helper()
	sibling = s.sibling()
	if err := s.seed.Get(t.Context(), client.ObjectKeyFromObject(sibling), sibling); err != nil {
		return nil, "", err
	}
	if applied := meta.FindStatusCondition(sibling.Status.Conditions, kubermaticv1.ConditionApplied); applied != nil {
		reported = applied.Message
	}
	return sibling, reported, nil
}
