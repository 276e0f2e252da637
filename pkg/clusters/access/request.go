package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/clusters/access/certificate"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
)

type request = certificatesv1.CertificateSigningRequest

// maxSaid is how much of a request's condition is reported, in bytes.
const maxSaid = 200

// certify gets the next certificate, one step with each call: store the key, request, approve, sign, take. Between two steps it returns
// a Problem.
func (v *visit) certify(ctx context.Context, found stored) error {
	wanted, err := v.wanted(found)
	if err != nil || found.record.Refusal != nil {
		key, err := certificate.NewKey()
		if err != nil {
			return err
		}
		if found, err = v.saveKey(ctx, found, key, nil); err != nil {
			return err
		}
		if wanted, err = v.wanted(found); err != nil {
			return err
		}
	}
	v.memory.request = wanted.Name
	live, err := v.ask(ctx, wanted)
	if err != nil {
		return err
	}
	if !isSame(live, wanted) {
		return v.refuse(ctx, found, &Problem{Reason: v1.ReasonNameTaken, Message: fmt.Sprintf(
			"%s %q differs from the created request: it is ignored, and a request with another key is created", kindRequest, live.Name)})
	}
	return v.follow(ctx, found, live)
}

// wanted is the request for the stored key. Without a key it returns an error.
func (v *visit) wanted(found stored) (*request, error) {
	signed, public, err := certificate.Request(found.secret.Data[keyNext], v.user(), v.groups())
	if err != nil {
		return nil, err
	}
	about := v.marks.meta("", rights.RequestName(v.marks.id, public))
	about.OwnerReferences = nil // it is in no namespace: an owner may be
	v.label(about.Labels)
	wanted := &request{ObjectMeta: about, Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: signed, SignerName: v.signer(), Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
	}}
	if v.access.Lifetime != nil || v.access.Approval != v1.ApprovalManual {
		seconds := int32(v.lifetime().Seconds())
		wanted.Spec.ExpirationSeconds = &seconds
	}
	return wanted, nil
}

// label says for approvers what the request is for.
func (v *visit) label(labels map[string]string) {
	for key, value := range map[string]string{
		v1.LabelAddon: v.holder.Addon, v1.LabelCluster: v.holder.Cluster.Name, v1.LabelClusterNamespace: v.holder.Cluster.Namespace,
	} {
		if len(validation.IsValidLabelValue(value)) == 0 {
			labels[key] = value
		}
	}
}

func (v *visit) groups() []string {
	if user, groups := v.ownSubject(); user != "" {
		return groups
	}
	return rights.CertificateGroups(v.holder.Cluster.Namespace, v.holder.Cluster.Name, v.holder.Addon)
}

// ask makes sure that the request exists. It recreates a missing one.
func (v *visit) ask(ctx context.Context, wanted *request) (*request, error) {
	live := &request{}
	err := v.keeper.direct.Get(ctx, client.ObjectKeyFromObject(wanted), live)
	if !apierrors.IsNotFound(err) {
		return live, failed(err, "reading %s %q", kindRequest, wanted.Name)
	}
	made := wanted.DeepCopy()
	return made, failed(v.keeper.writer.Create(ctx, made), "creating %s %q", kindRequest, wanted.Name)
}

// isSame compares the signed content. No other client has the key, so the same bytes are ours.
func isSame(live, wanted *request) bool {
	return bytes.Equal(live.Spec.Request, wanted.Spec.Request) && live.Spec.SignerName == wanted.Spec.SignerName &&
		slices.Equal(live.Spec.Usages, wanted.Spec.Usages)
}

// follow takes the next step with a request of ours.
func (v *visit) follow(ctx context.Context, found stored, live *request) error {
	if said, is := has(live, certificatesv1.CertificateDenied); is {
		return v.refuse(ctx, found, &Problem{Reason: v1.ReasonRequestDenied, IsLasting: true, Message: fmt.Sprintf(
			"%s %q was denied%s: to create a new one, change annotation %s", kindRequest, live.Name, said, v1.AnnotationReconcileAt)})
	}
	if said, is := has(live, certificatesv1.CertificateFailed); is {
		return v.refuse(ctx, found, &Problem{Reason: v1.ReasonRequestDenied, IsLasting: true, Message: fmt.Sprintf(
			"signer %q failed with %s %q%s: to create a new one, change annotation %s",
			live.Spec.SignerName, kindRequest, live.Name, said, v1.AnnotationReconcileAt)})
	}
	if len(live.Status.Certificate) > 0 {
		return v.take(ctx, found, live)
	}
	if _, isApproved := has(live, certificatesv1.CertificateApproved); !isApproved {
		if err := v.approve(ctx, live); err != nil {
			return err
		}
	}
	return passing(v1.ReasonProgressing, "%s %q is approved, and signer %q has not signed it yet",
		kindRequest, live.Name, live.Spec.SignerName)
}

// has says whether a request has a condition, and returns its text.
func has(live *request, kind certificatesv1.RequestConditionType) (said string, is bool) {
	for _, condition := range live.Status.Conditions {
		if condition.Type != kind {
			continue
		}
		if condition.Message != "" {
			said = fmt.Sprintf(": %q", text.Cut(text.Message(condition.Message), maxSaid))
		}
		return said, true
	}
	return "", false
}

// approve approves if the platform lets the manager; otherwise an admin has to.
func (v *visit) approve(ctx context.Context, live *request) error {
	required := passing(v1.ReasonApprovalRequired,
		"approve the certificate of access %q: kubectl certificate approve %s", v.access.Name, live.Name)
	if v.access.Approval == v1.ApprovalManual || !slices.Contains(v.keeper.options.Approves, live.Spec.SignerName) {
		return required
	}
	approved := live.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "AddonAccess", LastUpdateTime: metav1.NewTime(v.now),
		Message: fmt.Sprintf("access %q of installation %q in namespace %q", v.access.Name, v.holder.Installation, v.holder.Cluster.Namespace),
	})
	err := v.keeper.writer.SubResource("approval").Update(ctx, approved)
	switch {
	case apierrors.IsForbidden(err):
		return required
	case apierrors.IsConflict(err):
		return isChanging(kindRequest, live.Name)
	}
	return failed(err, "approving %s %q", kindRequest, live.Name)
}

// take stores the signed certificate, if it is what was requested.
func (v *visit) take(ctx context.Context, found stored, live *request) error {
	key := found.secret.Data[keyNext]
	begins, expires, err := certificate.Check(live.Status.Certificate, key, v.user(), v.groups(), v.now)
	refused, is := errors.AsType[*certificate.RefusedError](err)
	switch {
	case is && refused.ByClock: // our clock may be wrong, and right at the next check
		return passing(v1.ReasonCertificateRefused, "the certificate of signer %q for %s %q is not used: %v: compare the clocks of the "+
			"signer's and the manager's nodes, or delete the request, so that a new one is "+
			"created", live.Spec.SignerName, kindRequest, live.Name, refused)
	case is:
		return v.refuse(ctx, found, &Problem{Reason: v1.ReasonCertificateRefused, IsLasting: true, Message: fmt.Sprintf(
			"the certificate of signer %q for %s %q is not used: %v: to request a new one, change annotation %s",
			live.Spec.SignerName, kindRequest, live.Name, refused, v1.AnnotationReconcileAt)})
	case err != nil:
		return err
	}
	// Its life counts from now: with an old begin it would be renewed at once, again and again.
	parts := map[string][]byte{KeyCertificate: live.Status.Certificate, KeyPrivate: key}
	return v.put(ctx, found.secret, parts, record{Issued: v.now, Expires: v.ends(expires, expires.Sub(begins))})
}

// refuse drops the key of a request, so that a certificate for it is never used. A lasting problem is recorded, since the request may
// be deleted before the next check.
func (v *visit) refuse(ctx context.Context, found stored, problem *Problem) error {
	var noted *refusal
	if problem.IsLasting { // half of what parse accepts: Cut adds a mark
		noted = &refusal{ReconcileAt: v.holder.ReconcileAt, Reason: problem.Reason, Message: text.Cut(problem.Message, maxReason/2)}
	}
	if _, err := v.saveKey(ctx, found, nil, noted); err != nil {
		return err
	}
	v.memory.request = ""
	return &problemError{Problem: problem}
}

// saveKey stores the key of the next request next to the current credential. An empty one removes it.
func (v *visit) saveKey(ctx context.Context, found stored, key []byte, noted *refusal) (stored, error) {
	one := found.record
	one.Type, one.Signer, one.Subject, one.Refusal = v.kind(), v.signer(), v.subjectDigest(), noted
	parts := map[string][]byte{keyNext: key}
	if found.isWhole {
		parts[KeyCertificate], parts[KeyPrivate] = found.secret.Data[KeyCertificate], found.secret.Data[KeyPrivate]
	}
	data, err := with(parts, one)
	if err != nil {
		return stored{}, err
	}
	return v.save(ctx, found.secret, data)
}

func isChanging(kind, name string) error {
	return fmt.Errorf("%s %q changed while it was used; it is read again", kind, name)
}
