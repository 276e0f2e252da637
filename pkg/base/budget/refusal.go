package budget

import "fmt"

// HeldError says that a manager has no space for an object.
type HeldError struct {
	// Kind is its name for users.
	Kind, Name string
	// Bytes that it takes in memory, and Most that all of its kind may take.
	Bytes, Most int64
	// Version is the one that is read again, since there is space by now; empty if there is none.
	Version string
}

func (e *HeldError) Error() string {
	text := fmt.Sprintf("%s %q is not read: it takes %d KiB of memory, and all %[1]ss together use up the %[4]d MiB that the manager has "+
		"for them; the seeds keep its last content", e.Kind, e.Name, e.Bytes>>10, e.Most>>20)
	if e.Version != "" {
		return text + ": there is enough memory now, and it is read again (resourceVersion " + e.Version + ")"
	}
	return fmt.Sprintf("%s: delete %ss that are not needed, or make this one smaller", text, e.Kind)
}

// Refusal is the error about a stub, with its kind's name for users. If there is space by now it has the version: a
// status with that text changes, and by this the cache gets the whole object.
func (b *Budget[T, P]) Refusal(kind string, stub P) error {
	bytes, _ := Size(stub)
	err := &HeldError{Kind: kind, Name: stub.GetName(), Bytes: bytes, Most: b.Kind.Most}
	if b.HasSpace(stub) {
		err.Version = stub.GetResourceVersion()
	}
	return err
}
