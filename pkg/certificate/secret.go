package certificate

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// attempts to write the Secret; a failed one means that another replica has written it.
const attempts = 3

func (r *Rotator) secret(ctx context.Context) (data map[string][]byte, found *tls.Certificate, err error) {
	for range attempts {
		data, found, err = r.readOrRenew(ctx)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("certificate in Secret %q: %w", r.options.Secret, err)
	}
	return data, found, nil
}

func (r *Rotator) readOrRenew(ctx context.Context) (map[string][]byte, *tls.Certificate, error) {
	held, absent, err := r.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	if r.options.Owner != "" && !absent && held.Labels[v1.LabelManagedBy] != r.options.Owner {
		found, err := keyPair(held.Data)
		if err != nil {
			return nil, nil, fmt.Errorf("it is somebody else's and can't be used: %w", err)
		}
		return held.Data, found, nil
	}
	if held.Data == nil {
		held.Data = map[string][]byte{}
	}
	now := r.options.Clock.Now()
	found, err := readPair(held.Data, r.options.Hosts, now)
	changed := false
	if err != nil || isDue(found, now) {
		if unusable, ok := errors.AsType[*unusableError](err); ok {
			log.FromContext(ctx).Info("a new certificate is made", "since", unusable.Error())
		}
		if found, err = r.options.renew(held.Data, now); err != nil {
			return nil, nil, err
		}
		changed = true
	}
	if r.options.Publisher != nil && r.options.Publisher.Complete(held.Data) {
		changed = true
	}
	switch {
	case absent:
		err = r.client.Create(ctx, held)
	case changed:
		err = r.client.Update(ctx, held)
	}
	return held.Data, found, err
}

func (r *Rotator) read(ctx context.Context) (held *corev1.Secret, absent bool, err error) {
	held = &corev1.Secret{}
	err = r.reader.Get(ctx, r.options.Secret, held)
	switch {
	case err == nil:
		return held, false, nil
	case !apierrors.IsNotFound(err):
		return nil, false, err
	case r.options.Owner == "":
		return nil, false, fmt.Errorf("it comes with the chart: %w", err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.options.Secret.Namespace, Name: r.options.Secret.Name,
			Labels: map[string]string{v1.LabelManagedBy: r.options.Owner},
		},
		Type: corev1.SecretTypeTLS,
	}, true, nil
}
