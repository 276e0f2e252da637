package release

import "fmt"

// NewerFormatError says that a record was written by a newer release; nothing may be written on top of it.
type NewerFormatError struct {
	// Secret is the name of the record's head.
	Secret string
	Format int
}

// Error implements error.
func (e *NewerFormatError) Error() string {
	return fmt.Sprintf("release record %q has format %d, this release knows %d", e.Secret, e.Format, Format)
}

// ConflictError says that a record was changed by somebody else since it was loaded; load it again.
type ConflictError struct{ Secret string }

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("release record %q was changed meanwhile", e.Secret)
}

// DamagedError says that there are records of the installation and none can be read. It is not "no record": what was
// applied is unknown, so nothing may be removed.
type DamagedError struct {
	Secret  string
	Problem string
}

// Error implements error.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("release record %q %s", e.Secret, e.Problem)
}

// TooLargeError says that a record would be larger than is read again.
type TooLargeError struct {
	Secret string
	// Size packed, in bytes.
	Size int
}

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("release record %q would have %d bytes", e.Secret, e.Size)
}

// LightError says that a record without its objects was to be saved, which would lose them.
type LightError struct{ Secret string }

// Error implements error.
func (e *LightError) Error() string {
	return fmt.Sprintf("release record %q is in memory without its objects", e.Secret)
}

// HelmCopyTooLargeError says that a release can't be shown in Helm's format: it would not fit into one Secret. The seed's record
// holds it all the same.
type HelmCopyTooLargeError struct {
	Secret string
	// Size packed, in bytes.
	Size int
}

// Error implements error.
func (e *HelmCopyTooLargeError) Error() string {
	return fmt.Sprintf("Secret %q would have %d KiB, and at most 1024 are taken", e.Secret, e.Size>>10)
}
