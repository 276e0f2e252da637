package sets_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/trellis-addons/trellis/test/fleet"
)

// backup puts objects into the etcd of an API server, as a backup is restored: 60,000 of them in seconds.
type backup struct {
	url string
	// pending are puts that are not sent yet.
	pending []map[string]any
	// number of the last object, for its UID.
	number int
}

// records whose keys end so, one for each ending.
func (s *backup) records(b *testing.B, endings ...string) []fleet.Record {
	b.Helper()
	var keys struct{ Kvs []fleet.Record }
	s.call(b, "range", map[string]any{"key": base64.StdEncoding.EncodeToString([]byte("/")), "range_end": "AA==", "keys_only": true}, &keys)
	found := make([]fleet.Record, len(endings))
	for i, ending := range endings {
		for _, one := range keys.Kvs {
			if strings.HasSuffix(string(one.Key), ending) {
				var whole struct{ Kvs []fleet.Record }
				s.call(b, "range", map[string]any{"key": one.Key}, &whole)
				found[i] = whole.Kvs[0]
			}
		}
		if found[i].Key == nil {
			b.Fatalf("etcd has no key that ends with %q", ending)
		}
	}
	return found
}

// add a copy of an object in which texts are replaced, in pairs of old and new.
func (s *backup) add(b *testing.B, of fleet.Record, texts ...string) {
	b.Helper()
	var object struct{ Metadata struct{ UID string } }
	if err := json.Unmarshal(of.Value, &object); err != nil || object.Metadata.UID == "" {
		b.Fatalf("%s is no object in JSON: %v", of.Key, err)
	}
	s.number++
	replace := strings.NewReplacer(append(texts, object.Metadata.UID, fmt.Sprintf("00000000-0000-4000-8000-%012d", s.number))...)
	copied := fleet.Record{Key: []byte(replace.Replace(string(of.Key))), Value: []byte(replace.Replace(string(of.Value)))}
	s.pending = append(s.pending, copied.Put())
	if len(s.pending) == fleet.PutsInEachTransaction {
		s.flush(b)
	}
}

// flush sends what is pending.
func (s *backup) flush(b *testing.B) {
	b.Helper()
	if len(s.pending) == 0 {
		return
	}
	var answer struct{ Succeeded bool }
	if s.call(b, "txn", map[string]any{"success": s.pending}, &answer); !answer.Succeeded {
		b.Fatal("etcd did not take the objects")
	}
	s.pending = nil
}

// call etcd.
func (s *backup) call(b *testing.B, method string, body, answer any) {
	b.Helper()
	if err := fleet.CallEtcd(b.Context(), s.url, method, body, answer); err != nil {
		b.Fatal(err)
	}
}
