package revision

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/install/helmrelease"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/long"
)

// sample is a record whose objects take about size bytes which don't compress.
func sample(revision, size int) *Record {
	random := rand.New(rand.NewPCG(uint64(revision), uint64(size)))
	var objects []json.RawMessage
	for made := 0; made <= size; made += 64 << 10 {
		noise := make([]byte, min(48<<10, size))
		for i := range noise {
			noise[i] = byte(random.Uint32())
		}
		text, _ := json.Marshal(noise)
		objects = append(objects, json.RawMessage(fmt.Sprintf(`{"kind":"ConfigMap","binaryData":{"a":%s}}`, text)))
	}
	return &Record{
		Revision: revision, Installation: "prometheus", ClusterName: "c", ClusterUID: "uid-1",
		Addon: "prometheus", Version: "v1", EntryDigest: "e", Core: true, Method: v1.MethodHelm,
		Artifact: v1.Artifact{Revision: "abc", Digest: "sha256:1"}, Inputs: "i", ObjectsDigest: "o",
		TargetNamespace: "monitoring", CRDs: v1.CRDPolicy{Apply: v1.CRDCreate, Remove: v1.CRDRemoveKeep},
		Timeout: metav1.Duration{Duration: time.Minute}, Settled: true, Objects: objects,
		Inventory: ownership.Inventory{{
			Key: ownership.Key{Kind: "ConfigMap", Namespace: "monitoring", Name: "a"}, Version: "v1", UID: "u",
			Fields: json.RawMessage(`{"f:data":{}}`), Created: true,
		}},
		Superseded: ownership.Inventory{{Key: ownership.Key{Kind: "Secret", Namespace: "monitoring", Name: "b"}, Version: "v1", Orphan: true}},
		Helm:       &helmrelease.Release{Name: "prometheus", Revision: 2, Status: "deployed", Config: map[string]any{"a": "b"}},
		Time:       metav1.NewTime(time.Unix(1800000000, 0)),
	}
}

func load(t *testing.T, records *Records, namespace string) *Record {
	t.Helper()
	record, err := records.Load(t.Context(), namespace, sample(1, 0).Owner())
	expect.NoError(t, err)
	return record
}

func same(t *testing.T, want, got *Record) {
	t.Helper()
	bytewise := cmp.Comparer(func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
	if diff := cmp.Diff(want, got, bytewise, cmpopts.IgnoreUnexported(Record{})); diff != "" {
		t.Fatalf("record (-want +got):\n%.2000s", diff)
	}
}

func TestRecordsComeBackWhole(t *testing.T) {
	long.Heavy(t)
	c := seed(t, "whole")
	records := NewRecords(c, c, testSeal)
	if got := load(t, records, "whole"); got != nil {
		t.Fatalf("got %v where there is none", got)
	}
	for revision, size := range []int{0, 500 << 10, 3 << 20} {
		t.Run(fmt.Sprintf("%d bytes", size), func(t *testing.T) {
			record := sample(revision+1, size)
			expect.NoError(t, records.SaveIntent(t.Context(), "whole", record))
			same(t, record, load(t, records, "whole"))
			for range 2 { // in place, over the parts of before
				record.Inventory[0].UID += "x"
				expect.NoError(t, records.SaveApplied(t.Context(), "whole", record))
				got := load(t, records, "whole")
				same(t, record, got)
				record = got
			}
			if diff := cmp.Diff(StateApplied, record.State); diff != "" {
				t.Errorf("state (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSecretsAreTheClusters(t *testing.T) {
	c := seed(t, "owned")
	records := NewRecords(c, c, testSeal)
	expect.NoError(t, records.SaveIntent(t.Context(), "owned", sample(1, 2<<20)))
	var list corev1.SecretList
	expect.List(t, c, &list, client.InNamespace("owned"))
	if len(list.Items) < 3 {
		t.Fatalf("got %d Secrets, want a head and parts", len(list.Items))
	}
	if want := "addon-" + sample(1, 0).Owner().LongID() + "-1"; list.Items[0].Name != want {
		t.Errorf("got name %q, want %q", list.Items[0].Name, want)
	}
	for _, item := range list.Items {
		owner := item.OwnerReferences[0]
		got := []string{string(item.Type), owner.Kind, owner.Name, string(owner.UID), item.Labels[v1.LabelInstallation]}
		want := []string{"addons.kubermatic.k8c.io/release.v1", "Cluster", "c", "uid-1", sample(1, 0).Owner().ID()}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Secret %q (-want +got):\n%s", item.Name, diff)
		}
	}
}

// A process is killed after each possible number of writes. What is read is the record of before or
// the new one, never a mixture, and the next process goes on from there.
func TestKilledWhileSaving(t *testing.T) {
	long.Heavy(t)
	c := seed(t, "killed")
	records := NewRecords(c, c, testSeal)
	const small, large = 1 << 20, 2 << 20
	before := sample(1, large)
	expect.NoError(t, records.SaveApplied(t.Context(), "killed", before))
	for _, size := range []int{small, 0, large} {
		for writes := 0; ; writes++ {
			next := load(t, records, "killed")
			changed := sample(1, size)
			next.Objects, next.Version = changed.Objects, fmt.Sprintf("v%d-%d", size, writes)
			err := NewRecords(killedAfter(c, writes), c, testSeal).SaveApplied(t.Context(), "killed", next)
			got := load(t, records, "killed")
			if got.Version == next.Version {
				before = next
			}
			same(t, before, got)
			if err == nil {
				break
			}
		}
	}
	expect.NoError(t, records.Forget(t.Context(), "killed", before.Owner()))
	noneLeft(t, c, "killed")
}

func noneLeft(t *testing.T, c client.Client, namespace string) {
	t.Helper()
	var list corev1.SecretList
	expect.List(t, c, &list, client.InNamespace(namespace))
	for _, item := range list.Items {
		t.Errorf("Secret %q is left", item.Name)
	}
}

func TestKilledBeforeTheHeadOfANewRevision(t *testing.T) {
	long.Heavy(t)
	c := seed(t, "newrevision")
	records := NewRecords(c, c, testSeal)
	first := sample(1, 0)
	expect.NoError(t, records.SaveApplied(t.Context(), "newrevision", first))
	if err := NewRecords(killedAfter(c, 2), c, testSeal).SaveIntent(t.Context(), "newrevision", sample(2, 4<<20)); err == nil {
		t.Fatal("saved although killed")
	}
	same(t, first, load(t, records, "newrevision"))
	second := sample(2, 3<<20) // the next process plans something else, over the parts that were left
	expect.NoError(t, records.SaveIntent(t.Context(), "newrevision", second))
	same(t, second, load(t, records, "newrevision"))
}

func TestIntentTakesTheLastOnesPlace(t *testing.T) {
	c := seed(t, "replaced")
	records := NewRecords(c, c, testSeal)
	expect.NoError(t, records.SaveIntent(t.Context(), "replaced", sample(1, 2<<20)))
	other := sample(1, 0)
	other.Version = "v2"
	expect.NoError(t, records.SaveIntent(t.Context(), "replaced", other))
	same(t, other, load(t, records, "replaced"))
	expect.NoError(t, records.SaveApplied(t.Context(), "replaced", other))
	var conflict *ConflictError
	if err := records.SaveIntent(t.Context(), "replaced", sample(1, 0)); !errors.As(err, &conflict) {
		t.Errorf("an applied revision was overwritten: %v", err)
	}
}

func TestTwoWritersDoNotOverwriteEachOther(t *testing.T) {
	c := seed(t, "two")
	records := NewRecords(c, c, testSeal)
	expect.NoError(t, records.SaveIntent(t.Context(), "two", sample(1, 0)))
	one, other := load(t, records, "two"), load(t, records, "two")
	one.Version = "v7"
	expect.NoError(t, records.SaveIntent(t.Context(), "two", one))
	var conflict *ConflictError
	if err := records.SaveApplied(t.Context(), "two", other); !errors.As(err, &conflict) {
		t.Errorf("got %v, want a ConflictError", err)
	}
	same(t, one, load(t, records, "two"))
}

func TestLightRecordsAreNotSaved(t *testing.T) {
	record := sample(1, 0)
	var light *LightError
	if err := NewRecords(nil, nil, testSeal).SaveApplied(t.Context(), "any", record.Light()); !errors.As(err, &light) {
		t.Errorf("got %v, want a LightError", err)
	}
	if len(record.Objects) == 0 {
		t.Error("the record itself lost its objects")
	}
}

// Red when the light form keeps what a chart rendered, which is as large as its objects, or loses
// what is said of the release; and when CopyProgress brings an empty manifest along.
func TestLightRecordsFollowTheirReleases(t *testing.T) {
	record := sample(1, 0)
	record.Helm = &helmrelease.Release{Name: "web", Revision: 3, Status: "deployed", Manifest: "kind: Service", Config: map[string]any{"size": 1}}
	light := record.Light()
	if light.Helm.Manifest != "" || light.Helm.Config != nil || record.Helm.Manifest == "" {
		t.Errorf("light has %+v, the record %+v", light.Helm, record.Helm)
	}
	light.HooksState.Event, light.Helm.Status = "post-install", "failed"
	record.CopyProgress(light)
	if record.Helm.Status != "failed" || record.HooksState.Event != "post-install" || record.Helm.Manifest != "kind: Service" ||
		record.Helm.Config == nil || record.Helm.Revision != 3 {
		t.Errorf("the record became %+v, %+v", record.Helm, record.HooksState)
	}
}

func TestTrimKeepsFive(t *testing.T) {
	c := seed(t, "trim")
	records := NewRecords(c, c, testSeal)
	for revision := 8; revision <= 14; revision++ { // 9 to 10: numbers are compared, not names
		size := 0
		if revision == 8 {
			size = 2 << 20
		}
		expect.NoError(t, records.SaveApplied(t.Context(), "trim", sample(revision, size)))
	}
	neighbour := sample(1, 0)
	neighbour.Installation = "grafana"
	expect.NoError(t, records.SaveApplied(t.Context(), "trim", neighbour))
	expect.NoError(t, records.Trim(t.Context(), "trim", sample(1, 0).Owner()))
	items, err := records.list(t.Context(), "trim")
	var got []int
	for _, head := range headsOf(items, sample(1, 0).Owner()) {
		got = append(got, head.revision)
	}
	if diff := cmp.Diff([]int{14, 13, 12, 11, 10}, got); err != nil || diff != "" {
		t.Errorf("revisions (-want +got):\n%s%v", diff, err)
	}
	expect.NoError(t, records.Forget(t.Context(), "trim", sample(1, 0).Owner()))
	expect.NoError(t, records.Forget(t.Context(), "trim", neighbour.Owner()))
	noneLeft(t, c, "trim")
}

func TestDamagedRecords(t *testing.T) {
	for _, test := range []struct {
		why, namespace string
		damage         func(head *corev1.Secret)
		want           any
	}{
		{"a newer release wrote it", "newer", func(head *corev1.Secret) {
			head.Data[keyIndex] = []byte(`{"format":3,"shape":"unheard of"}`)
			sealAgain(head)
		}, &NewerRecordError{sampleHead, "has format 3, this release knows 2"}},
		{"it needs what this release does not know", "needing", func(head *corev1.Secret) {
			head.Data[keyIndex] = bytes.Replace(head.Data[keyIndex], []byte("}"), []byte(`,"needs":["hooks","parts"]}`), 1)
			sealAgain(head)
		}, &NewerRecordError{sampleHead, `needs "parts", which this release does not know`}},
		{"bytes changed", "changed", func(head *corev1.Secret) { head.Data[keyRecord][40] ^= 1 },
			&DamagedError{sampleHead, "does not match its recorded digest"}},
		{"the index is gone", "indexless", func(head *corev1.Secret) { delete(head.Data, keyIndex) }, unsealed(sampleHead)},
		{"the index is no index", "noindex", func(head *corev1.Secret) {
			head.Data[keyIndex] = []byte(`[]`)
			sealAgain(head)
		}, &DamagedError{sampleHead, "has no index"}},
		{"a part is gone", "partless", func(head *corev1.Secret) {
			head.Data[keyIndex] = bytes.Replace(head.Data[keyIndex], []byte("}"), []byte(`,"parts":[1]}`), 1)
			sealAgain(head)
		}, &DamagedError{sampleHead, "lacks part 1"}},
		{"the index was changed", "unsealed", func(head *corev1.Secret) {
			head.Data[keyIndex] = bytes.Replace(head.Data[keyIndex], []byte(`"Applied"`), []byte(`"Intent"`), 1)
		}, unsealed(sampleHead)},
		{"the index says more than the record", "lying", func(head *corev1.Secret) {
			head.Data[keyIndex] = bytes.Replace(head.Data[keyIndex], []byte(`"Applied"`), []byte(`"Intent"`), 1)
			sealAgain(head)
		}, &DamagedError{sampleHead, "differs from its index"}},
	} {
		t.Run(test.why, func(t *testing.T) {
			c := seed(t, test.namespace)
			records := NewRecords(c, c, testSeal)
			expect.NoError(t, records.SaveApplied(t.Context(), test.namespace, sample(1, 0)))
			damage(t, c, test.namespace, sampleHead, test.damage)
			record, err := records.Load(t.Context(), test.namespace, sample(1, 0).Owner())
			if diff := cmp.Diff(test.want, any(err)); record != nil || diff != "" {
				t.Errorf("got record %v, error (-want +got):\n%s", record, diff)
			}
		})
	}
}

func sealAgain(head *corev1.Secret) {
	head.Data[keySeal] = []byte(testSeal.of(head.Namespace, head.Name, head.Data[keyIndex]))
}

var sampleHead = headName(sample(1, 0).Owner(), 1)

func damage(t *testing.T, c client.Client, namespace, name string, change func(*corev1.Secret)) {
	t.Helper()
	var head corev1.Secret
	expect.Get(t, c, client.ObjectKey{Namespace: namespace, Name: name}, &head)
	change(&head)
	expect.Update(t, c, &head)
}

func TestIncompletePartsMeanTheRevisionBefore(t *testing.T) {
	c := seed(t, "incomplete")
	records := NewRecords(c, c, testSeal)
	first := sample(1, 0)
	expect.NoError(t, records.SaveApplied(t.Context(), "incomplete", first))
	expect.NoError(t, records.SaveApplied(t.Context(), "incomplete", sample(2, 2<<20)))
	part := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "incomplete", Name: partName(headName(first.Owner(), 2), 1),
	}}
	expect.Delete(t, c, part)
	damage := &DamagedError{headName(first.Owner(), 2), "lacks part 1"}
	first.Skipped, first.Damage = 2, damage.Error() // whoever goes on from it has to know
	same(t, first, load(t, records, "incomplete"))
}

// Nothing of a sealed head can be changed; what is sealed and hostile is bounded all the same.
func FuzzRead(f *testing.F) {
	records := NewRecords(nil, missing{}, testSeal)
	packed, err := pack(sample(1, 0))
	expect.NoError(f, err)
	head := records.headSecret("n", sample(1, 0), packed, nil)
	f.Add(head.Data[keyIndex], packed, false)
	f.Add(head.Data[keyIndex], packed, true)
	f.Fuzz(func(t *testing.T, index, packed []byte, sealed bool) {
		head := records.headSecret("n", sample(1, 0), packed, nil)
		if len(index) > 0 && index[0] == '{' {
			head.Data[keyIndex] = index
		}
		if sealed {
			sealAgain(head)
		}
		record, err := records.read(t.Context(), head, sample(1, 0).Owner(), 1)
		if (record == nil) == (err == nil) {
			t.Fatalf("got %v and %v", record, err)
		}
	})
}
