package revision

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// Seal makes and checks seals, with the manager's key. The zero value seals and accepts nothing.
type Seal struct{ key []byte }

// NewSeal derives its key from the seed's inputs key, by HKDF with its own purpose.
func NewSeal(inputsKey []byte) Seal {
	key, err := hkdf.Key(sha256.New, inputsKey, nil, "trellis: seal of release records", sha256.Size)
	if err != nil { // impossible: the length is a constant
		panic(fmt.Sprintf("deriving the key of seals: %v", err))
	}
	return Seal{key: key}
}

// of is the seal of an index for its namespace and name: a copy elsewhere is not sealed.
func (s Seal) of(namespace, name string, index []byte) string {
	return InputsHash(s.key, []byte(namespace), []byte(name), index)
}

func (s Seal) isOn(head *corev1.Secret) bool {
	want := s.of(head.Namespace, head.Name, head.Data[keyIndex])
	return len(s.key) > 0 && head.Type == SecretType && hmac.Equal(head.Data[keySeal], []byte(want))
}

// Keys of the Secrets: a head has the index, its seal and an unsplit record; a part has its piece.
const (
	keyIndex  = "index"
	keySeal   = "seal"
	keyRecord = "record"
)

const (
	indexLimit = 8 << 10
	partsLimit = packedLimit/partSize + 1
)

// index is a head's description of its record. All of it is sealed.
type index struct {
	// Format is also here, so that a newer one is known before decoding.
	Format       int       `json:"format"`
	ClusterUID   types.UID `json:"clusterUID,omitempty"`
	Installation string    `json:"installation,omitempty"`
	Revision     int       `json:"revision,omitempty"`
	State        State     `json:"state,omitempty"`
	// Digest is the SHA-256 of the packed record, in hex.
	Digest string `json:"digest"`
	// Parts are the numbers of the parts in order; none if the record is in the head.
	Parts []int `json:"parts,omitempty"`
	// Needs are features of the record that a reader must know in addition to its format, or it would omit something
	// that is relied on.
	Needs []string `json:"needs,omitempty"`
}

const (
	// needAccess: there are credentials for the hub to renew and to revoke.
	needAccess = "access"
	// needHooks: hooks must run although there is no Helm release.
	needHooks = "hooks"
	// needNamedAccess: credentials have Secrets or subjects that versions name.
	needNamedAccess = "namedAccess"
)

func needsOf(record *Record) (needs []string) {
	if record.HasAccess() {
		needs = append(needs, needAccess)
	}
	if record.NamesAccess() {
		needs = append(needs, needNamedAccess)
	}
	if record.Helm == nil && len(record.Hooks) > 0 {
		needs = append(needs, needHooks)
	}
	return needs
}

func indexOf(record *Record, packed []byte, parts []int) index {
	sum := sha256.Sum256(packed)
	return index{
		Format: record.Format, ClusterUID: record.Owner().ClusterUID, Installation: record.Installation, Revision: record.Revision,
		State: record.State, Digest: hex.EncodeToString(sum[:]), Parts: parts, Needs: needsOf(record),
	}
}

func (i index) is(owner ownership.Owner, revision int) bool {
	return i.ClusterUID == owner.ClusterUID && i.Installation == owner.Installation && i.Revision == revision
}

func (s Seal) open(head *corev1.Secret) (index, error) {
	if !s.isOn(head) {
		return index{}, unsealed(head.Name)
	}
	return decodeIndex(head)
}

func decodeIndex(head *corev1.Secret) (index, error) {
	var about index
	data := head.Data[keyIndex]
	if len(data) > indexLimit || head.Type != SecretType || json.Unmarshal(data, &about) != nil {
		return index{}, &DamagedError{head.Name, "has no index"}
	}
	if about.Format > Format {
		return index{}, &NewerRecordError{head.Name, fmt.Sprintf("has format %d, this release knows %d", about.Format, Format)}
	}
	for _, need := range about.Needs {
		if !slices.Contains([]string{needAccess, needNamedAccess, needHooks}, need) {
			return index{}, &NewerRecordError{head.Name, fmt.Sprintf("needs %q, which this release does not know", need)}
		}
	}
	if len(about.Parts) > partsLimit {
		return index{}, &DamagedError{head.Name, "has more parts than the limit"}
	}
	return about, nil
}
