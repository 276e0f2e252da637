package pullsecret

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// paged is a seed with as many records, which it lists in pages if it is asked to.
type paged struct {
	client.Reader
	count, largest int
}

func (p *paged) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	from := 0
	if asked.Continue != "" {
		if _, err := fmt.Sscan(asked.Continue, &from); err != nil {
			return err
		}
	}
	to := p.count
	if asked.Limit > 0 {
		to = min(to, from+int(asked.Limit))
	}
	found := list.(*corev1.ConfigMapList)
	for at := from; at < to; at++ {
		found.Items = append(found.Items, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(recordPrefix, at)}})
	}
	if to < p.count {
		found.Continue = fmt.Sprint(to)
	}
	p.largest = max(p.largest, len(found.Items))
	return nil
}

// Red when all records of a seed come in one answer, or not all of them do.
func TestRecordsAreListedInPages(t *testing.T) {
	seed := &paged{count: 2*listed + 1}
	records := NewRecords(nil, seed, Options{})
	if err := records.list(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(records.held) != seed.count || seed.largest > listed {
		t.Errorf("of %d records %d are known, up to %d came at once", seed.count, len(records.held), seed.largest)
	}
}

// Red when a record grows without bounds, or one that is too large can't be made smaller or written again.
func TestARecordHasBounds(t *testing.T) {
	held := NewRecords(nil, nil, Options{}).newHeld("cluster")
	for at := range MaxRecord / entryBytes {
		one := written(fmt.Sprintf("namespace-%d", at), "pull", strings.Repeat("x", entryBytes/2))
		held.All = append(held.All, one)
	}
	last := len(held.All)
	outgrown := func(plan Plan) bool {
		t.Helper()
		is, err := held.Outgrown(plan)
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	if outgrown(Plan{Write: []int{last - 1}}) {
		t.Error("a record within bounds is too large")
	}
	var plan Plan
	for at := range MaxRecord / entryBytes {
		key := ownership.Key{Kind: "Secret", Namespace: fmt.Sprintf("new-%d", at), Name: "pull"}
		held.All = append(held.All, Copy{Entry: ownership.Entry{Key: key}})
		plan.Write = append(plan.Write, last+at)
	}
	if !outgrown(plan) {
		t.Error("the record grows without bounds")
	}
	for _, at := range plan.Write {
		held.All[at].UID = types.UID(strings.Repeat("u", entryBytes))
	}
	if !outgrown(plan) {
		t.Error("the record is larger than it may be")
	}
	held.size = 2 * MaxRecord
	if outgrown(plan) {
		t.Error("a record that was larger can't be written again")
	}
}

// Red when copies go at once where the original does, stay for ever, or go where it is there and of no use.
func TestCopiesOutlastTheirOriginal(t *testing.T) {
	var secret *corev1.Secret
	records := NewRecords(nil, nil, Options{Name: "pull", Away: AwayFor, Read: func(context.Context, client.ObjectKey) (*corev1.Secret, error) {
		if secret == nil {
			return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, "pull")
		}
		return secret, nil
	}})
	held, now := records.newHeld("cluster"), time.Unix(1000, 0)
	made := func(use string, kind corev1.SecretType) *corev1.Secret {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1.LabelUse: use}}, Type: kind,
			Data: map[string][]byte{corev1.DockerConfigJsonKey: []byte("{}")},
		}
	}
	good, useless := made(v1.UsePull, corev1.SecretTypeDockerConfigJson), made(v1.UsePull, corev1.SecretTypeOpaque)
	for _, step := range []struct {
		why     string
		after   time.Duration
		is      *corev1.Secret
		copied  bool
		keeps   bool
		recheck time.Duration
	}{
		{why: "it is there", is: good, copied: true},
		{why: "it went", keeps: true, recheck: AwayFor},
		{why: "it stays away", after: AwayFor - time.Second, keeps: true, recheck: time.Second},
		{why: "it came back", is: good, copied: true},
		{why: "it went again", after: time.Hour, keeps: true, recheck: AwayFor},
		{why: "it has no mark", after: time.Minute, is: made("", corev1.SecretTypeDockerConfigJson), keeps: true, recheck: AwayFor - time.Minute},
		{why: "it was away for long", after: AwayFor},
		{why: "it is of no use", after: time.Hour, is: useless, keeps: true},
		{why: "it still is", after: time.Hour, is: useless, keeps: true},
	} {
		secret, now = step.is, now.Add(step.after)
		got, err := held.Original(t.Context(), now)
		if err != nil {
			t.Fatal(err)
		}
		if (got.Digest != "") != step.copied || got.Keeps != step.keeps || got.Until != step.recheck {
			t.Errorf("%s: it is %+v", step.why, got)
		}
		copies := Copies{Uses: map[string]Use{"one": {Namespaces: []string{"a"}}}, All: []Copy{written("a", "pull", got.Digest)}}
		if plan := copies.Plan("one", got, nil); len(plan.Write) > 0 || (len(plan.Drop) == 0) != (step.copied || step.keeps) {
			t.Errorf("%s: the plan is %v", step.why, plan)
		}
	}
}
