package fetch

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
)

// Selector is a Location's field that only selects a revision: a branch, tag, range or version.
type Selector string

// Place is empty: a Selector does not matter once the revision is known.
func (Selector) Place() string { return "" }

// selecting is a field that selects a revision. Place is the rest of its text.
type selecting interface{ Place() string }

// Identity is a digest of all credentials. Content is only shared between equal credentials. The
// digest itself stays in memory or inside other digests.
func (c Credentials) Identity() [sha256.Size]byte {
	hosts := slices.Clone(c.Hosts)
	slices.Sort(hosts)
	c.Hosts = hosts
	return digest(texts(c))
}

// Key is a digest of the whole reference with its credentials: equal keys mean equal content. It
// covers the kind's name and all fields of the location, so that no kind can omit one. As it
// includes credentials, it is only stored through a keyed hash. Source must know the reference's
// kind.
//
// Stores use keys across restarts: the order of fields must not change.
func (k Kinds) Key(reference Reference) [sha256.Size]byte {
	identity := reference.Credentials.Identity()
	return digest(slices.Concat([]string{k.kindOf(reference.Location).name}, texts(reference.Location), []string{string(identity[:])}))
}

// RevisionKey is a digest of a resolved reference. References that select the same revision of one
// place with the same credentials share it, such as a branch and a tag.
func (k Kinds) RevisionKey(reference Reference, revision Revision) [sha256.Size]byte {
	parts := []string{k.kindOf(reference.Location).name}
	value := reflect.ValueOf(reference.Location)
	for i, text := range texts(reference.Location) {
		if field, ok := reflect.TypeAssert[selecting](value.Field(i)); ok {
			text = field.Place()
		}
		parts = append(parts, text)
	}
	identity := reference.Credentials.Identity()
	return digest(append(parts, revision.Name, revision.Digest, string(identity[:])))
}

// texts are a struct's fields in order. Different values have different texts, since only the last field may be a
// list. It panics for other types, which keys would miss.
func texts(of any) []string {
	value := reflect.ValueOf(of)
	parts := []string{}
	for i := range value.NumField() {
		field, last := value.Field(i), i == value.NumField()-1
		switch content := field.Interface().(type) {
		case []byte:
			parts = append(parts, string(content))
			continue
		case []string:
			if last {
				parts = append(parts, content...)
				continue
			}
		}
		if field.Kind() != reflect.String {
			panic(fmt.Sprintf("field %s of %T is not a string, and can't be part of a key", value.Type().Field(i).Name, of))
		}
		parts = append(parts, field.String())
	}
	return parts
}

// digest includes each part's length, so that different lists have different digests.
func digest(parts []string) [sha256.Size]byte {
	hasher := sha256.New()
	for _, part := range parts {
		hasher.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		hasher.Write([]byte(part))
	}
	return [sha256.Size]byte(hasher.Sum(nil))
}
