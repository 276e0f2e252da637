package revision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/long"
)

// lostSeal is of a key that the seed had before.
var lostSeal = NewSeal([]byte("lost"))

// saveLost saves records with the lost key, in the state that they have, whatever they hold.
func saveLost(t *testing.T, c client.Client, namespace string, records ...*Record) {
	t.Helper()
	for _, record := range records {
		if record.State == "" {
			record.State = StateApplied
		}
		if err := NewRecords(c, c, lostSeal).write(t.Context(), namespace, record); err != nil {
			t.Fatal(err)
		}
	}
}

// started is a process that leads, with the key of today: its records believe nothing unsealed once all
// are sealed again.
func started(t *testing.T, c client.Client, reader client.Reader, platform string) (*Records, *Sealing) {
	t.Helper()
	key, err := LoadOrCreateInputsKey(t.Context(), c, platform)
	if err != nil {
		t.Fatal(err)
	}
	records := NewRecords(c, reader, NewSeal(key))
	return records, records.SealAgain(platform, key)
}

func names(t *testing.T, c client.Client, namespace string) (names []string) {
	t.Helper()
	var list corev1.SecretList
	expect.List(t, c, &list, client.InNamespace(namespace))
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	return names
}

// Records of a lost key go on, whole, however they are asked for. Red when they are not sealed before
// they are read, or when anything of them is lost.
func TestRecordsOfALostKeyGoOn(t *testing.T) {
	c := seed(t, "goeson-platform")
	owner := sample(1, 0).Owner()
	for namespace, load := range map[string]func(*Records) (*Record, error){
		"goeson-first": func(records *Records) (*Record, error) { return records.LoadFirst(t.Context(), "goeson-first", owner) },
		"goeson-alone": func(records *Records) (*Record, error) { return records.Load(t.Context(), "goeson-alone", owner) },
		"goeson-one": func(records *Records) (*Record, error) {
			return records.LoadRevision(t.Context(), "goeson-one", owner, 2)
		},
	} {
		seed(t, namespace)
		applied, intent := sample(1, 64), sample(2, 64)
		applied.Values, intent.State = map[string]any{"password": "s3cret"}, StateIntent
		saveLost(t, c, namespace, applied, intent)
		records, _ := started(t, c, c, "goeson-platform")
		record, err := load(records)
		if err != nil || record == nil {
			t.Fatalf("%s: got %v, %v", namespace, record, err)
		}
		same(t, intent, record)
		before, err := records.LoadRevision(t.Context(), namespace, owner, 1)
		if err != nil || before == nil {
			t.Fatalf("%s: got %v, %v", namespace, before, err)
		}
		same(t, applied, before)
		if diff := cmp.Diff([]string{headName(owner, 1), headName(owner, 2)}, names(t, c, namespace)); diff != "" {
			t.Errorf("%s: Secrets (-want +got):\n%s", namespace, diff)
		}
		found, err := records.Clusters(t.Context(), namespace, "prometheus")
		if diff := cmp.Diff([]v1.ClusterIdentity{{Name: "c", UID: "uid-1"}}, found); err != nil || diff != "" {
			t.Errorf("%s: Clusters (-want +got):\n%s%v", namespace, diff, err)
		}
		before.Version = "v2"
		if err := records.SaveApplied(t.Context(), namespace, before); err != nil {
			t.Error(err)
		}
	}
}

// The process is killed after each possible number of writes while it seals, and another goes on:
// each record is there at any time, whole, and nothing is left in the end.
func TestKilledWhileSealing(t *testing.T) {
	long.Heavy(t)
	c := seed(t, "sealing-platform")
	if _, err := LoadOrCreateInputsKey(t.Context(), c, "sealing-platform"); err != nil {
		t.Fatal(err)
	}
	ended := false
	for writes := 0; !ended; writes++ {
		namespace := fmt.Sprintf("sealing-%d", writes)
		seed(t, namespace)
		before := []*Record{sample(1, 1<<20), sample(2, 0)}
		before[1].State = StateIntent
		saveLost(t, c, namespace, before...)
		dying := killedAfter(c, writes)
		records, _ := started(t, dying, c, "sealing-platform")
		_, err := records.Load(t.Context(), namespace, before[0].Owner())
		ended = err == nil
		records, _ = started(t, c, c, "sealing-platform")
		for _, want := range before {
			got, err := records.LoadRevision(t.Context(), namespace, want.Owner(), want.Revision)
			if err != nil || got == nil {
				t.Fatalf("after %d writes revision %d is %v, %v", writes, want.Revision, got, err)
			}
			same(t, want, got)
		}
		if err := records.Forget(t.Context(), namespace, before[0].Owner()); err != nil {
			t.Fatal(err)
		}
		noneLeft(t, c, namespace)
	}
}

// What was done is remembered beside the key: later processes believe nothing that is not sealed,
// and make no call to find out but one. Red when an unsealed record is
// believed after the first start, or when the mark stands before all records are sealed.
func TestSealedOnceAndForAll(t *testing.T) {
	c := seed(t, "once")
	seed(t, "once-platform")
	owner := sample(1, 0).Owner()
	saveLost(t, c, "once", sample(1, 0))

	_, dying := started(t, killedAfter(c, 2), c, "once-platform") // the key and the head; not the mark
	if err := dying.sealAll(t.Context()); err == nil {
		t.Fatal("sealed although killed")
	}
	records, before := started(t, c, c, "once-platform")
	if over, err := before.isDone(t.Context()); over || err != nil {
		t.Fatalf("remembered before it was done: %t, %v", over, err)
	}
	if err := before.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	saveLost(t, c, "once", sample(2, 0))
	expect := func(records *Records) {
		t.Helper()
		record, err := records.Load(t.Context(), "once", owner)
		if err != nil || record == nil || record.Revision != 1 || record.Skipped != 2 {
			t.Errorf("got %v, %v; want revision 1 in place of 2", record, err)
		}
	}
	expect(records)
	later, _ := started(t, c, c, "once-platform")
	expect(later)
	if err := later.Forget(t.Context(), "once", owner); err != nil {
		t.Fatal(err)
	}
	noneLeft(t, c, "once")
}

// A key that is gone is made anew, without the mark: the records are sealed with it once. Red when
// they are all damaged then. A process that still has the former key seals nothing.
func TestRecordsAreSealedWithANewKey(t *testing.T) {
	c := seed(t, "newkey")
	seed(t, "newkey-platform")
	records, before := started(t, c, c, "newkey-platform")
	record := sample(1, 1<<20)
	if err := records.SaveApplied(t.Context(), "newkey", record); err != nil {
		t.Fatal(err)
	}
	if err := before.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	key := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "newkey-platform", Name: InputsKeySecret}}
	expect.Delete(t, c, key)
	_, old := started(t, c, c, "newkey-platform")
	expect.Delete(t, c, key)
	records, before = started(t, c, c, "newkey-platform")
	var changed *ChangedKeyError
	if err := old.Start(t.Context()); !errors.As(err, &changed) {
		t.Errorf("got %v of a process with a former key", err)
	}
	if err := before.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	record.stored = stored{}
	got, err := records.Load(t.Context(), "newkey", record.Owner())
	if err != nil || got == nil {
		t.Fatalf("got %v, %v", got, err)
	}
	same(t, record, got)
}

// The Secret of the key was restored with another key, and with the mark that all is sealed:
// nothing is believed until the mark is taken off and the process started again, as operation.md
// says. What was written meanwhile stays. Red when sealing leaves out what carries the seal of
// another key.
func TestRecordsAreSealedAgainAfterAnotherKeyWasRestored(t *testing.T) {
	c := seed(t, "restored")
	seed(t, "restored-platform")
	records, sealing := started(t, c, c, "restored-platform")
	record := sample(1, 1<<20)
	if err := errors.Join(records.SaveApplied(t.Context(), "restored", record), sealing.Start(t.Context())); err != nil {
		t.Fatal(err)
	}
	var key corev1.Secret
	expect.Get(t, c, client.ObjectKey{Namespace: "restored-platform", Name: InputsKeySecret}, &key)
	key.Data[inputsKeyField] = []byte(strings.Repeat("another ", 4))
	expect.Update(t, c, &key)
	records, sealing = started(t, c, c, "restored-platform")
	if err := sealing.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var damaged *DamagedError
	if _, err := records.LoadRevision(t.Context(), "restored", record.Owner(), 1); !errors.As(err, &damaged) {
		t.Fatalf("with another key: got %v, want a DamagedError", err)
	}
	meanwhile := sample(2, 0)
	if err := records.SaveApplied(t.Context(), "restored", meanwhile); err != nil {
		t.Fatal(err)
	}
	expect.Patch(t, c, &key, client.RawPatch(types.JSONPatchType, []byte(`[{"op":"remove","path":"/data/records"}]`)))
	records, sealing = started(t, c, c, "restored-platform")
	if err := sealing.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []*Record{record, meanwhile} {
		want.stored = stored{}
		got, err := records.LoadRevision(t.Context(), "restored", want.Owner(), want.Revision)
		if err != nil || got == nil {
			t.Fatalf("revision %d: got %v, %v", want.Revision, got, err)
		}
		same(t, want, got)
	}
}

// Many installations of a namespace begin together; the namespace is sealed once, and one that
// can't be listed holds up no other. Red when each seals for itself, or when all namespaces are
// sealed before the first is used.
func TestNamespacesAreSealedOnceEach(t *testing.T) {
	c := seed(t, "many")
	seed(t, "many-platform")
	var owners []ownership.Owner
	for i := range 6 {
		record := sample(1, 0)
		record.Installation = fmt.Sprintf("a%d", i)
		saveLost(t, c, "many", record)
		owners = append(owners, record.Owner())
	}
	counted := &listings{Reader: c, seen: map[string]int{}, refused: "many-refused"}
	records, before := started(t, c, counted, "many-platform")
	var waits sync.WaitGroup
	for _, owner := range owners {
		waits.Go(func() {
			if record, err := records.LoadFirst(t.Context(), "many", owner); err != nil || record == nil {
				t.Errorf("got %v, %v", record, err)
			}
		})
	}
	waits.Wait()
	if counted.seen["many"] != 2 { // to seal, and to know which there are
		t.Errorf("%d lists, want 2", counted.seen["many"])
	}
	seed(t, "many-refused")
	saveLost(t, c, "many-refused", sample(1, 0))
	if err := before.sealAll(t.Context()); err == nil {
		t.Error("remembered although a namespace is not sealed")
	}
	if over, err := before.isDone(t.Context()); over || err != nil {
		t.Errorf("got %t, %v", over, err)
	}
}

// A tenant keeps the name of a part from a record that is sealed again, has more Secrets than are
// read, or a namespace that never ends: only their own records are not believed, and from then on
// nothing unsealed is, anywhere. Red when sealing goes on trying for any of them.
func TestNobodyKeepsRecordsFromBeingSealed(t *testing.T) {
	c := seed(t, "keeper")
	seed(t, "keeper-platform")
	record := sample(1, 1<<20)
	saveLost(t, c, "keeper", record)
	next := freeNumbers(record.stored.parts, len(record.stored.parts))[0]
	expect.Create(t, c, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "keeper", Name: partName(headName(record.Owner(), 1), next)}, Type: corev1.SecretTypeOpaque,
	})
	records, before := started(t, c, c, "keeper-platform")
	if err := before.sealAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if over, err := before.isDone(t.Context()); !over || err != nil {
		t.Errorf("got %t, %v: it is tried for ever", over, err)
	}
	var damaged *DamagedError
	if got, err := records.Load(t.Context(), "keeper", record.Owner()); !errors.As(err, &damaged) {
		t.Errorf("got %v, %v", got, err)
	}
	ends := apierrors.NewForbidden(corev1.Resource("secrets"), "a", errors.New("it is being terminated"))
	ends.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for why, trouble := range map[string]error{"ends": ends, "many": &TooManyError{Namespace: "many"}} {
		if err := tolerated(t.Context(), why, fmt.Errorf("writing: %w", trouble)); err != nil {
			t.Errorf("%s: %v", why, err)
		}
	}
	if tolerated(t.Context(), "refused", errors.New("refused")) == nil {
		t.Error("any failure passes")
	}
}

// listings counts lists by namespace, and refuses those of one.
type listings struct {
	client.Reader
	mutex   sync.Mutex
	seen    map[string]int
	refused string
}

// List implements client.Reader.
func (l *listings) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	var of client.ListOptions
	of.ApplyOptions(options)
	l.mutex.Lock()
	l.seen[of.Namespace]++
	l.mutex.Unlock()
	if of.Namespace == l.refused {
		return errors.New("refused")
	}
	return l.Reader.List(ctx, list, options...)
}

// What a tenant put there before the records are sealed again is read within the bounds of what is
// written, and stays as it is: here a record that unpacks to gigabytes, and one with more answers of
// a user cluster than its objects explain. Red when one of them ends the process, is sealed, or holds
// up the others of the namespace.
func TestForgedRecordsAreNotSealedAgain(t *testing.T) {
	c := seed(t, "forger")
	seed(t, "forger-platform")
	saveLost(t, c, "forger", sample(1, 0), lied(sample(2, 0), 2<<20))
	forged := sample(3, 0)
	forged.State = StateApplied
	expect.Create(t, c, NewRecords(c, c, lostSeal).headSecret("forger", forged, bomb(), nil))
	records, before := started(t, c, c, "forger-platform")
	var err error
	if bytes := allocated(func() { err = before.sealAll(t.Context()) }); err != nil || bytes > 4*unpackedLimit {
		t.Errorf("%v after %d bytes", err, bytes)
	}
	record, err := records.Load(t.Context(), "forger", sample(1, 0).Owner())
	if err != nil || record == nil || record.Revision != 1 || record.Skipped != 3 {
		t.Errorf("got %v, %v", record, err)
	}
}

// lied is a record as an API server fills it that answers with fields and UIDs of its own making.
func lied(record *Record, size int) *Record {
	noise := sample(record.Revision, size).Objects
	text, _ := json.Marshal(noise)
	for i := range record.Inventory {
		record.Inventory[i].Fields = text
		record.Inventory[i].UID = types.UID(strings.Repeat("u", 100_000))
	}
	return record
}
