package ownership

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Whose says to whom an object belongs, as one owner sees it.
type Whose string

// The answers, the first that holds.
const (
	// Inherited: another installation of the add-on shared it with the owner, and is gone.
	Inherited Whose = "inherited"
	// Ours: the owner wrote it, or its record plans it and its label is on it.
	Ours Whose = "ours"
	// Anothers: another installation of the cluster has it, which exists.
	Anothers Whose = "another's"
	// OfRelease: Helm made it for the release that the owner goes on with.
	OfRelease Whose = "of the release"
	// Strangers: somebody else has it, or an installation that is gone.
	Strangers Whose = "a stranger's"
)

// evidence is what tells whose an object is: a set.
type evidence uint16

// What the record says, what the object says of the owner, and what it says of others.
const (
	// recorded: the record has this very object, by its UID. planned: it intends one of this name.
	// replaced: it has another of this name.
	recorded evidence = 1 << iota
	planned
	replaced
	// shared: the record has it as another installation's, by its UID or that one's field manager.
	shared
	// applied: the owner's field manager applied it. made: it created it, as for hooks only.
	applied
	made
	// labelled: it carries the owner's label, which anybody can write.
	labelled
	// run: it was made for the run of a hook. helmHook: its manifest is one of Helm's hooks.
	run
	helmHook
	// adopted: it was there before an installation took it over.
	adopted
	// continued: it has Helm's marks of the release that the owner adopts. otherRelease: another's.
	continued
	otherRelease
	// As above, of another installation, whether it exists or not.
	otherApplied
	otherMade
	otherLabelled
)

// evidenceWords are the words for evidence, in order.
var evidenceWords = []string{
	"recorded", "planned", "replaced", "shared", "applied", "made", "labelled", "run", "helm hook", "adopted", "continued",
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

// Question is who asks whose an object is, and what its record has of the object.
type Question struct {
	Owner Owner
	// Entry is what the inventory has under the object's key; nil: nothing.
	Entry *Entry
	// Shared is what the record has as another installation's under the object's key; nil: nothing.
	Shared *Entry
	// Release is the Helm release that the owner goes on with; nil: none.
	Release *HelmMarks
	// NameOf gives the name of the installation with an ID; "" where there is none, or none any
	// more. Nil: none is known to exist.
	NameOf func(id string) string
}

// Ownership is whose an object is, and all that tells so.
type Ownership struct {
	Whose    Whose
	evidence evidence
	// OtherID is the ID of another installation that the object tells of, one that exists before
	// others; OtherName is its name, "" where it does not exist.
	OtherID, OtherName string
	// foundation says that the object is of a kind that others use as soon as it exists;
	// namesKnown, that it is known who exists.
	foundation, namesKnown bool
}

// String is for people who look for why something was done.
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

// Of says whose a live object is. Whoever writes, adopts, shares, replaces or deletes an object of
// a user cluster asks it first.
func Of(live metav1.Object, asked Question) Ownership {
	found := Ownership{evidence: asked.recorded(live) | asked.marked(live), namesKnown: asked.NameOf != nil}
	found.foundation = asked.Entry != nil && asked.Entry.IsFoundation()
	found.evidence |= asked.managed(live, &found)
	switch {
	case found.has(shared) && found.OtherName == "":
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

// managed is what field managers say, and whom they and the label name. A manager goes before a
// label, which anybody can write, and one that applied before one that created.
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

// name has the first other installation named that exists, or else the first.
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
