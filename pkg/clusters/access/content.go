package access

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Content returns the intended content of the agent's Secret, from one read of the Secret on the seed. It is nil if
// there is nothing to give.
func (k *Keeper) Content(ctx context.Context, holder Holder, access v1.Access) (content map[string][]byte, digestOf string, err error) {
	hub, isKnown := k.knownHub()
	if !isKnown {
		return nil, "", nil
	}
	asked := holder.credential(access)
	secret := &corev1.Secret{}
	err = k.direct.Get(ctx, client.ObjectKey{Namespace: holder.Cluster.Namespace, Name: asked.storedName()}, secret)
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", failed(err, "reading Secret %q", asked.storedName())
	}
	found := read(secret)
	isOurs := asked.marks.whose(secret) == ours && secret.Type == typeStored
	if !isOurs || asked.isRotated(secret) || !found.isWhole || !asked.fits(found.record) {
		return nil, "", nil
	}
	if !asked.isForHub() {
		pair := map[string][]byte{KeyCertificate: secret.Data[KeyCertificate], KeyPrivate: secret.Data[KeyPrivate]}
		return pair, digest(found.record.Serial, Hub{}), nil
	}
	kubeconfig, err := hub.kubeconfig(holder.Cluster.Namespace, asked.kind())
	if err != nil {
		return nil, "", err
	}
	content = map[string][]byte{KeyKubeconfig: kubeconfig, KeyAuthority: hub.CA}
	for _, key := range []string{KeyToken, KeyCertificate, KeyPrivate} {
		if part := secret.Data[key]; len(part) > 0 {
			content[key] = part
		}
	}
	return content, digest(found.record.Serial, hub), nil
}
