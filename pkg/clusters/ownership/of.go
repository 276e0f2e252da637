package ownership

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Whose says who owns an object, as one owner sees it.
type Whose string

// The answers, by priority.
const (
	// Inherited: another installation shared it with the owner, or left it to the owner, and no longer has it.
	Inherited Whose = "inherited"
	// Ours: the owner wrote it, or its record plans it and its label is on it.
	Ours Whose = "ours"
	// Anothers: another existing installation has it.
	Anothers Whose = "another's"
	// OfRelease: Helm created it for the release that the owner adopts.
	OfRelease Whose = "of the release"
	// Strangers: it belongs to others, or to a deleted installation.
	Strangers Whose = "a stranger's"
)

type evidence uint16

// Evidence from the record, from the object about the owner, and about others.
const (
	// recorded: the record has its UID. planned: it has the name only. replaced: another UID.
	recorded evidence = 1 << iota
	planned
	replaced
	// shared: the record has it as another's, by its UID or the other's field manager. left: the field manager is of an
	// installation that leaves its objects to the owner.
	shared
	left
	// applied: the owner's field manager applied it. made: it created it, as it does only for hooks.
	applied
	made
	// labelled: it carries the owner's label, which any user can write.
	labelled
	run
	helmHook
	// adopted: it existed before an installation adopted it.
	adopted
	// continued: it has Helm's marks of the adopted release. otherRelease: of another one.
	continued
	otherRelease
	// otherApplied, otherMade and otherLabelled: the same of other installations, which may be deleted.
	otherApplied
	otherMade
	otherLabelled
)

var evidenceWords = []string{
	"recorded", "planned", "replaced", "shared", "left", "applied", "made", "labelled", "run", "helm hook", "adopted", "continued",
	"other release", "other applied", "other made", "other labelled",
}

// String lists the words for a set.
func (e evidence) String() string {
	var words []string
	for at, word := range evidenceWords {
		if e&(1<<at) != 0 {
			words = append(words, word)
		}
	}
	return strings.Join(words, ", ")
}

// Question has the owner that asks, and its record of the object.
type Question struct {
	Owner Owner
	// Entry is the inventory's entry; nil: none.
	Entry *Entry
	// Shared is the record's entry for another installation's object; nil: none.
	Shared *Entry
	// Left are the IDs of installations that leave the object to the owner: siblings that its record
	// names, and installations that gave the object up.
	Left []string
	// Release is the Helm release that the owner adopts; nil: none.
	Release *HelmMarks
	// NameOf returns the name of the existing installation with an ID, or ""; it may be nil.
	NameOf func(id string) string
}

// Ownership says who owns an object, and why.
type Ownership struct {
	Whose    Whose
	evidence evidence
	// OtherID is another installation's; OtherName is "" if that is deleted.
	OtherID, OtherName string
	// foundation is Entry.IsFoundation; namesKnown says that NameOf was given.
	foundation, namesKnown bool
}

// String explains a decision to users.
func (o Ownership) String() string {
	text := string(o.Whose)
	if o.OtherName != "" {
		text += fmt.Sprintf(" (%s)", o.OtherName)
	}
	if o.evidence != 0 {
		text += ": " + o.evidence.String()
	}
	return text
}

// Of says who owns a live object. Call it before each write, adoption, sharing or deletion.
func Of(live metav1.Object, asked Question) Ownership {
	found := Ownership{evidence: asked.recorded(live) | asked.marked(live), namesKnown: asked.NameOf != nil}
	found.foundation = asked.Entry != nil && asked.Entry.IsFoundation()
	found.evidence |= asked.managed(live, &found)
	switch {
	case found.has(shared|left) && found.OtherName == "":
		found.Whose = Inherited
	case found.has(recorded|applied) || found.IsHook() || found.has(planned|replaced) && found.isLabelBelieved():
		found.Whose = Ours
	case found.OtherName != "":
		found.Whose = Anothers
	case found.has(continued):
		found.Whose = OfRelease
	default:
		found.Whose = Strangers
	}
	return found
}

func (q Question) recorded(live metav1.Object) (says evidence) {
	switch {
	case q.Entry == nil:
	case q.Entry.UID == "":
		says |= planned
	case q.Entry.UID == live.GetUID():
		says |= recorded
	default:
		says |= replaced
	}
	if q.Shared != nil && q.Shared.UID != "" && q.Shared.UID == live.GetUID() {
		says |= shared
	}
	return says
}

func (q Question) marked(live metav1.Object) (says evidence) {
	annotations := live.GetAnnotations()
	if live.GetLabels()[kubermaticv1.LabelInstallation] == q.Owner.ID() {
		says |= labelled
	}
	if annotations[kubermaticv1.AnnotationHookRun] != "" {
		says |= run
	}
	if annotations[HelmHookAnnotation] != "" {
		says |= helmHook
	}
	if annotations[kubermaticv1.AnnotationAdopted] != "" {
		says |= adopted
	}
	switch {
	case q.Release != nil && q.Release.AreOn(annotations):
		says |= continued
	case annotations[HelmReleaseAnnotation] != "":
		says |= otherRelease
	}
	return says
}

// managed reads managers before labels, which any user can write, and applied before created.
func (q Question) managed(live metav1.Object, found *Ownership) (says evidence) {
	own, managers := q.Owner.ID(), live.GetManagedFields()
	for i := range managers {
		id, is := InstallationOf(managers[i].Manager)
		if !is || managers[i].Operation != metav1.ManagedFieldsOperationApply {
			continue
		}
		if id == own {
			says |= applied
			continue
		}
		says |= otherApplied
		q.name(id, found)
		if slices.Contains(q.Left, id) {
			says |= left
		}
		if q.Shared != nil && id == (Owner{ClusterUID: q.Owner.ClusterUID, Installation: q.Shared.Owner}).ID() {
			says |= shared
		}
	}
	for i := range managers {
		id, is := InstallationOf(managers[i].Manager)
		switch {
		case !is || managers[i].Operation == metav1.ManagedFieldsOperationApply:
		case id != own:
			says |= otherMade
			q.name(id, found)
		case managers[i].Operation == metav1.ManagedFieldsOperationUpdate:
			says |= made
		}
	}
	if id := live.GetLabels()[kubermaticv1.LabelInstallation]; id != "" && id != own {
		says |= otherLabelled
		q.name(id, found)
	}
	return says
}

func (q Question) name(id string, found *Ownership) {
	if found.OtherName != "" {
		return
	}
	if q.NameOf != nil {
		found.OtherName = q.NameOf(id)
	}
	if found.OtherID == "" || found.OtherName != "" {
		found.OtherID = id
	}
}
