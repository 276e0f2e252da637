package ownership

func (o Ownership) has(some evidence) bool { return o.evidence&some != 0 }

// hasOther says whether the object tells of another installation, whether it exists or not.
func (o Ownership) hasOther() bool { return o.has(otherApplied | otherMade | otherLabelled) }

// isLabelBelieved says whether the label counts beside a record: it does not where another
// installation's field manager is.
func (o Ownership) isLabelBelieved() bool { return o.has(labelled) && !o.has(otherApplied|otherMade) }

// IsApplied says whether the owner's field manager applied the object.
func (o Ownership) IsApplied() bool { return o.has(applied) }

// IsLabelled says whether the object carries the owner's label, which anybody can write.
func (o Ownership) IsLabelled() bool { return o.has(labelled) }

// WasAdopted says whether the object was there before an installation took it over.
func (o Ownership) WasAdopted() bool { return o.has(adopted) }

// IsMade says whether the owner made the object, and it was not there before: only what it made
// goes with it where others use it.
func (o Ownership) IsMade() bool { return o.has(applied) && !o.has(adopted) }

// IsHook says whether the owner made the object as a hook, or helm did by hand from what the owner
// told it: then it has our label. What is applied as well is an object of the add-on.
func (o Ownership) IsHook() bool {
	return o.has(run) && o.has(made) || o.has(labelled) && o.has(helmHook) && !o.has(applied) && !o.hasOther()
}

// IsDeletable says whether the object is the record's, and goes with it: by its UID or, for an
// intent, by our field manager, or by our label where nobody else uses the kind. An intent that
// became another object than the record knows stays.
func (o Ownership) IsDeletable() bool {
	return o.has(recorded) || o.has(planned) && (o.has(applied) || o.isLabelBelieved() && !o.foundation)
}

// IsLeftover says whether the object is of the release that the owner adopts, and nobody has it.
func (o Ownership) IsLeftover() bool { return o.has(continued) && o.OtherName == "" }

// IsLeftoverHook says the same of what a hook of the release made, which Helm does not mark: no
// installation has it, nor another release.
func (o Ownership) IsLeftoverHook() bool { return !o.IsHook() && o.Obstacle() == NoObstacle }

// IsOrphaned says whether installations made the object, and none of them exists any more.
func (o Ownership) IsOrphaned() bool {
	return o.has(otherApplied) && o.namesKnown && o.OtherName == "" && !o.has(applied) && !o.has(adopted)
}

// IsLeftByHook says whether a hook of the owner made the object, and nothing happened to it since:
// it goes with its namespace.
func (o Ownership) IsLeftByHook() bool { return o.has(labelled) && o.has(helmHook) && o.has(made) }

// HookObstacle is why an object makes no room for a hook, which would delete it.
type HookObstacle string

// The obstacles, the first that holds. Other than for adoption, which deletes nothing, an
// installation needs not exist.
const (
	NoObstacle       HookObstacle = ""
	OfAnother        HookObstacle = "another installation's"
	OfTheAddon       HookObstacle = "the add-on's own"
	NoHook           HookObstacle = "no hook"
	OfAnotherRelease HookObstacle = "another release's"
)

// Obstacle says why the object, which is no hook of the owner's, makes no room for one. Helm puts
// no name on hooks, so one without a name counts as of the release that is gone on with.
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
