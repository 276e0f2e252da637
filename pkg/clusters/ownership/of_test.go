package ownership_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// owner by name: us, the owner that asks, b and c, which exist, and gone, which does not.
func owner(name string) ownership.Owner { return ownership.Owner{ClusterUID: "c1", Installation: name} }

func nameOf(id string) string {
	for _, name := range []string{"us", "b", "c"} {
		if owner(name).ID() == id {
			return name
		}
	}
	return ""
}

// object is a live object with the evidence of these words.
func object(words string) *metav1.PartialObjectMetadata {
	live := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "x", UID: "u1", Labels: map[string]string{}, Annotations: map[string]string{},
	}}
	for word := range strings.FieldsSeq(words) {
		what, who, _ := strings.Cut(word, ":")
		switch what {
		case "applied", "made":
			operation := map[string]metav1.ManagedFieldsOperationType{
				"applied": metav1.ManagedFieldsOperationApply, "made": metav1.ManagedFieldsOperationUpdate,
			}[what]
			live.ManagedFields = append(live.ManagedFields, metav1.ManagedFieldsEntry{Manager: owner(who).FieldManager(), Operation: operation})
		case "label":
			live.Labels[kubermaticv1.LabelInstallation] = owner(who).ID()
		case "run":
			live.Annotations[kubermaticv1.AnnotationHookRun] = "1"
		case "hook":
			live.Annotations[ownership.HelmHookAnnotation] = "pre-upgrade"
		case "adopted":
			live.Annotations[kubermaticv1.AnnotationAdopted] = "true"
		case "release":
			live.Annotations[ownership.HelmReleaseAnnotation], live.Annotations[ownership.HelmNamespaceAnnotation] = who, "n"
		case "stranger":
			live.ManagedFields = append(live.ManagedFields, metav1.ManagedFieldsEntry{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply})
		case "nouid":
			live.UID = ""
		default:
			panic(word)
		}
	}
	return live
}

// question is a Question of owner us, whose records have the evidence of these words.
func question(words string) ownership.Question {
	asked := ownership.Question{
		Owner: owner("us"), NameOf: nameOf, Release: &ownership.HelmMarks{ReleaseName: "ours", ReleaseNamespace: "n"},
	}
	key := ownership.Key{Kind: "ConfigMap", Namespace: "n", Name: "x"}
	for word := range strings.FieldsSeq(words) {
		switch word {
		case "namespace":
			key = ownership.Key{Kind: "Namespace", Name: "x"}
		case "planned":
			asked.Entry = &ownership.Entry{Key: key}
		case "recorded":
			asked.Entry = &ownership.Entry{Key: key, UID: "u1"}
		case "replaced":
			asked.Entry = &ownership.Entry{Key: key, UID: "u0"}
		case "shared":
			asked.Shared = &ownership.Entry{Key: key, UID: "u1", Owner: "gone"}
		case "shared-anew":
			asked.Shared = &ownership.Entry{Key: key, UID: "u0", Owner: "gone"}
		case "shared-nouid":
			asked.Shared = &ownership.Entry{Key: key, Owner: "gone"}
		case "left":
			asked.Left = []string{owner("gone").ID(), owner("b").ID()}
		case "nobody-known":
			asked.NameOf = nil
		default:
			panic(word)
		}
	}
	return asked
}

// rules names the permitted actions on an object, as far as ownership decides.
func rules(found ownership.Ownership) string {
	var may []string
	for _, rule := range []struct {
		name  string
		holds bool
	}{
		{"delete", found.IsDeletable()}, {"made", found.IsMade()}, {"hook", found.IsHook()}, {"leftover", found.IsLeftover()},
		{"leftover hook", found.IsLeftoverHook()}, {"orphaned", found.IsOrphaned()}, {"left by hook", found.IsLeftByHook()},
	} {
		if rule.holds {
			may = append(may, rule.name)
		}
	}
	if against := found.Obstacle(); !found.IsHook() && against != ownership.NoObstacle {
		may = append(may, "no place for hooks: "+string(against))
	}
	return strings.Join(may, ", ")
}

// This is the safety rule of the product. Each row is a combination with another result than its neighbours: the
// object's evidence, our records, the resulting owner, and the permitted actions.
func TestWhoseAnObjectIs(t *testing.T) {
	for _, row := range ownershipCases {
		found := ownership.Of(object(row.object), question(row.records))
		if found.String() != row.whose || rules(found) != row.rules {
			t.Errorf("%s: got %q and %q, want %q and %q", row.why, found.String(), rules(found), row.whose, row.rules)
		}
	}
}

// No combination permits a write, replacement or deletion of an object of another existing installation, unless our own
// record or field manager says that it is ours as well; and no label counts without a record or a manager.
func TestNoCombinationTakesWhatIsAnothers(t *testing.T) {
	others := []string{"", "applied:b", "made:b", "label:b", "applied:gone", "made:gone", "label:gone", "applied:gone made:b", "applied:gone label:b"}
	marks := []string{"", "release:ours", "release:theirs"}
	records := []string{"", "planned", "namespace planned", "recorded", "replaced", "shared", "shared-anew", "planned shared", "left", "planned left"}
	bits := []string{"applied:us", "made:us", "run", "hook", "adopted"}
	for set := range 1 << len(bits) {
		var own []string
		for at, bit := range bits {
			if set&(1<<at) != 0 {
				own = append(own, bit)
			}
		}
		for _, label := range []string{"", "label:us"} {
			for _, other := range others {
				for _, mark := range marks {
					for _, record := range records {
						if label != "" && strings.Contains(other, "label") {
							continue // one object has one label
						}
						words := strings.Join(slices.Concat(own, []string{label, other, mark}), " ")
						found := ownership.Of(object(words), question(record))
						exists := strings.Contains(other, ":b")
						isPlanned, isRecorded := strings.Contains(record, "planned"), record == "recorded"
						switch {
						case exists != (found.OtherName == "b"):
							t.Errorf("%q, %q: who exists is not named: %v", words, record, found)
						case exists && (found.IsLeftover() || found.IsLeftoverHook() || found.IsOrphaned() || found.Whose == ownership.OfRelease ||
							found.Whose == ownership.Inherited):
							t.Errorf("%q, %q: another's object goes: %v", words, record, found)
						case exists && found.IsDeletable() && !isRecorded && set&1 == 0 && !strings.HasPrefix(other, "label"):
							t.Errorf("%q, %q: a label takes what another's manager wrote: %v", words, record, found)
						case found.IsDeletable() && !isRecorded && !isPlanned:
							t.Errorf("%q, %q: deletes what is not on record: %v", words, record, found)
						case found.Whose == ownership.Ours && record == "" && set&3 == 0 && !found.IsHook():
							t.Errorf("%q, %q: a label alone is believed: %v", words, record, found)
						case found.IsDeletable() && !isRecorded && record == "namespace planned" && set&1 == 0:
							t.Errorf("%q, %q: a label takes a namespace: %v", words, record, found)
						}
					}
				}
			}
		}
	}
}
