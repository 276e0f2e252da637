package revision

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/install/hooks"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/long"
)

// bomb is a record of 13 KB that becomes gigabytes when it is decoded.
func bomb() []byte {
	return coders().encoder.EncodeAll([]byte(`{"format":1,"inventory":[{}`+strings.Repeat(",{}", (60<<20)/3)+`]}`), nil)
}

// A Secret that a tenant made, of a few KB, took gigabytes. Red when a record is unpacked before
// its seal is read.
func TestForgedRecordIsDecodedByNobody(t *testing.T) {
	c := seed(t, "forged")
	records := NewRecords(c, c, testSeal)
	packed, owner := bomb(), sample(1, 0).Owner()
	if len(packed) > 64<<10 {
		t.Fatalf("the bomb has %d bytes", len(packed))
	}
	record := sample(1, 0)
	head := secret("forged", record, headName(owner, record.Revision), 0)
	sum := sha256.Sum256(packed)
	about, _ := json.Marshal(index{
		Format: 1, Digest: hex.EncodeToString(sum[:]), ClusterUID: owner.ClusterUID, Installation: owner.Installation,
		Revision: record.Revision, State: StateApplied,
	})
	head.Data = map[string][]byte{keyIndex: about, keyRecord: packed, keySeal: []byte(strings.Repeat("0", 64))}
	expect.Create(t, c, head)
	for why, load := range map[string]func() (*Record, error){
		"alone":    func() (*Record, error) { return records.Load(t.Context(), "forged", owner) },
		"together": func() (*Record, error) { return NewRecords(c, c, testSeal).LoadFirst(t.Context(), "forged", owner) },
	} {
		var record *Record
		var err error
		if bytes := allocated(func() { record, err = load() }); bytes > 8<<20 {
			t.Errorf("%s: %d bytes were allocated", why, bytes)
		}
		var damaged *DamagedError
		if record != nil || !errors.As(err, &damaged) || !strings.Contains(err.Error(), "delete this one") {
			t.Errorf("%s: got %v, %v; want a DamagedError with the way out", why, record, err)
		}
	}
}

// With the key, and where records are sealed again: what is decoded is bounded by what is written.
// Red when nothing is counted before it is decoded.
func TestDecodingIsBounded(t *testing.T) {
	long.Heavy(t)
	owner := sample(1, 0).Owner()
	repeat := func(begin, each, end string) []byte {
		return coders().encoder.EncodeAll([]byte(begin+strings.Repeat(each, (60<<20)/len(each))+end), nil)
	}
	for why, packed := range map[string][]byte{
		"entries":            bomb(),
		"entries otherwise":  repeat(`{"INVENTORY":[{}`, `,{}`, `]}`),
		"entries in escapes": repeat(`{"\u0069nventory":[{}`, `,{}`, `]}`),
		"superseded":         repeat(`{"superseded":[{}`, `,{}`, `]}`),
		"hooks":              repeat(`{"hooks":[{}`, `,{}`, `]}`),
		"events of a hook":   repeat(`{"hooks":[{"object":{},"events":[""`, `,""`, `]}]}`),
		"objects":            repeat(`{"objects":[1`, `,1`, `]}`),
		"values":             repeat(`{"values":{"a":[[]`, `,[]`, `]}}`),
		"origins":            repeat(`{"origins":{"a":""`, `,"a":""`, `}}`),
		"depth":              repeat(`{"values":{"a":`, `[`, `]}}`),
		"depth of an object": repeat(`{"objects":[`, `[`, `]}`),
		"a key at a time":    repeat(`{"inventory":[{}]`, `,"inventory":[{}]`, `}`),
		"more than is ever unpacked": coders().encoder.EncodeAll([]byte(
			`{"addon":"`+strings.Repeat("a", unpackedLimit)+`"}`), nil),
	} {
		t.Run(why, func(t *testing.T) {
			about := indexOf(sample(1, 0), packed, nil)
			var err error
			bytes := allocated(func() { _, err = unpack(headName(owner, 1), packed, about) })
			var damaged *DamagedError
			if !errors.As(err, &damaged) || bytes > 3*unpackedLimit {
				t.Errorf("got %v after %d bytes", err, bytes)
			}
		})
	}
}

// Whatever is written is read again. Red when the bounds of reading are closer than those of
// writing.
func TestTheLargestRecordComesBack(t *testing.T) {
	long.Heavy(t)
	record := sample(1, 0)
	record.Objects, record.Inventory, record.Superseded, record.Values = nil, nil, nil, map[string]any{"list": []any{}}
	object := fmt.Sprintf(`{"kind":"ConfigMap","data":[%s1]}`, strings.Repeat("1,", 4000))
	for i := range ownership.MaxObjects {
		record.Objects = append(record.Objects, json.RawMessage(object))
		entry := ownership.Entry{Key: ownership.Key{Kind: "ConfigMap", Name: fmt.Sprint(i)}, Version: "v1", UID: "u"}
		entry.Fields = json.RawMessage(`{"f:data":{".":{},` + strings.Repeat(`"v:1":{},`, 400) + `"v:2":{}}}`)
		record.Inventory = append(record.Inventory, entry)
		record.Hooks = append(record.Hooks, hooks.Hook{Path: "a", Events: []string{"pre-install", "post-install"}, Object: json.RawMessage(`{"kind":"Job"}`)})
	}
	for i := range maxEntries - ownership.MaxObjects {
		record.Superseded = append(record.Superseded, ownership.Entry{Key: ownership.Key{Kind: "Secret", Name: fmt.Sprint(i)}, Version: "v1", UID: "u"})
	}
	var list []any
	for range 128 << 10 {
		list = append(list, 1)
	}
	record.Values["list"], record.Helm.Config = list, map[string]any{"list": list}
	record.State, record.Format = StateApplied, Format
	if err := record.bound(); err != nil {
		t.Fatal(err)
	}
	packed, err := pack(record)
	if err != nil {
		t.Fatal(err)
	}
	again, err := unpack("any", packed, indexOf(record, packed, nil))
	if err != nil {
		t.Fatal(err)
	}
	if len(again.Inventory) != len(record.Inventory) || len(again.Superseded) != len(record.Superseded) || len(again.Hooks) != len(record.Hooks) {
		t.Errorf("%d, %d and %d came back", len(again.Inventory), len(again.Superseded), len(again.Hooks))
	}
}

// A head, sealed for one place, is copied with all its bytes. Red when the seal leaves out any part
// of what is believed.
func TestCopiedRecordsAreNotBelieved(t *testing.T) {
	c := seed(t, "copied")
	seed(t, "copied-elsewhere")
	records := NewRecords(c, c, testSeal)
	original := sample(1, 0)
	if err := records.SaveApplied(t.Context(), "copied", original); err != nil {
		t.Fatal(err)
	}
	var head corev1.Secret
	expect.Get(t, c, client.ObjectKey{Namespace: "copied", Name: headName(original.Owner(), 1)}, &head)
	neighbour := ownership.Owner{ClusterUID: original.ClusterUID, Installation: "grafana"}
	swapped := ownership.Owner{ClusterUID: "uid-2", Installation: original.Installation}
	for _, test := range []struct {
		why, namespace string
		owner          ownership.Owner
		revision       int
	}{
		{"another revision", "copied", original.Owner(), 2},
		{"another installation", "copied", neighbour, 1},
		{"another cluster", "copied", swapped, 1},
		{"another namespace", "copied-elsewhere", original.Owner(), 1},
	} {
		copied := head.DeepCopy()
		copied.ObjectMeta = metav1.ObjectMeta{Namespace: test.namespace, Name: headName(test.owner, test.revision), Labels: head.Labels}
		expect.Create(t, c, copied)
		record, err := records.LoadRevision(t.Context(), test.namespace, test.owner, test.revision)
		if diff := cmp.Diff(unsealed(copied.Name), err, cmp.Comparer(func(a, b error) bool { return a.Error() == b.Error() })); record != nil || diff != "" {
			t.Errorf("%s: got %v, error (-want +got):\n%s", test.why, record, diff)
		}
	}
	other, err := NewRecords(c, c, NewSeal([]byte("another seed's"))).LoadRevision(t.Context(), "copied", original.Owner(), 1)
	if other != nil || err == nil {
		t.Errorf("another seed's record was believed: %v, %v", other, err)
	}
	if none, err := NewRecords(c, c, Seal{}).LoadRevision(t.Context(), "copied", original.Owner(), 1); none != nil || err == nil {
		t.Errorf("without a key a record was believed: %v, %v", none, err)
	}
	want := sample(1, 0)
	want.State, want.Format = StateApplied, Format
	loaded, err := records.LoadRevision(t.Context(), "copied", original.Owner(), 1)
	if err != nil {
		t.Fatal(err)
	}
	same(t, want, loaded)
}

// A part is replaced. Red when the digest is not sealed, or not looked at before unpacking.
func TestReplacedPartsAreNotUnpacked(t *testing.T) {
	c := seed(t, "replacedpart")
	records := NewRecords(c, c, testSeal)
	record := sample(1, 1<<20)
	if err := records.SaveApplied(t.Context(), "replacedpart", record); err != nil {
		t.Fatal(err)
	}
	damage(t, c, "replacedpart", partName(sampleHead, 1), func(part *corev1.Secret) { part.Data[keyRecord] = bomb() })
	_, err := records.Load(t.Context(), "replacedpart", record.Owner())
	if diff := cmp.Diff(any(&DamagedError{sampleHead, "does not match its recorded digest"}), any(err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// collision is two owners of one cluster whose IDs begin with the same 10 hex digits.
func collision(t *testing.T) (a, b ownership.Owner) {
	t.Helper()
	a, b = ownership.Owner{ClusterUID: "uid-1", Installation: "c1423356"}, ownership.Owner{ClusterUID: "uid-1", Installation: "c1424612"}
	if a.ID()[:10] != b.ID()[:10] || a.ID() == b.ID() {
		t.Fatalf("IDs %s and %s", a.ID(), b.ID())
	}
	return a, b
}

// RS63: Installations whose IDs begin alike have records of their own. The second of two
// installations whose IDs begin with the same 10 digits took the first's record over, or could not
// be saved for ever. Red when names are cut, or when an intent's place is taken without reading its
// owner.
func TestCollidingInstallationsHaveRecordsOfTheirOwn(t *testing.T) {
	c := seed(t, "collide")
	records := NewRecords(c, c, testSeal)
	a, b := collision(t)
	of := func(owner ownership.Owner, revision int) *Record {
		record := sample(revision, 0)
		record.Installation, record.Addon = owner.Installation, owner.Installation
		return record
	}
	for _, owner := range []ownership.Owner{a, b} {
		if err := records.SaveIntent(t.Context(), "collide", of(owner, 1)); err != nil {
			t.Fatal(err)
		}
	}
	for _, owner := range []ownership.Owner{a, b} {
		record, err := records.Load(t.Context(), "collide", owner)
		if err != nil || record == nil || record.Addon != owner.Installation {
			t.Fatalf("%s: got %v, %v", owner.Installation, record, err)
		}
		if err := records.SaveApplied(t.Context(), "collide", record); err != nil {
			t.Fatal(err)
		}
	}
	if err := records.Forget(t.Context(), "collide", a); err != nil {
		t.Fatal(err)
	}
	if record, err := records.LoadFirst(t.Context(), "collide", a); record != nil || err != nil {
		t.Errorf("the first has %v, %v", record, err)
	}
	if record, err := records.LoadFirst(t.Context(), "collide", b); err != nil || record == nil || record.State != StateApplied {
		t.Errorf("the second has %v, %v", record, err)
	}
}

// RS63: Records belong to the owner that is sealed in them, whatever their label. For whoever finds
// two owners that share the 16 digits of an ID, which are the label: lists find the records of
// both. Red when a label alone says whose a Secret is.
func TestLabelsShowNoOwners(t *testing.T) {
	c := seed(t, "labels")
	records := NewRecords(c, c, testSeal)
	first, neighbour := sample(1, 0), sample(7, 1<<20)
	neighbour.Installation = "grafana"
	for _, record := range []*Record{first, neighbour} {
		if err := records.SaveApplied(t.Context(), "labels", record); err != nil {
			t.Fatal(err)
		}
	}
	var list corev1.SecretList
	expect.List(t, c, &list, client.InNamespace("labels"))
	for i := range list.Items {
		for key := range list.Items[i].Labels {
			list.Items[i].Labels[key] = first.Owner().ID()
		}
		expect.Update(t, c, &list.Items[i])
	}
	if record, err := records.Load(t.Context(), "labels", first.Owner()); err != nil || record == nil || record.Revision != 1 || record.Skipped != 0 {
		t.Errorf("got %v, %v", record, err)
	}
	if err := records.Forget(t.Context(), "labels", first.Owner()); err != nil {
		t.Fatal(err)
	}
	if record, err := records.LoadFirst(t.Context(), "labels", neighbour.Owner()); err != nil || record == nil || record.Revision != 7 {
		t.Errorf("the neighbour has %v, %v", record, err)
	}
}

// A tenant makes heads without end, of the newest numbers. Red when each is read, or when a number
// is believed that has none after it.
func TestForgedHeadsAreNotReadWithoutEnd(t *testing.T) {
	owner := sample(1, 0).Owner()
	var forged []metav1.PartialObjectMetadata
	for i := range 2000 {
		item := metav1.PartialObjectMetadata{}
		item.Name = headName(owner, highestRevision-1000+i)
		forged = append(forged, item)
	}
	heads := headsOf(forged, owner)
	if len(heads) != 1001 || heads[0].revision != highestRevision {
		t.Errorf("%d heads, the first %v", len(heads), heads[0])
	}
	reader := &garbage{}
	if _, err := NewRecords(nil, reader, testSeal).newest(t.Context(), "any", owner, heads); err == nil || reader.reads != triedHeads {
		t.Errorf("%d were read, %v", reader.reads, err)
	}
	for _, name := range []string{
		headName(owner, highestRevision+1), nameOf(owner.LongID(), 0), nameOf(owner.ID(), 1), nameOf(owner.LongID(), 1) + "-0",
		strings.ToUpper(nameOf(owner.LongID(), 1)), nameOf(owner.LongID(), 1) + "-99999", "addon-" + owner.LongID() + "-01",
	} {
		if parsed, ok := parseName(name); ok {
			t.Errorf("%q is taken for %v", name, parsed)
		}
	}
}

// A record that is sealed again must be the one that its name and its label say. Red when
// readUnsealed believes the content of a record alone.
func TestRecordsThatAreSealedAgainSayTheirNames(t *testing.T) {
	c := seed(t, "otherwise")
	records := NewRecords(c, c, testSeal)
	for revision, change := range []func(*corev1.Secret){
		func(head *corev1.Secret) { head.Labels[v1.LabelInstallation] = "0000000000000000" },
		func(head *corev1.Secret) { head.Name = headName(sample(1, 0).Owner(), 7) },
	} {
		record := sample(revision+1, 0)
		record.State, record.Format = StateApplied, Format
		packed, err := pack(record)
		if err != nil {
			t.Fatal(err)
		}
		head := NewRecords(c, c, lostSeal).headSecret("otherwise", record, packed, nil)
		change(head)
		expect.Create(t, c, head)
	}
	if err := records.sealNamespace(t.Context(), "otherwise"); err != nil {
		t.Fatal(err)
	}
	var list corev1.SecretList
	expect.List(t, c, &list, client.InNamespace("otherwise"))
	if len(list.Items) != 2 || slices.ContainsFunc(list.Items, func(one corev1.Secret) bool { return records.seal.isOn(&one) }) {
		t.Errorf("of %d records one was sealed that is not what its name or label says", len(list.Items))
	}
}

// A Cluster came back with another UID: its records keep their names and go on, in the hands of the
// new Cluster. Red when the seal binds them to the former Cluster, or when parts stay behind that
// go with it.
func TestRecordsGoOnWithAnotherCluster(t *testing.T) {
	long.Heavy(t)
	c := seed(t, "reowned")
	records := NewRecords(c, c, testSeal)
	first, second := sample(1, 1<<20), sample(2, 0)
	for _, record := range []*Record{first, second} {
		if err := records.SaveApplied(t.Context(), "reowned", record); err != nil {
			t.Fatal(err)
		}
	}
	now := target.OwnerOf(v1.ClusterIdentity{Name: "c", UID: "uid-2"})
	for writes := 0; ; writes++ { // killed at any write, it is done again
		if err := NewRecords(killedAfter(c, writes), c, testSeal).Reown(t.Context(), "reowned", first.Owner(), now); err == nil {
			break
		}
	}
	for _, record := range []*Record{second, first} {
		record.ClusterUID, record.Origin = "uid-2", "uid-1"
		got, err := records.LoadRevision(t.Context(), "reowned", ownership.Owner{ClusterUID: "uid-1", Installation: "prometheus"}, record.Revision)
		if err != nil || got == nil {
			t.Fatalf("got %v, %v", got, err)
		}
		same(t, record, got)
	}
	var list corev1.SecretList
	expect.List(t, c, &list, client.InNamespace("reowned"))
	for _, item := range list.Items {
		if item.OwnerReferences[0].UID != "uid-2" {
			t.Errorf("Secret %q goes with Cluster %q", item.Name, item.OwnerReferences[0].UID)
		}
	}
	found, err := records.Clusters(t.Context(), "reowned", "prometheus")
	if diff := cmp.Diff([]v1.ClusterIdentity{{Name: now.Name, UID: now.UID}}, found); err != nil || diff != "" {
		t.Errorf("Clusters (-want +got):\n%s%v", diff, err)
	}
}
