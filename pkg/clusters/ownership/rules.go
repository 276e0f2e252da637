package ownership

func (o Ownership) has(some evidence) bool { return o.evidence&some != 0 }

func (o Ownership) hasOther() bool { return o.has(otherApplied | otherMade | otherLabelled) }

// isLabelBelieved says whether the label counts: it does not if another installation's field manager is present.
func (o Ownership) isLabelBelieved() bool { return o.has(labelled) && !o.has(otherApplied|otherMade) }

// IsOfAnother says whether another installation applied the object, and not as a hook.
func (o Ownership) IsOfAnother() bool { return o.has(otherApplied) && !o.has(otherMade|run|helmHook) }

// IsLeft says whether a deleted installation applied the object, and no existing one has it.
func (o Ownership) IsLeft() bool { return o.IsOfAnother() && o.namesKnown && o.OtherName == "" }

// IsApplied says whether the owner's field manager applied the object.
func (o Ownership) IsApplied() bool { return o.has(applied) }

// IsLabelled says whether the object carries the owner's label, which any user can write.
func (o Ownership) IsLabelled() bool { return o.has(labelled) }

// WasAdopted says whether the object existed before an installation adopted it.
func (o Ownership) WasAdopted() bool { return o.has(adopted) }

// IsMade says whether the object was created by the owner, or by an installation from which it inherits the object.
// Of shared kinds, it deletes only those.
func (o Ownership) IsMade() bool { return (o.has(applied) || o.Whose == Inherited) && !o.has(adopted) }

// IsHook says whether the owner created the object as a hook, or a user did with the helm program from our release:
// then it has our label. An applied object belongs to the add-on.
func (o Ownership) IsHook() bool {
	return o.has(run) && o.has(made) || o.has(labelled) && o.has(helmHook) && !o.has(applied) && !o.hasOther()
}

// IsDeletable says whether the record's removal deletes the object: by its UID or, if it is inherited, by the
// previous owner's field manager; for an intent by our field manager, or by our label except for foundations.
func (o Ownership) IsDeletable() bool {
	isPlanned := o.has(planned) && (o.has(applied) || o.isLabelBelieved() && !o.foundation)
	return o.has(recorded) || isPlanned || o.has(planned|replaced) && o.Whose == Inherited
}

// IsLeftover says whether the object belongs to the adopted release, and no installation has it.
func (o Ownership) IsLeftover() bool { return o.has(continued) && o.OtherName == "" }

// IsLeftoverHook says the same of a hook's object, which Helm does not mark.
func (o Ownership) IsLeftoverHook() bool { return !o.IsHook() && o.Obstacle() == NoObstacle }

// IsOrphaned says whether installations created the object, and none of them still exists.
func (o Ownership) IsOrphaned() bool {
	return o.has(otherApplied) && o.namesKnown && o.OtherName == "" && !o.has(applied) && !o.has(adopted)
}

// IsLeftByHook says whether a hook created the object: it is deleted with its namespace.
func (o Ownership) IsLeftByHook() bool { return o.has(labelled) && o.has(helmHook|run) && o.has(made) }

// HookObstacle is why a hook can't replace an object.
type HookObstacle string

// The obstacles, by priority. Deleted installations count here.
const (
	NoObstacle       HookObstacle = ""
	OfAnother        HookObstacle = "another installation's"
	OfTheAddon       HookObstacle = "the add-on's own"
	NoHook           HookObstacle = "no hook"
	OfAnotherRelease HookObstacle = "another release's"
)

// Obstacle says why a hook can't replace an object that is no hook of the owner. Helm does not mark hooks: one
// without a release's name counts as the adopted release's.
func (o Ownership) Obstacle() HookObstacle {
	switch {
	case o.hasOther():
		return OfAnother
	case o.has(applied):
		return OfTheAddon
	case !o.has(helmHook):
		return NoHook
	case o.has(otherRelease):
		return OfAnotherRelease
	}
	return NoObstacle
}
