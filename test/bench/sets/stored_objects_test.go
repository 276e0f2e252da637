package sets_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// inEachWrite is how many objects go to etcd in one transaction; it takes 128.
const inEachWrite = 100

// backup puts objects into the etcd of an API server, as a backup is restored: 60,000 of them in seconds.
type backup struct {
	url string
	// pending are puts that are not sent yet.
	pending []map[string]any
	// number of the last object, for its UID.
	number int
}

// record is an object as etcd has it.
type record struct{ Key, Value []byte }

// records whose keys end so, one for each ending.
func (s *backup) records(b *testing.B, endings ...string) []record {
	b.Helper()
	var keys struct{ Kvs []record }
	s.call(b, "range", map[string]any{"key": base64.StdEncoding.EncodeToString([]byte("/")), "range_end": "AA==", "keys_only": true}, &keys)
	found := make([]record, len(endings))
	for i, ending := range endings {
		for _, one := range keys.Kvs {
			if strings.HasSuffix(string(one.Key), ending) {
				var whole struct{ Kvs []record }
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
func (s *backup) add(b *testing.B, of record, texts ...string) {
	b.Helper()
	var object struct{ Metadata struct{ UID string } }
	if err := json.Unmarshal(of.Value, &object); err != nil || object.Metadata.UID == "" {
		b.Fatalf("%s is no object in JSON: %v", of.Key, err)
	}
	s.number++
	replace := strings.NewReplacer(append(texts, object.Metadata.UID, fmt.Sprintf("00000000-0000-4000-8000-%012d", s.number))...)
	s.pending = append(s.pending, map[string]any{"request_put": map[string]any{
		"key": []byte(replace.Replace(string(of.Key))), "value": []byte(replace.Replace(string(of.Value))),
	}})
	if len(s.pending) == inEachWrite {
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

// call etcd through its gateway for JSON.
func (s *backup) call(b *testing.B, method string, body, answer any) {
	b.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		b.Fatal(err)
	}
	request, err := http.NewRequestWithContext(b.Context(), http.MethodPost, s.url+"/v3/kv/"+method, bytes.NewReader(encoded))
	if err != nil {
		b.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		b.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, content)
	}
	if err == nil {
		err = json.Unmarshal(content, answer)
	}
	if err != nil {
		b.Fatalf("etcd, %s: %v", method, err)
	}
}
