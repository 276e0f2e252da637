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

func (k *Keeper) secret(ctx context.Context) (data map[string][]byte, found *tls.Certificate, err error) {
	for range attempts {
		data, found, err = k.readOrRenew(ctx)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("certificate in Secret %q: %w", k.options.Secret, err)
	}
	return data, found, nil
}

func (k *Keeper) readOrRenew(ctx context.Context) (map[string][]byte, *tls.Certificate, error) {
	held, absent, err := k.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	if k.options.Owner != "" && !absent && held.Labels[v1.LabelManagedBy] != k.options.Owner {
		found, err := keyPair(held.Data)
		if err != nil {
			return nil, nil, fmt.Errorf("it is somebody else's and can't be used: %w", err)
		}
		return held.Data, found, nil
	}
	if held.Data == nil {
		held.Data = map[string][]byte{}
	}
	now := k.options.Clock.Now()
	found, err := readPair(held.Data, k.options.Hosts, now)
	changed := false
	if err != nil || isDue(found, now) {
		if unusable, ok := errors.AsType[*unusableError](err); ok {
			log.FromContext(ctx).Info("a new certificate is made", "since", unusable.Error())
		}
		if found, err = k.options.renew(held.Data, now); err != nil {
			return nil, nil, err
		}
		changed = true
	}
	if k.options.Publisher != nil && k.options.Publisher.Complete(held.Data) {
		changed = true
	}
	switch {
	case absent:
		err = k.client.Create(ctx, held)
	case changed:
		err = k.client.Update(ctx, held)
	}
	return held.Data, found, err
}

func (k *Keeper) read(ctx context.Context) (held *corev1.Secret, absent bool, err error) {
	held = &corev1.Secret{}
	err = k.reader.Get(ctx, k.options.Secret, held)
	switch {
	case err == nil:
		return held, false, nil
	case !apierrors.IsNotFound(err):
		return nil, false, err
	case k.options.Owner == "":
		return nil, false, fmt.Errorf("it comes with the chart: %w", err)
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: k.options.Secret.Namespace, Name: k.options.Secret.Name,
			Labels: map[string]string{v1.LabelManagedBy: k.options.Owner},
		},
		Type: corev1.SecretTypeTLS,
	}, true, nil
}
