package query

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

type synced struct{}

func (synced) HasSynced() bool                          { return true }
func (synced) HasSyncedChecker() toolscache.DoneChecker { return nil }

// bindingOf is a RoleBinding as the cache has it.
func bindingOf(namespace string, subjects ...rbacv1.Subject) any {
	return trimmed(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}, Subjects: subjects})
}

func trimmed(binding *rbacv1.RoleBinding) any {
	kept, err := TrimBinding(binding)
	if err != nil {
		panic(err) // it has none
	}
	return kept
}

// Red when a candidate is lost while a binding names it, or stays after the last one.
func TestCandidatesFollowBindings(t *testing.T) {
	t.Parallel()
	random, bindings := rand.New(rand.NewPCG(3, 4)), NewBindings()
	bindings.source = synced{}
	live := map[int]*rbacv1.RoleBinding{}
	for range 2000 {
		slot := random.IntN(30)
		before, now := live[slot], &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprintf("ns-%d", random.IntN(5))}}
		for range random.IntN(4) {
			now.Subjects = append(now.Subjects, rbacv1.Subject{
				Kind: []string{"User", "Group", "ServiceAccount"}[random.IntN(3)], Name: fmt.Sprintf("name-%d", random.IntN(3)), Namespace: "place",
			})
		}
		switch {
		case before == nil:
			bindings.change(nil, trimmed(now))
			live[slot] = now
		case random.IntN(3) == 0:
			bindings.change(trimmed(before), nil)
			delete(live, slot)
		default:
			now.Namespace = before.Namespace
			bindings.change(trimmed(before), trimmed(now))
			live[slot] = now
		}
	}
	user := &authenticationv1.UserInfo{Username: "system:serviceaccount:place:name-1", Groups: []string{"name-2", "name-0"}}
	var want []string
	for _, binding := range live {
		for _, one := range binding.Subjects {
			isUser := one.Kind == "ServiceAccount" && one.Name == "name-1"
			isGroup := one.Kind == "Group" && slices.Contains(user.Groups, one.Name)
			if isUser || isGroup {
				want = append(want, binding.Namespace)
			}
		}
	}
	slices.Sort(want)
	want = slices.Compact(want)
	if got, err := bindings.candidates(user); err != nil || !slices.Equal(got, want) {
		t.Errorf("candidates are %q (%v), want %q", got, err, want)
	}
	for _, binding := range live {
		bindings.change(trimmed(binding), nil)
	}
	if len(bindings.namespaces) > 0 || len(bindings.sizes) > 0 {
		t.Errorf("after the last binding there are %v, %v", bindings.namespaces, bindings.sizes)
	}
}

// Red when a namespace's users make the manager keep more than the bounds of their bindings.
func TestBindingsAreBounded(t *testing.T) {
	t.Parallel()
	large := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"any": "text"}}}
	for i := range 1000 {
		large.Subjects = append(large.Subjects, rbacv1.Subject{Kind: "User", Name: fmt.Sprintf("user-%0500d", i)})
	}
	kept := trimmed(large).(*rbacv1.RoleBinding)
	if len(kept.Subjects) != 1 || len(kept.Subjects[0].Name) != mostSubjects*len(subject{}) || kept.Annotations != nil {
		t.Errorf("%d subjects are kept, with annotations %v", len(kept.Subjects), kept.Annotations)
	}
	if again := trimmed(kept); again != any(kept) { // a list may pass twice
		t.Errorf("a trimmed binding becomes %v", again)
	}
	bindings := NewBindings()
	for i := range 2 * mostSubjectsOfNamespace {
		bindings.change(nil, bindingOf("hostile", rbacv1.Subject{Kind: "User", Name: fmt.Sprintf("user-%d", i)}))
	}
	bindings.change(nil, bindingOf("other", rbacv1.Subject{Kind: "User", Name: "user-1"}))
	one := bindings.namespaces[subjectOf(false, "user-1")]
	if len(bindings.namespaces) != mostSubjectsOfNamespace || len(one) != 2 {
		t.Errorf("%d subjects are kept, %v of one", len(bindings.namespaces), one)
	}
}

// Red when a reader that takes nothing makes the manager keep more changes than the bound, or is not told that it is too slow; when more
// rows than a batch are written between two looks at the reader's rights, or one is lost.
func TestSlowReadersAreBounded(t *testing.T) {
	t.Parallel()
	rows := NewRows()
	asked := rowQuery{sort: "name", limit: defaultRows, addon: "web"}
	slow := newStream(&asked, scope{namespaces: []string{"mine"}})
	rows.join(slow)
	put := func(namespace, name, addon string) {
		one := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		one.Spec.AddonRef.Name = v1.AddonName(addon)
		rows.put(one)
	}
	put("mine", "app", "web")
	put("mine", "app", "dns") // it was selected before
	put("mine", "other", "dns")
	put("foreign", "app", "web")
	if keys, isSlow := slow.take(); isSlow || len(keys) != 1 || keys[0].Name != "app" {
		t.Errorf("the stream has %v, slow: %t", keys, isSlow)
	}
	for range 3 {
		for i := range mostChanged {
			put("mine", fmt.Sprintf("app-%d", i), "web")
		}
	}
	taken := map[client.ObjectKey]struct{}{}
	for range mostChanged / eventsAtOnce {
		select {
		case <-slow.wake:
		default:
			t.Fatal("keys wait, and the stream is not woken")
		}
		keys, isSlow := slow.take()
		for _, key := range keys {
			taken[key] = struct{}{}
		}
		if isSlow || len(keys) != eventsAtOnce {
			t.Errorf("%d keys are taken at once, slow: %t", len(keys), isSlow)
		}
	}
	if keys, isSlow := slow.take(); isSlow || len(keys) > 0 || len(taken) != mostChanged {
		t.Errorf("%d keys were taken and %d wait, slow: %t", len(taken), len(keys), isSlow)
	}
	for i := range mostChanged + 1 {
		put("mine", fmt.Sprintf("more-%d", i), "web")
	}
	waiting := len(slow.changed)
	if _, isSlow := slow.take(); !isSlow || waiting > mostChanged {
		t.Errorf("%d keys wait, slow: %t", waiting, isSlow)
	}
}

// Red when the first rows of an order are others than those of the sorted list.
func TestFirstRowsAreThoseOfTheSortedList(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(5, 6))
	for _, reversed := range []bool{false, true} {
		asked := rowQuery{sort: "addon", isReversed: reversed, limit: 9}
		best, all := first{asked: &asked, most: 10}, []position{}
		for i := range 1000 {
			one := &row{Row: view.Row{Namespace: fmt.Sprint(random.IntN(9)), Name: fmt.Sprint(i), Addon: fmt.Sprint(random.IntN(5))}}
			best.add(placed{asked.position(one), one})
			all = append(all, asked.position(one))
		}
		best.cut()
		slices.SortFunc(all, asked.compare)
		for i, one := range best.rows {
			if one.position != all[i] {
				t.Errorf("reversed %t: row %d is %v, want %v", reversed, i, one.position, all[i])
			}
		}
		if len(best.rows) != 10 {
			t.Errorf("%d rows are left", len(best.rows))
		}
	}
}
