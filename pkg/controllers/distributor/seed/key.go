package seed

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

type keyState string

const (
	keyThere keyState = "there"
	// keyMissing: the seed has none. It gets ours once every merged object has its mark: until then its manager accepts
	// any object with the role, and after that only marked ones.
	keyMissing keyState = "missing"
	// keyDamaged: the Secret has no usable key.
	keyDamaged keyState = "damaged"
)

// readKey reads the key of the seed, or generates one.
func (s *session) readKey(ctx context.Context) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.platform, Name: v1.SecretCatalogueKey}}
	err := s.client.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	found := secret.Data[v1.MarkKeyField]
	switch {
	case err == nil && len(found) == catalogue.MarkKeySize:
		s.key, s.keyState = found, keyThere
		return nil
	case err == nil:
		s.keyState = keyDamaged
	case apierrors.IsNotFound(err):
		s.keyState = keyMissing
	default:
		return fmt.Errorf("reading the key of marks on merged catalogues, Secret %q: %w", s.platform+"/"+v1.SecretCatalogueKey, err)
	}
	if s.key == nil {
		s.key = make([]byte, catalogue.MarkKeySize)
		_, err = rand.Read(s.key)
		return err
	}
	return nil
}

// writeKey gives the seed its key, once all merged objects are marked with it. The problem is safe for status. A held
// or refused object has no mark yet: the key waits for it.
func (s *session) writeKey(ctx context.Context, want *Wanted) (problem string) {
	if s.keyState == keyThere || !s.allMarked() || !s.copies.AllMarked(want.Sets) {
		return ""
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.platform, Name: v1.SecretCatalogueKey, Labels: map[string]string{v1.LabelManagedBy: ManagedBy},
		},
		Type: corev1.SecretTypeOpaque, Data: map[string][]byte{v1.MarkKeyField: s.key},
	}
	var err error
	if s.keyState == keyDamaged {
		err = s.client.Update(ctx, secret)
	} else {
		err = s.client.Create(ctx, secret)
	}
	switch {
	case err == nil:
		s.keyState = keyThere
	case apierrors.IsNotFound(err): // there is no platform namespace yet: the next list finds it
	case apierrors.IsAlreadyExists(err): // another process was faster: its key counts
		s.observedAt = time.Time{}
	default:
		return fmt.Sprintf("Secret %q, which marks merged catalogues: %s", s.platform+"/"+v1.SecretCatalogueKey, Describe(err))
	}
	return ""
}

func (s *session) marker(kkpVersion string) *marker {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return &marker{namespace: s.namespace, kkpVersion: kkpVersion, key: s.key, stored: maps.Clone(s.stored), stamps: s.stamps}
}

func (s *session) allMarked() bool {
	prefix := catalogue.MarkKeyID(s.key) + ":"
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, found := range s.observed.catalogues {
		if !strings.HasPrefix(found.mark, prefix) {
			return false
		}
	}
	return true
}
