package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// typeStored is the type of the Secrets that store credentials.
const typeStored corev1.SecretType = v1.Prefix + "access.v1"

// Keys of such a Secret, in addition to the keys that the agent gets.
const (
	// keyState has a record as JSON.
	keyState = "state.json"
	// keyNext has the key of the next certificate, from before it is requested.
	keyNext = "next.key"
)

const (
	// maxState is far more than a record needs, maxPart more than a token, a key or a chain of certificates, in bytes.
	maxState, maxPart = 16 << 10, 128 << 10
	// maxReason is how much of a refusal is recorded, in bytes.
	maxReason = 1 << 10
	// longestAsked is the longest value of an annotation that is recorded unchanged, in bytes.
	longestAsked = 64
)

// record describes the credential of a stored Secret. Nothing in it is secret.
type record struct {
	Type   v1.AccessType `json:"type,omitempty"`
	Signer string        `json:"signer,omitempty"`
	// Subject is the digest of a subject that the version names; empty for one that is derived.
	Subject string `json:"subject,omitempty"`
	// Serial of the issue is random.
	Serial  string    `json:"serial,omitempty"`
	Issued  time.Time `json:"issued,omitzero"`
	Expires time.Time `json:"expires,omitzero"`
	// Account is the UID of the ServiceAccount whose token it is.
	Account types.UID `json:"account,omitempty"`
	// Sum is over the Secret's UID, the fields above and the credential: an edited credential, or one from a backup,
	// does not count.
	Sum string `json:"sum,omitempty"`
	// Refusal is of the last request.
	Refusal *refusal `json:"refusal,omitempty"`
}

// refusal is the refusal of a request for a certificate. It counts until the annotation has another value.
type refusal struct {
	ReconcileAt string `json:"reconcileAt,omitempty"`
	Reason      string `json:"reason"`
	Message     string `json:"message"`
}

// refusals are the possible reasons of refusals: another one was written by another client, and might be invalid in a
// status.
var refusals = []string{v1.ReasonRequestDenied, v1.ReasonCertificateRefused}

// brief replaces the value of an annotation, which can be longer than a record.
func brief(value string) string {
	if len(value) <= longestAsked {
		return value
	}
	hash := sha256.Sum256([]byte(value))
	return hex.EncodeToString(hash[:])
}

// stored is a Secret as it was read.
type stored struct {
	secret *corev1.Secret
	record record
	// isWhole says that it has a credential, as it was written. Otherwise the record has no issue.
	isWhole bool
}

// read reads a Secret's state. Unreadable content counts as absent.
func read(secret *corev1.Secret) stored {
	found := stored{secret: secret, record: parse(secret.Data[keyState])}
	one := found.record
	found.isWhole = one.Serial != "" && one.Issued.Before(one.Expires) && isBounded(secret.Data) &&
		one.Sum == sum(secret.UID, one, secret.Data)
	if !found.isWhole {
		found.record = record{Type: one.Type, Signer: one.Signer, Subject: one.Subject, Refusal: one.Refusal}
	}
	return found
}

func isBounded(data map[string][]byte) bool {
	for _, part := range data {
		if len(part) > maxPart {
			return false
		}
	}
	return true
}

func parse(state []byte) record {
	var one record
	if len(state) > maxState {
		return record{}
	}
	decoder := json.NewDecoder(bytes.NewReader(state))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&one); err != nil {
		return record{}
	}
	if _, err := decoder.Token(); err != io.EOF {
		return record{}
	}
	if one.Refusal != nil && (len(one.Refusal.Message) > maxReason || !slices.Contains(refusals, one.Refusal.Reason)) {
		one.Refusal = nil
	}
	return one
}

// sum reveals nothing of a credential: tokens and keys are long and random.
func sum(secret types.UID, one record, data map[string][]byte) string {
	hash := sha256.New()
	about := fmt.Sprintf("%s\n%s\n%s\n%s\n%s\n%d\n%d\n",
		secret, one.Type, one.Signer, one.Serial, one.Account, one.Issued.Unix(), one.Expires.Unix())
	for _, part := range [][]byte{[]byte(about), data[KeyToken], data[KeyCertificate], data[KeyPrivate]} {
		fmt.Fprintf(hash, "%d:", len(part))
		hash.Write(part)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// with is the data of a Secret with a record.
func with(data map[string][]byte, one record) (map[string][]byte, error) {
	text, err := json.Marshal(one)
	if err != nil {
		return nil, fmt.Errorf("encoding the record of a credential: %w", err)
	}
	all := map[string][]byte{keyState: text}
	for key, part := range data {
		if key != keyState && len(part) > 0 {
			all[key] = part
		}
	}
	return all, nil
}
