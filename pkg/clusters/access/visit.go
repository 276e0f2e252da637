package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
)

// Kinds, as messages name them.
const (
	kindAccount = "ServiceAccount"
	kindRole    = "Role"
	kindBinding = "RoleBinding"
	kindSecret  = "Secret"
	kindRequest = "CertificateSigningRequest"
	// kindOutbox distinguishes the outbox from the stored Secret, in memory.
	kindOutbox = "outbox"
)

const (
	// firstWait and mostWait are the pauses between tries to get the next credential, and between checks of a request.
	firstWait, mostWait = time.Second, time.Minute
	// lookAgain is the time between checks of another owner's object of our name, or of a shared namespace.
	lookAgain = time.Minute
)

type meta = metav1.PartialObjectMetadata

func secretMeta() *meta {
	return &meta{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kindSecret}}
}

func secretMetas() *metav1.PartialObjectMetadataList {
	return &metav1.PartialObjectMetadataList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: kindSecret + "List"}}
}

// credential is a requested credential, and its holder.
type credential struct {
	holder Holder
	marks  marks
	access v1.Access
}

func (h Holder) credential(access v1.Access) credential {
	return credential{holder: h, marks: h.marks(), access: access}
}

func (c *credential) meta(name string) metav1.ObjectMeta {
	return c.marks.meta(c.holder.Cluster.Namespace, name)
}

func (c *credential) agentName() string {
	return rights.AgentName(c.holder.Installation, c.access.Name)
}

func (c *credential) outboxName() string { return rights.OutboxName(c.holder.Installation) }

// storedName is the name of the Secret on the seed.
func (c *credential) storedName() string { return rights.StoredName(c.marks.id, c.access.Name) }

func (c *credential) kind() v1.AccessType { return rights.TypeOf(c.access) }

// signer is "" for tokens.
func (c *credential) signer() string {
	if c.kind() == v1.AccessByToken {
		return ""
	}
	return cmp.Or(c.access.SignerName, v1.SignerAPIServer)
}

// isForHub says whether the credential is for the API server.
func (c *credential) isForHub() bool { return rights.IsForAPIServer(c.access) }

// isRotated says whether a user requested a rotation since the Secret was made. Removing the annotation requests nothing.
func (c *credential) isRotated(secret metav1.Object) bool {
	return c.holder.RotateAt != "" && secret.GetAnnotations()[v1.AnnotationRotateAt] != c.holder.RotateAt
}

// fits says whether the stored credential has the requested type and signer.
func (c *credential) fits(one record) bool {
	return one.Type == "" || one.Type == c.kind() && one.Signer == c.signer() && one.Subject == c.subjectDigest()
}

// ownSubject is the subject that the version names; an empty user if it names none, or one that is refused: allowed
// reports that.
func (c *credential) ownSubject() (user string, groups []string) {
	user, groups, err := rights.Subject(c.access, c.subjectData(), c.holder.Core)
	if err != nil {
		return "", nil
	}
	return user, groups
}

func (c *credential) subjectData() rights.SubjectData {
	return rights.SubjectData{Addon: c.holder.Addon, Cluster: c.holder.Cluster.Name, Namespace: c.holder.Cluster.Namespace}
}

// subjectDigest distinguishes subjects that versions name; "" if the version names none.
func (c *credential) subjectDigest() string {
	user, groups := c.ownSubject()
	if user == "" {
		return ""
	}
	hash := sha256.Sum256([]byte(strings.Join(append([]string{user}, groups...), "\n")))
	return hex.EncodeToString(hash[:])
}

// visit is one reconciliation of one credential.
type visit struct {
	credential
	keeper *Keeper
	memory *remembered
	now    time.Time
}

// held has the cached objects of one credential; nil: none.
type held struct {
	account *corev1.ServiceAccount
	role    *rbacv1.Role
	binding *rbacv1.RoleBinding
	secret  *meta
	outbox  *meta
}

func (v *visit) look(ctx context.Context) (held, error) {
	var at held
	var failures [5]error
	at.account, failures[0] = find(ctx, v, v.agentName(), &corev1.ServiceAccount{})
	at.role, failures[1] = find(ctx, v, v.agentName(), &rbacv1.Role{})
	at.binding, failures[2] = find(ctx, v, v.agentName(), &rbacv1.RoleBinding{})
	at.secret, failures[3] = find(ctx, v, v.storedName(), secretMeta())
	if v.access.Outbox {
		at.outbox, failures[4] = find(ctx, v, v.outboxName(), secretMeta())
	}
	if at.secret != nil && at.secret.UID == v.memory.retired {
		at.secret = nil
	}
	return at, errors.Join(failures[:]...)
}

func find[T any, P interface {
	*T
	client.Object
}](ctx context.Context, v *visit, name string, object P) (P, error) {
	err := v.keeper.held.Get(ctx, client.ObjectKey{Namespace: v.holder.Cluster.Namespace, Name: name}, object)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, failed(err, "looking for %q in the cache", name)
	}
	return object, nil
}

// keep reconciles: revocations, rights, Secret, credential.
func (v *visit) keep(ctx context.Context, p platform) (Status, error) {
	at, err := v.look(ctx)
	if err != nil {
		return v.status(p, facts{}), err
	}
	if at.secret != nil && v.isRotated(at.secret) && v.marks.whose(at.secret) == ours {
		if at, err = v.retire(ctx, at); err != nil {
			return v.status(p, facts{}), err
		}
	}
	prepared, err := v.prepare(ctx, at, p)
	if stop, is := errors.AsType[*problemError](err); is {
		return v.blocked(ctx, at, p, stop)
	}
	if err != nil {
		return v.status(p, facts{}), err
	}
	problem, err := v.next(ctx, prepared)
	return v.status(p, facts{problem: problem, next: v.memory.retry}), err
}

// ready is a credential's prepared Secret, with its rights.
type ready struct {
	// account is the UID of the ServiceAccount, for a token.
	account types.UID
	stored  stored
}

// prepare makes rights and the Secret as they should be. A Problem is why it can't.
func (v *visit) prepare(ctx context.Context, at held, p platform) (ready, error) {
	rules, err := v.allowed(at.role, p)
	if err != nil {
		return ready{}, err
	}
	if err := v.dropSurplus(ctx, at); err != nil {
		return ready{}, err
	}
	if v.access.Outbox {
		if err := v.keepOutbox(ctx, at.outbox); err != nil {
			return ready{}, err
		}
	}
	if v.kind() == v1.AccessByCertificate {
		return v.prepareCertificate(ctx, at, rules)
	}
	account, err := v.settle(ctx, v.account(at.account))
	if err != nil {
		return ready{}, err
	}
	subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.GetNamespace(), Name: account.GetName()}
	if err := v.grant(ctx, at, rules, subject); err != nil {
		return ready{}, err
	}
	found, err := v.store(ctx, at)
	v.memory.account = account.GetUID()
	return ready{account: account.GetUID(), stored: found}, err
}

// prepareCertificate begins with the Secret: its UID gives the user its nonce.
func (v *visit) prepareCertificate(ctx context.Context, at held, rules []rbacv1.PolicyRule) (ready, error) {
	found, err := v.store(ctx, at)
	v.memory.account = ""
	if err != nil || !v.isForHub() {
		return ready{stored: found}, err
	}
	return ready{stored: found}, v.grant(ctx, at, rules, rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: v.user()})
}

func (v *visit) grant(ctx context.Context, at held, rules []rbacv1.PolicyRule, subject rbacv1.Subject) error {
	if _, err := v.settle(ctx, v.role(at.role, rules)); err != nil {
		return err
	}
	_, err := v.settle(ctx, v.binding(at.binding, subject))
	return err
}

// status is completed by the known state of the credential.
func (v *visit) status(p platform, about facts) Status {
	known, hub := v.memory.kept, p.hub
	about.now, about.has = v.now, v.memory.counts()
	about.expires, about.renewAt = known.record.Expires, v.renewAt(known.record)
	s := Status{
		Name: v.access.Name, Type: v.kind(), Secret: rights.SecretName(v.holder.Installation, v.access), Request: v.memory.request,
		Subject: v.subject(), Signer: v.signer(),
	}
	if v.kind() == v1.AccessByCertificate {
		s.Groups = v.groups()
	}
	if !v.isForHub() {
		hub = Hub{}
	}
	if about.has {
		s.Digest = digest(known.record.Serial, hub)
	}
	return about.complete(s)
}

// subject is the user of the credential; "" if it is not known yet.
func (v *visit) subject() string {
	switch {
	case v.kind() == v1.AccessByToken:
		return "system:serviceaccount:" + v.holder.Cluster.Namespace + ":" + v.agentName()
	case v.memory.kept.uid == "":
		return ""
	}
	return v.user()
}
