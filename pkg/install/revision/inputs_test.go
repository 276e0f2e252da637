package revision

import (
	"bytes"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/test/expect"
)

func TestInputsKeyIsMadeOnce(t *testing.T) {
	c := seed(t, "key")
	first, err := LoadOrCreateInputsKey(t.Context(), c, "key")
	if err != nil || len(first) != inputsKeySize {
		t.Fatalf("got %d bytes, %v", len(first), err)
	}
	second, err := LoadOrCreateInputsKey(t.Context(), c, "key")
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("the key changed, or %v", err)
	}
	other, err := LoadOrCreateInputsKey(t.Context(), seed(t, "key2"), "key2")
	if err != nil || bytes.Equal(first, other) {
		t.Errorf("two seeds have one key, or %v", err)
	}
}

func TestInputsKeyIsNotMadeOverADamagedOne(t *testing.T) {
	c := seed(t, "damagedkey")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "damagedkey", Name: InputsKeySecret}}
	expect.Create(t, c, secret)
	var damaged *DamagedKeyError
	if _, err := LoadOrCreateInputsKey(t.Context(), c, "damagedkey"); !errors.As(err, &damaged) {
		t.Errorf("got %v, want a DamagedKeyError", err)
	}
}

func TestInputsHashDistinguishesFields(t *testing.T) {
	field := func(texts ...string) (fields [][]byte) {
		for _, text := range texts {
			fields = append(fields, []byte(text))
		}
		return fields
	}
	hashes := map[string][]string{}
	for _, texts := range [][]string{{}, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"", "ab"}, {"ab", ""}, {"b", "a"}} {
		hash := InputsHash([]byte("key"), field(texts...)...)
		if other, found := hashes[hash]; found {
			t.Errorf("%q and %q have one hash", other, texts)
		}
		hashes[hash] = texts
	}
	if InputsHash([]byte("key"), field("a")...) == InputsHash([]byte("other"), field("a")...) {
		t.Error("the key does not count")
	}
}
