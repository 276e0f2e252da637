package helmrelease

import "fmt"

// NameTakenError says that the user cluster has a Helm release of the name which is not ours.
type NameTakenError struct{ Secret string }

func (e *NameTakenError) Error() string {
	return fmt.Sprintf("the Helm release in Secret %q belongs to somebody else", e.Secret)
}

// CopyTooLargeError says that a release can't be shown in Helm's format: it would not fit into one
// Secret. The seed's record holds it all the same.
type CopyTooLargeError struct {
	Secret string
	// Size packed, in bytes.
	Size int
}

func (e *CopyTooLargeError) Error() string {
	return fmt.Sprintf("Secret %q would have %d KiB, and at most 1024 are taken", e.Secret, e.Size>>10)
}
