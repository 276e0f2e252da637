package revision

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// InputsKeySecret in the seed's platform namespace has the key of input hashes.
const InputsKeySecret = "trellis-inputs-key"

const (
	inputsKeyField = "key"
	inputsKeySize  = 32
)

// LoadOrCreateInputsKey returns the seed's key for input hashes: a plain hash would let readers of a status guess
// passwords. The client must read past caches, since no manager runs yet.
func LoadOrCreateInputsKey(ctx context.Context, c client.Client, namespace string) ([]byte, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: InputsKeySecret}}
	err := c.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if apierrors.IsNotFound(err) {
		err = createInputsKey(ctx, c, secret)
	}
	if err != nil {
		return nil, fmt.Errorf("getting the inputs key %q: %w", namespace+"/"+InputsKeySecret, err)
	}
	key := secret.Data[inputsKeyField]
	if len(key) < inputsKeySize {
		return nil, &DamagedKeyError{Secret: namespace + "/" + InputsKeySecret}
	}
	return key, nil
}

// DamagedKeyError says that the Secret has no key. After a new key, every installation is rendered again.
type DamagedKeyError struct{ Secret string }

func (e *DamagedKeyError) Error() string {
	return fmt.Sprintf("secret %q has no key of %d bytes in %q: delete it, so that a new one is "+
		"created", e.Secret, inputsKeySize, inputsKeyField)
}

func createInputsKey(ctx context.Context, c client.Client, secret *corev1.Secret) error {
	key := make([]byte, inputsKeySize)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	secret.Data = map[string][]byte{inputsKeyField: key}
	err := c.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		return c.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	}
	return err
}

// InputsHash is the HMAC-SHA256, in hex, over fields, each with its length.
func InputsHash(key []byte, fields ...[]byte) string {
	mac := hmac.New(sha256.New, key)
	for _, field := range fields {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(field))))
		mac.Write(field)
	}
	return hex.EncodeToString(mac.Sum(nil))
}
