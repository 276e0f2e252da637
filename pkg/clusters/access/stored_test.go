package access

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func whole(t testing.TB) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: "uid"}, Data: map[string][]byte{KeyToken: []byte("token")}}
	one := record{Type: v1.AccessByToken, Serial: "serial", Account: "account", Issued: epoch, Expires: epoch.Add(time.Hour)}
	one.Sum = sum(secret.UID, one, secret.Data)
	var err error
	if secret.Data, err = with(secret.Data, one); err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestWhatWasEditedIsNoCredential(t *testing.T) {
	state := func(from, to string) func(*corev1.Secret) {
		return func(secret *corev1.Secret) {
			changed := strings.ReplaceAll(string(secret.Data[keyState]), from, to)
			if changed == string(secret.Data[keyState]) {
				t.Fatalf("%s has no %s", changed, from)
			}
			secret.Data[keyState] = []byte(changed)
		}
	}
	for _, test := range []struct {
		why    string
		change func(*corev1.Secret)
		is     bool
	}{
		{"as it was written", func(*corev1.Secret) {}, true},
		{"a key beside it, of the next certificate", func(secret *corev1.Secret) { secret.Data[keyNext] = []byte("key") }, true},
		{"empty", func(secret *corev1.Secret) { secret.Data = nil }, false},
		{"from a backup: tokens are bound to the UID", func(secret *corev1.Secret) { secret.UID = "other" }, false},
		{"another token", func(secret *corev1.Secret) { secret.Data[KeyToken] = []byte("Token") }, false},
		{"another part", func(secret *corev1.Secret) { secret.Data[KeyPrivate] = []byte("key") }, false},
		{"a longer life", state("01:00:00", "02:00:00"), false},
		{"another account", state("account\":\"account", "account\":\"other"), false},
		{"another serial", state("serial\":\"serial", "serial\":\"other"), false},
		{"a field that is not known", state(`{"type"`, `{"x":1,"type"`), false},
		{"two values", state(`}`, `}{}`), false},
		{"too large a part", func(secret *corev1.Secret) { secret.Data["x"] = make([]byte, maxPart+1) }, false},
		{"too large a record", func(secret *corev1.Secret) {
			secret.Data[keyState] = append(secret.Data[keyState], strings.Repeat(" ", maxState)...)
		}, false},
	} {
		secret := whole(t)
		test.change(secret)
		if found := read(secret); found.isWhole != test.is || found.isWhole != (found.record.Serial != "") {
			t.Errorf("%s: it is one: %t", test.why, found.isWhole)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(whole(f).Data[keyState], []byte("token"))
	f.Add([]byte(`{"refusal":{"reason":"a","message":"b"}}`), []byte{})
	f.Fuzz(func(t *testing.T, state, token []byte) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{UID: "uid"}, Data: map[string][]byte{keyState: state, KeyToken: token}}
		found := read(secret)
		if !found.isWhole && (found.record.Serial != "" || !found.record.Expires.IsZero()) {
			t.Errorf("half a record: %+v", found.record)
		}
		if _, err := json.Marshal(found.record); err != nil {
			t.Errorf("what was read can't be written: %v", err)
		}
	})
}

func TestTheStateOfACredential(t *testing.T) {
	hour := func(hours int) time.Time { return epoch.Add(time.Duration(hours) * time.Hour) }
	waits := &Problem{Reason: v1.ReasonApprovalRequired, Message: "approve x"}
	denied := &Problem{Reason: v1.ReasonRequestDenied, Message: "denied", IsLasting: true}
	for _, test := range []struct {
		why    string
		at     facts
		reason string
		words  string
		usable bool
		next   time.Time
	}{
		{"a good one", facts{now: hour(0), has: true, expires: hour(10), renewAt: hour(8)}, "", "", true, hour(8)},
		{"none, and none is asked about", facts{now: hour(0)}, "", "", false, time.Time{}},
		{"none yet", facts{now: hour(0), problem: waits, next: hour(1)}, v1.ReasonApprovalRequired, "approve x", false, hour(1)},
		{"none, and none will be", facts{now: hour(0), problem: denied}, v1.ReasonRequestDenied, "denied", false, time.Time{}},
		{
			"it counts while the next is waited for", facts{now: hour(8), has: true, expires: hour(10), renewAt: hour(8), problem: waits, next: hour(9)},
			v1.ReasonRenewalPending, "approve x", true, hour(9),
		},
		{
			"its end comes before the next try", facts{now: hour(9), has: true, expires: hour(10), renewAt: hour(8), problem: waits, next: hour(11)},
			v1.ReasonRenewalPending, "approve x", true, hour(10),
		},
		{
			"its end is looked at though nothing is tried", facts{now: hour(9), has: true, expires: hour(10), renewAt: hour(8), problem: denied},
			v1.ReasonRenewalPending, "denied", true, hour(10),
		},
		{
			"it ended", facts{now: hour(10), has: true, expires: hour(10), renewAt: hour(8), problem: waits, next: hour(11)},
			v1.ReasonExpired, "approve x", false, hour(11),
		},
		{
			"without rights it is of no use", facts{
				now: hour(0), has: true, expires: hour(10), renewAt: hour(8), isBlocked: true,
				problem: &Problem{Reason: v1.ReasonRightsRefused, Message: "secrets", IsLasting: true},
			},
			v1.ReasonRightsRefused, "secrets", false, time.Time{},
		},
	} {
		got := test.at.complete(Status{Name: "hub"})
		var reason, words string
		if got.Problem != nil {
			reason, words = got.Problem.Reason, got.Problem.Message
		}
		if reason != test.reason || !strings.Contains(words, test.words) || got.Usable != test.usable || !got.Next.Equal(test.next) {
			t.Errorf("%s: %+v, problem %+v", test.why, got, got.Problem)
		}
	}
}

func TestWhoseAnObjectOfTheSeedIs(t *testing.T) {
	cluster := metav1.OwnerReference{APIVersion: "kubermatic.k8c.io/v1", Kind: "Cluster", Name: "a", UID: "now"}
	owner := ownership.Owner{ClusterUID: "now", Installation: "agent"}
	of := Holder{ClusterOwner: cluster, Owner: owner, Installation: "agent"}.marks()
	with := func(change func(*metav1.OwnerReference)) []metav1.OwnerReference {
		other := cluster
		change(&other)
		return []metav1.OwnerReference{other}
	}
	previous := with(func(other *metav1.OwnerReference) { other.UID = "then" })
	for _, test := range []struct {
		why         string
		label, name string
		owners      []metav1.OwnerReference
		want        whose
	}{
		{"all marks", owner.ID(), "agent", []metav1.OwnerReference{cluster}, ours},
		{"its label was taken off", "", "agent", []metav1.OwnerReference{cluster}, ours},
		{"its annotation was taken off", owner.ID(), "", []metav1.OwnerReference{cluster}, ours},
		{"its owner was taken off", owner.ID(), "agent", nil, ours},
		{"somebody owns it too", owner.ID(), "agent", append(previous, cluster), ours},
		{"a former Cluster's", "other", "agent", previous, ofPrevious},
		{"a former Cluster's, over the same user cluster", owner.ID(), "agent", previous, ofPrevious},
		{"a former Cluster's, of another version", "other", "agent", with(func(other *metav1.OwnerReference) {
			other.UID, other.APIVersion = "then", "kubermatic.k8c.io/v2"
		}), ofPrevious},
		{"something of a former Cluster that is no agent's", "", "", previous, anothers},
		{"an owner of another group", "other", "agent", with(func(other *metav1.OwnerReference) {
			other.UID, other.APIVersion = "then", "cluster.x-k8s.io/v1"
		}), anothers},
		{"another Cluster's", "other", "agent", with(func(other *metav1.OwnerReference) { other.UID, other.Name = "then", "b" }), anothers},
		{"another installation's with the same name of account", "other", "agent-b", []metav1.OwnerReference{cluster}, anothers},
		{"a label alone", owner.ID(), "", nil, anothers},
		{"an annotation alone", "", "agent", nil, anothers},
		{"the Cluster's", "", "", []metav1.OwnerReference{cluster}, anothers},
		{"nobody's", "", "", nil, anothers},
	} {
		object := &metav1.ObjectMeta{
			Labels: map[string]string{v1.LabelAccess: test.label}, Annotations: map[string]string{v1.AnnotationAccessOf: test.name},
			OwnerReferences: test.owners,
		}
		if got := of.whose(object); got != test.want {
			t.Errorf("%s: %d, not %d", test.why, got, test.want)
		}
	}
}

// AG18: What is remembered between passes, and what a Status is made of, has nothing of a credential.
func TestRecordsHaveNothingOfACredential(t *testing.T) {
	secret := whole(t)
	if state := string(secret.Data[keyState]); strings.Contains(state, "token\"") {
		t.Errorf("the record is %s", state)
	}
	found := read(secret)
	hub := Hub{Server: "https://hub", CA: []byte("ca")}
	if one, other := digest(found.record.Serial, hub), digest("other", hub); one == other || len(one) != 32 {
		t.Errorf("the digests are %q and %q", one, other)
	}
	if diff := cmp.Diff(digest("ab", Hub{Server: "c"}), digest("a", Hub{Server: "bc"})); diff == "" {
		t.Error("parts of a digest run into each other")
	}
}
