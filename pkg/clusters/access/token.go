package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/backoff"
	"github.com/trellis-addons/trellis/pkg/base/times"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
)

// defaultLifetime is requested if a version sets none.
const defaultLifetime = 24 * time.Hour

// errNoToken is an answer without a usable token.
var errNoToken = errors.New("the API server issued a token that is already expired or has no expiry")

func (v *visit) renewAt(one record) time.Time {
	return rights.RenewAt(v.storedName(), one.Issued, one.Expires)
}

// isDue says whether to issue the next credential: there is none, it is another account's, its time has come, or the clock was set back
// since it was issued, so that its time would come too late.
func (v *visit) isDue(at ready) bool {
	found := at.stored
	return !found.isWhole || found.record.Account != at.account || !v.now.Before(v.renewAt(found.record)) ||
		times.IsAhead(found.record.Issued, v.now)
}

// ends is the end of a credential that was granted just now for a life, by the manager's clock: the issuer's may be
// ahead.
func (v *visit) ends(expires time.Time, life time.Duration) time.Time {
	if own := v.now.Add(life); times.IsAhead(expires, own) {
		return own
	}
	return expires
}

// next issues a credential if one is due. A Problem is why it is not issued yet; an error is the same if there was none before, and the
// caller tries again.
func (v *visit) next(ctx context.Context, at ready) (*Problem, error) {
	if !v.isDue(at) {
		v.memory.rest()
		return nil, nil
	}
	if refused := at.stored.record.Refusal; refused != nil && refused.ReconcileAt == v.holder.ReconcileAt {
		v.memory.retry = time.Time{}
		return &Problem{Reason: refused.Reason, Message: refused.Message, IsLasting: true}, nil
	}
	if v.memory.isWaiting(v.now, v.holder.ReconcileAt) {
		return v.memory.waiting, nil
	}
	err := v.issue(ctx, at)
	if err == nil {
		v.memory.rest()
		return nil, nil
	}
	v.memory.tries++
	problem := &Problem{Reason: v1.ReasonFailed, Message: err.Error()}
	if stop, is := errors.AsType[*problemError](err); is {
		problem = stop.Problem
	} else if !v.memory.counts() || ctx.Err() != nil {
		return nil, err
	}
	var retry time.Time
	if !problem.IsLasting {
		retry = v.now.Add(backoff.Slowly(v.memory.tries, firstWait, mostWait))
	}
	v.memory.wait(problem, retry, v.holder.ReconcileAt)
	return problem, nil
}

func (v *visit) issue(ctx context.Context, at ready) error {
	fresh, err := v.fresh(ctx, at.stored)
	if err != nil {
		return err
	}
	if at.stored = fresh; !v.isDue(at) {
		return nil // another manager was faster
	}
	if v.kind() == v1.AccessByCertificate {
		err = v.certify(ctx, fresh)
	} else {
		err = v.issueToken(ctx, at)
	}
	if !apierrors.IsConflict(err) {
		return err
	}
	// Another client wrote the Secret meanwhile: the stored credential counts, and the one just issued is never used.
	at.stored, err = v.fresh(ctx, stored{})
	if err != nil || !v.isDue(at) {
		return err
	}
	return isChanging(kindSecret, v.storedName())
}

// issueToken has the API server issue a token that ends with the Secret, and stores it there.
func (v *visit) issueToken(ctx context.Context, at ready) error {
	secret, seconds := at.stored.secret, int64(v.lifetime().Seconds())
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = v.holder.Cluster.Namespace, v.agentName()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: &seconds,
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: kindSecret, Name: secret.Name, UID: secret.UID},
	}}
	request.UID = at.account
	if err := v.keeper.writer.SubResource("token").Create(ctx, account, request); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // recreated since it was read
			return isChanging(kindAccount, account.Name)
		}
		return failed(err, "requesting a token of ServiceAccount %q", account.Name)
	}
	token, expires := []byte(request.Status.Token), request.Status.ExpirationTimestamp.Time
	if len(token) == 0 || len(token) > maxPart || !expires.After(v.now.Add(time.Second)) {
		return fmt.Errorf("requesting a token of ServiceAccount %q: %w", account.Name, errNoToken)
	}
	return v.put(ctx, secret, map[string][]byte{KeyToken: token}, record{
		Account: at.account, Issued: v.now, Expires: v.ends(expires, v.lifetime()),
	})
}

func (v *visit) lifetime() time.Duration {
	if v.access.Lifetime == nil {
		return defaultLifetime
	}
	return v.access.Lifetime.Duration
}
