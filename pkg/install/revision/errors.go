package revision

import "fmt"

// NewerRecordError says that a record was written by a newer release, and must not be overwritten.
type NewerRecordError struct {
	Secret string
	// Problem is the part that this release does not know.
	Problem string
}

func (e *NewerRecordError) Error() string {
	return fmt.Sprintf("release record %q %s", e.Secret, e.Problem)
}

// ConflictError says that another client changed a record since it was loaded; load it again.
type ConflictError struct{ Secret string }

func (e *ConflictError) Error() string {
	return fmt.Sprintf("release record %q was changed in the meantime", e.Secret)
}

// DamagedError says that no record can be read: it is unknown what was applied, so nothing is removed.
type DamagedError struct {
	Secret  string
	Problem string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("release record %q %s: restore the previous Secret, or delete this one", e.Secret, e.Problem)
}

func unsealed(secret string) *DamagedError {
	return &DamagedError{secret, "is not sealed by this seed, so it is ignored"}
}

// TooLargeError says that a record would exceed the limits.
type TooLargeError struct {
	Secret, Installation string
	What                 string
	Have, Max            int
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("release record %q of installation %q would have %d %s, at most %d are kept: make the add-on or its values smaller, "+
		"or go back to the previous version and values", e.Secret, e.Installation, e.Have, e.What, e.Max)
}

// GrowthError says that a user cluster answered more than the sent objects explain.
type GrowthError struct {
	Secret, Installation string
	Have, Max            int
}

func (e *GrowthError) Error() string {
	return fmt.Sprintf("release record %q of installation %q would have %d bytes from answers of the user cluster, and at most %d are "+
		"plausible for its objects: the API server or a webhook there adds fields or UIDs; check that API server and its proxies",
		e.Secret, e.Installation, e.Have, e.Max)
}

// TooManyError says that a namespace has too many Secrets of records.
type TooManyError struct {
	Namespace string
	Max       int
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("namespace %q has more than %d Secrets of type %q: delete those that belong to no installation",
		e.Namespace, e.Max, SecretType)
}

// LightError says that a record without its objects can't be saved, since they would be lost.
type LightError struct{ Secret string }

func (e *LightError) Error() string {
	return fmt.Sprintf("release record %q is cached without its objects", e.Secret)
}
