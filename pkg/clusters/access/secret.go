package access

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/access/certificate"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
)

// store makes sure that the Secret exists, and returns its content: from memory if the cache shows that it did not change. Then the
// answer does not have the Secret itself.
func (v *visit) store(ctx context.Context, at held) (stored, error) {
	known, secret := v.memory.kept, at.secret
	if secret != nil && secret.UID == known.uid && secret.DeletionTimestamp == nil && v.marks.areOn(secret) &&
		(secret.ResourceVersion == known.version || secret.ResourceVersion == known.seen) && v.fits(known.record) {
		return stored{record: known.record, isWhole: known.isWhole}, nil
	}
	if secret == nil && known.uid == "" {
		made, err := v.make(ctx)
		if !apierrors.IsAlreadyExists(err) {
			return made, err
		}
	}
	found, err := v.reread(ctx, at)
	if err == nil && secret != nil {
		v.memory.kept.seen = secret.ResourceVersion
	}
	return found, err
}

// reread reads the Secret past the cache. It recreates a Secret that is unusable.
func (v *visit) reread(ctx context.Context, at held) (stored, error) {
	secret := &corev1.Secret{}
	err := v.keeper.direct.Get(ctx, client.ObjectKey{Namespace: v.holder.Cluster.Namespace, Name: v.storedName()}, secret)
	if apierrors.IsNotFound(err) {
		return v.make(ctx)
	}
	if err != nil {
		return stored{}, failed(err, "reading Secret %q", v.storedName())
	}
	found, of := read(secret), v.marks.whose(secret)
	switch {
	case of == anothers:
		return stored{}, nameTaken(kindSecret, secret.Name)
	case secret.DeletionTimestamp != nil:
		return stored{}, isGoing(kindSecret, secret.Name)
	case of == ofPrevious || secret.Type != typeStored || v.isRotated(secret) || !v.fits(found.record):
		at.secret = &meta{ObjectMeta: secret.ObjectMeta}
		if _, err := v.retire(ctx, at); err != nil {
			return stored{}, err
		}
		return v.make(ctx)
	case !v.marks.areOn(secret):
		return v.save(ctx, secret, secret.Data)
	}
	v.remember(found)
	return found, nil
}

// retire ends issued credentials: a token ends with the Secret that it is bound to, a certificate when its user has no binding.
func (v *visit) retire(ctx context.Context, at held) (held, error) {
	if at.binding != nil && v.marks.whose(at.binding) == ours && bindsUser(at.binding) {
		if err := v.withdraw(ctx, at.binding); err != nil {
			return at, err
		}
		at.binding = nil
	}
	if err := v.keeper.revokeStored(ctx, client.ObjectKeyFromObject(at.secret), v.isOf(at.secret.UID)); err != nil {
		return at, err
	}
	v.memory.retired, v.memory.kept, at.secret = at.secret.UID, kept{}, nil
	v.memory.rest()
	return at, nil
}

func (v *visit) isOf(uid types.UID) func(metav1.Object) bool {
	return func(live metav1.Object) bool { return live.GetUID() == uid }
}

func bindsUser(binding *rbacv1.RoleBinding) bool {
	return len(binding.Subjects) > 0 && binding.Subjects[0].Kind == rbacv1.UserKind
}

// make creates the Secret: with a key for a certificate, since the request needs it, otherwise empty, since a token is bound to its
// UID.
func (v *visit) make(ctx context.Context) (stored, error) {
	secret := &corev1.Secret{ObjectMeta: v.meta(v.storedName()), Type: typeStored}
	if v.holder.RotateAt != "" {
		secret.Annotations[v1.AnnotationRotateAt] = v.holder.RotateAt
	}
	if v.kind() == v1.AccessByCertificate {
		key, err := certificate.NewKey()
		if err != nil {
			return stored{}, err
		}
		now := record{Type: v.kind(), Signer: v.signer(), Subject: v.subjectDigest()}
		if secret.Data, err = with(map[string][]byte{keyNext: key}, now); err != nil {
			return stored{}, err
		}
	}
	if err := v.keeper.writer.Create(ctx, secret); err != nil {
		return stored{}, failed(err, "creating Secret %q", secret.Name)
	}
	made := read(secret)
	v.remember(made)
	return made, nil
}

// save writes the Secret as it was read, with other data. If another client wrote it meanwhile, that is a conflict.
func (v *visit) save(ctx context.Context, secret *corev1.Secret, data map[string][]byte) (stored, error) {
	changed := secret.DeepCopy()
	changed.Data = data
	v.marks.put(changed)
	if err := v.keeper.writer.Update(ctx, changed); err != nil {
		return stored{}, failed(err, "writing Secret %q", secret.Name)
	}
	saved := read(changed)
	v.remember(saved)
	return saved, nil
}

// remember records what was read or written. The cache's previous version stays the one that it was compared with.
func (v *visit) remember(found stored) {
	known := kept{uid: found.secret.UID, version: found.secret.ResourceVersion, record: found.record, isWhole: found.isWhole}
	if v.memory.kept.uid == known.uid {
		known.seen = v.memory.kept.version
	}
	v.memory.kept = known
}

// fresh is the current Secret: a write must be based on it.
func (v *visit) fresh(ctx context.Context, known stored) (stored, error) {
	if known.secret != nil {
		return known, nil
	}
	secret := &corev1.Secret{}
	err := v.keeper.direct.Get(ctx, client.ObjectKey{Namespace: v.holder.Cluster.Namespace, Name: v.storedName()}, secret)
	if err != nil {
		return stored{}, failed(err, "reading Secret %q", v.storedName())
	}
	if v.marks.whose(secret) != ours || secret.UID != v.memory.kept.uid {
		v.memory.kept = kept{} // the next reconciliation starts from the beginning
		return stored{}, isChanging(kindSecret, secret.Name)
	}
	found := read(secret)
	v.remember(found)
	return found, nil
}

// put stores a credential with a new serial.
func (v *visit) put(ctx context.Context, secret *corev1.Secret, parts map[string][]byte, issue record) error {
	issue.Type, issue.Signer, issue.Subject, issue.Serial = v.kind(), v.signer(), v.subjectDigest(), rand.Text()
	issue.Issued, issue.Expires = issue.Issued.UTC().Truncate(time.Second), issue.Expires.UTC().Truncate(time.Second)
	issue.Sum = sum(secret.UID, issue, parts)
	data, err := with(parts, issue)
	if err != nil {
		return err
	}
	_, err = v.save(ctx, secret, data)
	return err
}

// user is the user in certificates. Its nonce comes from the Secret's UID: another Secret has another user, and the previous one
// has no binding.
func (v *visit) user() string {
	if user, _ := v.ownSubject(); user != "" {
		return user
	}
	sum := sha256.Sum256([]byte(v.memory.kept.uid))
	nonce := hex.EncodeToString(sum[:8])
	return rights.CertificateUser(v.holder.Cluster.Namespace, v.holder.Cluster.Name, v.holder.Addon, nonce)
}
