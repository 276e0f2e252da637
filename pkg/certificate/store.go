package certificate

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// attempts to write the Secret before the round is given up; each lost one means that another replica has written it.
const attempts = 3

// secret gives the pair in the Secret, renewed where that is due.
func (k *Keeper) secret(ctx context.Context) (*pair, error) {
	key := client.ObjectKey{Namespace: k.options.Namespace, Name: k.options.Secret}
	var lost error
	for range attempts {
		held := &corev1.Secret{}
		if err := k.reader.Get(ctx, key, held); err != nil {
			return nil, fmt.Errorf("reading Secret %q, which comes with the chart: %w", key, err)
		}
		now := k.options.Clock.Now()
		found, err := readPair(held.Data, k.options.Hosts, now)
		var unusable *unusableError
		switch {
		case errors.As(err, &unusable):
			log.FromContext(ctx).Info("the webhooks get a new certificate", "since", unusable.Error())
		case err != nil:
			return nil, err
		case !found.isDue(now) && isPath(found.path):
			return found, nil
		}
		if found == nil || found.isDue(now) {
			if found, err = newPair(k.options.Hosts, now, held.Data[keyAuthorities]); err != nil {
				return nil, err
			}
			found.path = string(held.Data[keyPath])
		}
		if !isPath(found.path) {
			found.path = newPath()
		}
		held.Data = found.data()
		if lost = k.client.Update(ctx, held); lost == nil {
			return found, nil
		}
		if !apierrors.IsConflict(lost) {
			break
		}
	}
	return nil, fmt.Errorf("writing Secret %q: %w", key, lost)
}

// publish writes the authorities and the paths to every webhook of the configuration that has others. Without the configuration nobody
// asks the webhooks anything; it may come later.
func (k *Keeper) publish(ctx context.Context, found *pair) error {
	if k.options.Configuration == "" {
		return nil
	}
	held := &admissionregistrationv1.ValidatingWebhookConfiguration{}
	err := k.reader.Get(ctx, client.ObjectKey{Name: k.options.Configuration}, held)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	before := held.DeepCopy()
	differs := false
	for i := range held.Webhooks {
		asked := &held.Webhooks[i].ClientConfig
		wanted := "/" + found.path + k.options.Paths[held.Webhooks[i].Name]
		differs = differs || !found.trusts(asked.CABundle) || pathOf(asked) != wanted
		asked.CABundle = found.authorities
		setPath(asked, wanted)
	}
	if !differs {
		return nil
	}
	return k.client.Patch(ctx, held, client.StrategicMergeFrom(before))
}

// pathOf is where the API server asks a webhook, by a Service or by a URL.
func pathOf(asked *admissionregistrationv1.WebhookClientConfig) string {
	switch {
	case asked.Service != nil && asked.Service.Path != nil:
		return *asked.Service.Path
	case asked.URL != nil:
		if address, err := url.Parse(*asked.URL); err == nil {
			return address.Path
		}
	}
	return ""
}

func setPath(asked *admissionregistrationv1.WebhookClientConfig, path string) {
	if asked.Service != nil {
		asked.Service.Path = &path
		return
	}
	if asked.URL == nil {
		return
	}
	if address, err := url.Parse(*asked.URL); err == nil {
		address.Path = path
		asked.URL = new(address.String())
	}
}
