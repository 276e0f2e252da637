package apply

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trellis-addons/trellis/pkg/clusters/calls"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/test/cost"
	"github.com/trellis-addons/trellis/test/long"
)

func appliedBy(manager, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// TestInheritanceIsOfInstallationsOnly fails if the field sets of people or of controllers are inherited, if those of
// more than one installation are not, or if the patch would be valid for another state of the object.
func TestInheritanceIsOfInstallationsOnly(t *testing.T) {
	ours := ownership.ManagerOf("ours")
	live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "shared", ResourceVersion: "7", ManagedFields: []metav1.ManagedFieldsEntry{
		appliedBy("kubectl", `{"f:data":{"f:theirs":{}}}`),
		appliedBy(ownership.ManagerOf("one"), `{"f:data":{"f:a":{}}}`), appliedBy(ownership.ManagerOf("two"), `{"f:data":{"f:b":{}}}`),
	}}}
	patch, err := inheritPatch(live, ours)
	if err != nil {
		t.Fatal(err)
	}
	text := string(patch)
	for _, want := range []string{
		`"manager":"kubectl"`, fmt.Sprintf(`"manager":%q`, ours), `{"f:data":{"f:a":{},"f:b":{}}}`, `{"f:data":{"f:theirs":{}}}`,
		`{"op":"replace","path":"/metadata/resourceVersion","value":"7"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	if strings.Contains(text, ownership.ManagerOf("one")) || strings.Contains(text, ownership.ManagerOf("two")) {
		t.Errorf("others are left in %s", text)
	}

	live.ManagedFields = []metav1.ManagedFieldsEntry{appliedBy("kubectl", `{}`), appliedBy(ours, `{"f:data":{}}`)}
	if patch, err := inheritPatch(live, ours); patch != nil || err != nil {
		t.Errorf("nothing is to be taken over, got %s, %v", patch, err)
	}
	live.ManagedFields = []metav1.ManagedFieldsEntry{appliedBy(ownership.ManagerOf("one"), `["no", "set"]`)}
	_, err = inheritPatch(live, ours)
	if _, misbehaves := errors.AsType[*calls.MisbehavesError](err); !misbehaves {
		t.Errorf("what is no field set is the API server's doing, got %v", err)
	}
}

// TestInheritanceOfManyTakesLinearTime fails if each of many field sets is merged into all earlier ones.
func TestInheritanceOfManyTakesLinearTime(t *testing.T) {
	long.Heavy(t)
	of := func(count int) *metav1.PartialObjectMetadata {
		live := &metav1.PartialObjectMetadata{}
		for i := range count {
			live.ManagedFields = append(live.ManagedFields, appliedBy(ownership.ManagerOf(fmt.Sprint(i)), fmt.Sprintf(`{"f:data":{"f:%d":{}}}`, i)))
		}
		return live
	}
	few, many := of(500), of(8000)
	cost.Share(t, 100, func() { inheritPatch(few, "ours") }, func() { inheritPatch(many, "ours") })
}
