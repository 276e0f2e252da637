// Package preview describes what an installation would become: its version or the reason why it gets none, its values with their origins,
// and what a revision would change in its objects. It is pure: its callers resolve and render, and say what must not be shown.
//
// A leaf is a value that is no map and no list. Leaves of Secrets are never shown, and none is if some of the values are secret
// (Shown.Masked): a template may derive any leaf from them.
package preview

// State says how far a preview came.
type State string

const (
	// StateComplete: the objects are known.
	StateComplete State = "Complete"
	// StatePending: something that takes time goes on, such as a fetch. Ask again.
	StatePending State = "Pending"
	// StateRefused: a reconciliation would end before it writes any object, for the reason.
	StateRefused State = "Refused"
)

// Preview is what an installation would become. It is JSON of the query endpoint.
type Preview struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Cluster is the name of the Cluster; "" until it is found.
	Cluster string `json:"cluster,omitempty"`
	Addon   string `json:"addon"`
	State   State  `json:"state"`
	// Condition, Reason and Message are those that a reconciliation would set. A complete preview has none.
	Condition string `json:"condition,omitempty"`
	Reason    string `json:"reason,omitempty"`
	Message   string `json:"message,omitempty"`
	// RetryAfter is when to ask again for a pending preview, in seconds.
	RetryAfter int `json:"retryAfter,omitempty"`
	// Version is the one that it gets, Installed the present one, AvailableUpdate a newer one that would fit.
	Version         string `json:"version,omitempty"`
	Installed       string `json:"installed,omitempty"`
	AvailableUpdate string `json:"availableUpdate,omitempty"`
	// Warnings are about what works and may not be meant, such as a misspelt value.
	Warnings []string `json:"warnings,omitempty"`
	// Masked says why no values of leaves are shown; "" if they are.
	Masked string `json:"masked,omitempty"`
	// Values are the merged values, by path.
	Values []Value `json:"values,omitempty"`
	// Objects are those of the record and of the next revision, hooks too.
	Objects []Object `json:"objects,omitempty"`
	Counts  Counts   `json:"counts,omitzero"`
	// ObjectsDigest is status.lastApplied.objects of that revision; "" if leaves are masked, since it would confirm guesses.
	ObjectsDigest string `json:"objectsDigest,omitempty"`
	// Live is what a dry run in the user cluster found; nil: none was made.
	Live *Live `json:"live,omitempty"`
	// Truncated says that values or changes are left out, since there are too many.
	Truncated bool `json:"truncated,omitempty"`
}

// Action is what a revision does to an object, or to a leaf of it.
type Action string

// Actions. Remove means that the next revision does not have it; a CRD that its policy keeps stays.
const (
	ActionCreate Action = "Create"
	ActionChange Action = "Change"
	ActionRemove Action = "Remove"
	ActionSame   Action = "Same"
)

// Value is a leaf of the merged values, or a list.
type Value struct {
	Path string `json:"path"`
	// Origin is the layer that it comes from.
	Origin string `json:"origin"`
	// Value is absent if it is masked or null.
	Value any `json:"value,omitempty"`
}

// Object is one object of a revision.
type Object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Hook is the template of a hook; "" for other objects.
	Hook   string `json:"hook,omitempty"`
	Action Action `json:"action"`
	// Changes are the leaves that a Create or a Change sets.
	Changes []Change `json:"changes,omitempty"`
}

// Change is a leaf that differs.
type Change struct {
	Path   string `json:"path"`
	Action Action `json:"action"`
	// Before and After are absent if they are masked, null or not there.
	Before any `json:"before,omitempty"`
	After  any `json:"after,omitempty"`
}

// Live is what dry runs in the user cluster found, of the objects that would be written.
type Live struct {
	// Checked counts the objects that the user cluster checked. Unchecked counts the others: there are too many, the dry runs ended early,
	// or only the revision brings their namespace or kind.
	Checked   int `json:"checked"`
	Unchecked int `json:"unchecked,omitempty"`
	// Problems are the objects that the user cluster would not accept now.
	Problems []Problem `json:"problems,omitempty"`
	// Message says why the dry runs ended early.
	Message string `json:"message,omitempty"`
}

// Problem is an object that the user cluster would not accept, with the reason that condition Applied would have. It names the owner of an
// object that belongs to others, and nothing of its content.
type Problem struct {
	Kind      string `json:"kind"`
	Group     string `json:"group,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Reason    string `json:"reason"`
	Message   string `json:"message,omitempty"`
}

// AddLive adds what a dry run found. Texts are cut.
func (p *Preview) AddLive(found Live) {
	found.Message = cut(found.Message)
	for i := range found.Problems {
		found.Problems[i].Message = cut(found.Problems[i].Message)
	}
	p.Live = &found
}

// Counts are the numbers of objects by action.
type Counts struct {
	Create int `json:"create"`
	Change int `json:"change"`
	Remove int `json:"remove"`
	Same   int `json:"same"`
}

func (c *Counts) add(action Action) {
	switch action {
	case ActionCreate:
		c.Create++
	case ActionChange:
		c.Change++
	case ActionRemove:
		c.Remove++
	case ActionSame:
		c.Same++
	}
}
