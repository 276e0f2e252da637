package revision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
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
	"github.com/trellis-addons/trellis/pkg/ownership"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/long"
)

// unsealedRecords are two revisions as they were written before records were sealed, byte for byte:
// 1 is applied, 2 an intent.
func unsealedRecords(t *testing.T) []corev1.Secret {
	t.Helper()
	text, err := os.ReadFile("testdata/unsealed-records.json")
	if err != nil {
		t.Fatal(err)
	}
	var secrets []corev1.Secret
	if err := json.Unmarshal(text, &secrets); err != nil {
		t.Fatal(err)
	}
	return secrets
}

// unsealedOf are the Secrets of a record as they were written before records were sealed.
func unsealedOf(t *testing.T, namespace string, record *Record) []corev1.Secret {
	t.Helper()
	former := *record
	former.Format = 1
	packed, err := pack(&former)
	if err != nil {
		t.Fatal(err)
	}
	chunks := split(packed)
	about := indexOf(&former, packed, freeNumbers(nil, len(chunks)))
	text, _ := json.Marshal(map[string]any{"format": 1, "digest": about.Digest, "parts": about.Parts})
	head := secret(namespace, &former, nameOf(former.Owner().ID()[:formerDigits], former.Revision), 0)
	head.Labels[LabelState], head.Data = string(former.State), map[string][]byte{keyIndex: text}
	if len(chunks) == 0 {
		head.Data[keyRecord] = packed
	}
	secrets := []corev1.Secret{*head}
	for i, chunk := range chunks {
		part := secret(namespace, &former, partName(head.Name, i+1), 0)
		part.Data = map[string][]byte{keyRecord: chunk}
		secrets = append(secrets, *part)
	}
	return secrets
}

func create(t *testing.T, c client.Client, namespace string, secrets []corev1.Secret) {
	t.Helper()
	for i := range secrets {
		secrets[i].Namespace, secrets[i].ResourceVersion = namespace, ""
		expect.Create(t, c, &secrets[i])
	}
}

// started is a process that leads: records that believe nothing unsealed once earlier ones are
// sealed.
func started(t *testing.T, c client.Client, reader client.Reader, platform string) (*Records, *Sealing) {
	t.Helper()
	key, err := LoadOrCreateInputsKey(t.Context(), c, platform)
	if err != nil {
		t.Fatal(err)
	}
	records := NewRecords(c, reader, NewSeal(key))
	return records, records.SealEarlier(platform, key)
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

// Records that an earlier release wrote are found under their former names and go on, whole. Red
// when they are not sealed before they are asked for, when they keep names of 40 bits, or when
// anything of them is lost.
func TestRecordsOfBeforeGoOn(t *testing.T) {
	c := seed(t, "goeson")
	seed(t, "goeson-platform")
	create(t, c, "goeson", unsealedRecords(t))
	owner := sample(1, 0).Owner()
	records, _ := started(t, c, c, "goeson-platform")
	for why, load := range map[string]func() (*Record, error){
		"first":        func() (*Record, error) { return records.LoadFirst(t.Context(), "goeson", owner) },
		"alone":        func() (*Record, error) { return records.Load(t.Context(), "goeson", owner) },
		"one revision": func() (*Record, error) { return records.LoadRevision(t.Context(), "goeson", owner, 2) },
	} {
		want := sample(2, 64)
		want.State, want.Format, want.Superseded[0].Fields = StateIntent, Format, nil
		record, err := load()
		if err != nil || record == nil {
			t.Fatalf("%s: got %v, %v", why, record, err)
		}
		same(t, want, record)
	}
	applied, err := records.LoadRevision(t.Context(), "goeson", owner, 1)
	if err != nil || applied == nil || applied.State != StateApplied || applied.Values["password"] != "s3cret" || applied.Hooks[0].Run.UID != "h" {
		t.Fatalf("got %v, %v", applied, err)
	}
	if diff := cmp.Diff([]string{headName(owner, 1), headName(owner, 2)}, names(t, c, "goeson")); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
	found, err := records.Clusters(t.Context(), "goeson", "prometheus")
	if diff := cmp.Diff([]v1.ClusterIdentity{{Name: "c", UID: "uid-1"}}, found); err != nil || diff != "" {
		t.Errorf("Clusters (-want +got):\n%s%v", diff, err)
	}
	applied.Version = "v2"
	if err := records.SaveApplied(t.Context(), "goeson", applied); err != nil {
		t.Error(err)
	}
}

// The process is killed after each possible number of writes while it seals, and another goes on: a
// record is there at any time, and in the end once. Red when the former head goes before the new
// one is written, or when what was left is not taken away.
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
		for i, state := range []State{StateApplied, StateIntent} {
			before[i].State = state
			create(t, c, namespace, unsealedOf(t, namespace, before[i]))
			before[i].Format = Format
		}
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
		for _, name := range names(t, c, namespace) {
			if parsed, _ := parseName(name); parsed.isFormer() {
				t.Errorf("after %d writes Secret %q is left", writes, name)
			}
		}
	}
}

// What was done is remembered beside the key: later processes believe nothing that is not sealed,
// also under a former name, and make no call to find out but one. Red when an unsealed record is
// believed after the first start, or when the mark stands before all records are sealed.
func TestSealedOnceAndForAll(t *testing.T) {
	c := seed(t, "once")
	seed(t, "once-platform")
	owner := sample(1, 0).Owner()
	golden := unsealedRecords(t)
	create(t, c, "once", golden[:1])

	_, dying := started(t, killedAfter(c, 3), c, "once-platform") // the key, the new head, the former; not the mark
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
	create(t, c, "once", golden[1:])
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
		record.Installation, record.State = fmt.Sprintf("a%d", i), StateApplied
		create(t, c, "many", unsealedOf(t, "many", record))
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
	other := sample(1, 0)
	other.State = StateApplied
	create(t, c, "many-refused", unsealedOf(t, "many-refused", other))
	if err := before.sealAll(t.Context()); err == nil {
		t.Error("remembered although a namespace is not sealed")
	}
	if over, err := before.isDone(t.Context()); over || err != nil {
		t.Errorf("got %t, %v", over, err)
	}
}

// A tenant keeps the name of today, or that of a part, from a record of before, has more Secrets
// than are read, or a namespace that never ends: only their own records are not believed, and from
// then on nothing unsealed is, anywhere. Red when sealing goes on trying for any of them.
func TestNobodyKeepsRecordsFromBeingSealed(t *testing.T) {
	c := seed(t, "keeper")
	seed(t, "keeper-platform")
	head, part := sample(1, 0), sample(1, 1<<20)
	part.Installation = "other"
	for _, record := range []*Record{head, part} {
		record.State = StateApplied
		create(t, c, "keeper", unsealedOf(t, "keeper", record))
	}
	create(t, c, "keeper", []corev1.Secret{
		{ObjectMeta: metav1.ObjectMeta{Name: headName(head.Owner(), 1)}, Type: corev1.SecretTypeOpaque},
		{ObjectMeta: metav1.ObjectMeta{Name: partName(headName(part.Owner(), 1), 1)}, Type: corev1.SecretTypeOpaque},
	})
	records, before := started(t, c, c, "keeper-platform")
	if err := before.sealAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if over, err := before.isDone(t.Context()); !over || err != nil {
		t.Errorf("got %t, %v: it is tried for ever", over, err)
	}
	for _, record := range []*Record{head, part} {
		var damaged *DamagedError
		if got, err := records.Load(t.Context(), "keeper", record.Owner()); !errors.As(err, &damaged) {
			t.Errorf("%s: got %v, %v", record.Installation, got, err)
		}
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

// At the upgrade: what a tenant put there before is read within the bounds of what is written, and
// stays as it is. Red when it ends the process, or holds up the others of the namespace.
func TestABombOfBeforeIsNotSealed(t *testing.T) {
	c := seed(t, "oldbomb")
	seed(t, "oldbomb-platform")
	forged := unsealedRecords(t)
	packed := bomb()
	about, _ := json.Marshal(map[string]any{"format": 1, "digest": indexOf(sample(1, 0), packed, nil).Digest})
	forged[1].Data = map[string][]byte{keyIndex: about, keyRecord: packed}
	create(t, c, "oldbomb", forged)
	records, before := started(t, c, c, "oldbomb-platform")
	var err error
	if bytes := allocated(func() { err = before.sealAll(t.Context()) }); err != nil || bytes > 4*unpackedLimit {
		t.Errorf("%v after %d bytes", err, bytes)
	}
	record, err := records.Load(t.Context(), "oldbomb", sample(1, 0).Owner())
	if err != nil || record == nil || record.Revision != 1 || record.Skipped != 2 {
		t.Errorf("got %v, %v", record, err)
	}
}

// At the upgrade: a record that a user cluster has filled is sealed without what nothing explains.
// Red when it is sealed as it is, or when the installation can't go on.
func TestWhatALiarAddedBeforeIsLeftOut(t *testing.T) {
	c := seed(t, "liar-before")
	seed(t, "liar-before-platform")
	grown := lied(sample(1, 0), 2<<20)
	grown.State = StateApplied
	create(t, c, "liar-before", unsealedOf(t, "liar-before", grown))
	records, _ := started(t, c, c, "liar-before-platform")
	record, err := records.Load(t.Context(), "liar-before", grown.Owner())
	if err != nil || record == nil {
		t.Fatalf("got %v, %v", record, err)
	}
	for _, entry := range record.Inventory {
		if len(entry.Fields) > 64<<10 || len(entry.UID) > 36 {
			t.Errorf("%s has fields of %d bytes and a UID of %d", entry.Key, len(entry.Fields), len(entry.UID))
		}
	}
	if err := records.SaveApplied(t.Context(), "liar-before", record); err != nil {
		t.Error(err)
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
