package fetch

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"
)

// Selector is the type of a Location's field that selects a revision and says nothing else: a
// branch, a tag, a range, a version.
type Selector string

// Place is empty: nothing of a Selector counts once the revision is known.
func (Selector) Place() string { return "" }

// selecting is the type of a Location's field whose text selects a revision: others may select the
// same one. Place is what counts of the text besides; of other fields all counts.
type selecting interface{ Place() string }

// Identity is a digest of everything in the credentials. Content that was got with some is shown to
// those only who have the same; the digest itself stays in memory or inside of other digests.
func (c Credentials) Identity() [sha256.Size]byte {
	hosts := slices.Clone(c.Hosts)
	slices.Sort(hosts)
	c.Hosts = hosts
	return digest(texts(c))
}

// Key is a digest of the whole reference with its credentials: two references with one key get the
// same content in every respect. It is made of the kind's name and of all fields of the location,
// so that no kind can leave one out. It is one-way, but a digest of credentials all the same: what
// is written to disk goes through a keyed hash. The reference is one that Source has a kind for.
//
// Stores know their content by keys over a restart: they stay as they are while the fields and
// their order do.
func (k Kinds) Key(reference Reference) [sha256.Size]byte {
	identity := reference.Credentials.Identity()
	return digest(slices.Concat([]string{k.kindOf(reference.Location).name}, texts(reference.Location), []string{string(identity[:])}))
}

// RevisionKey is a digest of what is fetched once a reference is resolved. References that select the
// same revision of one place with the same credentials have the same, such as a branch and a tag.
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

// texts are the fields of a struct in their order. They tell any two of its values apart, since a
// list of texts is only taken as the last field. It panics for other types of fields: what they
// hold would be missing in keys.
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
			panic(fmt.Sprintf("field %s of %T is no text, and can't be part of a key", value.Type().Field(i).Name, of))
		}
		parts = append(parts, field.String())
	}
	return parts
}

// digest writes each part with its length, so that no two lists of parts look the same.
func digest(parts []string) [sha256.Size]byte {
	hasher := sha256.New()
	for _, part := range parts {
		hasher.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		hasher.Write([]byte(part))
	}
	return [sha256.Size]byte(hasher.Sum(nil))
}
