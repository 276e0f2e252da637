package login

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"
)

// Purposes of sealed texts. A text that was sealed for one purpose does not open for another.
const (
	forSession = "session"
	forOIDC    = "oidc"
	// ForForm is the purpose of a form that waits for a login; the path of the form follows it.
	ForForm = "form "
)

// errSealed is the only error of Open: it does not say what is wrong.
var errSealed = errors.New("it was not sealed here, or is too old")

// Sealer seals texts with AES-GCM. The first key seals, all keys open.
type Sealer struct {
	keys []cipher.AEAD
	now  func() time.Time
}

// NewSealer makes a sealer with keys of any length.
func NewSealer(keys [][]byte, now func() time.Time) (*Sealer, error) {
	made := &Sealer{now: now}
	for _, key := range keys {
		derived, err := hkdf.Key(sha256.New, key, nil, "trellis-web sealed texts", 32)
		if err != nil {
			return nil, err
		}
		block, err := aes.NewCipher(derived)
		if err != nil {
			return nil, err
		}
		sealing, err := cipher.NewGCM(block)
		if err != nil {
			return nil, err
		}
		made.keys = append(made.keys, sealing)
	}
	return made, nil
}

// sealed is what a sealed text contains.
type sealed struct {
	Until time.Time       `json:"until"`
	Value json.RawMessage `json:"value"`
}

// Seal encodes a value as a text that opens until a time, for one purpose.
func (s *Sealer) Seal(purpose string, value any, until time.Time) (string, error) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return "", err
	}
	plain, err := json.Marshal(sealed{until, encoded})
	if err != nil {
		return "", err
	}
	with := s.keys[0]
	nonce := make([]byte, with.NonceSize(), with.NonceSize()+len(plain)+with.Overhead())
	_, _ = rand.Read(nonce) // it never fails
	return base64.RawURLEncoding.EncodeToString(with.Seal(nonce, nonce, plain, []byte(purpose))), nil
}

// Open decodes a sealed text of a purpose.
func (s *Sealer) Open(purpose, text string, into any) error {
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return errSealed
	}
	for _, key := range s.keys {
		if len(decoded) < key.NonceSize() {
			return errSealed
		}
		plain, err := key.Open(nil, decoded[:key.NonceSize()], decoded[key.NonceSize():], []byte(purpose))
		if err != nil {
			continue
		}
		var found sealed
		if json.Unmarshal(plain, &found) != nil || !s.now().Before(found.Until) || json.Unmarshal(found.Value, into) != nil {
			return errSealed
		}
		return nil
	}
	return errSealed
}
