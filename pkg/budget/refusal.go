package budget

import "fmt"

// HeldError says that a manager has no room for an object.
type HeldError struct {
	// Kind as people call it.
	Kind, Name string
	// Bytes that it takes in memory, and Most that all of its kind may take.
	Bytes, Most int64
	// Version that is read again, since there is room by now; empty: there is none.
	Version string
}

func (e *HeldError) Error() string {
	text := fmt.Sprintf("%s %q is not read: it takes %d KiB of memory, and all %[1]ss together fill the manager's %[4]d MiB for them; "+
		"the seeds keep what they have of it", e.Kind, e.Name, e.Bytes>>10, e.Most>>20)
	if e.Version != "" {
		return text + ": there is room now, and it is read again (resourceVersion " + e.Version + ")"
	}
	return fmt.Sprintf("%s: delete %ss that are not needed, or make this one smaller", text, e.Kind)
}

// Refusal of a stub, by what people call its kind. Where there is room by now it has the version: a status that tells it changes, and the
// cache gets the whole object by that.
func (b *Budget[T, P]) Refusal(kind string, stub P) error {
	bytes, _ := Size(stub)
	err := &HeldError{Kind: kind, Name: stub.GetName(), Bytes: bytes, Most: b.Kind.Most}
	if b.HasRoom(stub) {
		err.Version = stub.GetResourceVersion()
	}
	return err
}
