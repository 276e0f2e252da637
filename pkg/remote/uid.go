package remote

import "k8s.io/apimachinery/pkg/types"

// UIDLength is that of the UIDs which API servers make (RFC 9562).
const UIDLength = 36

// IsUID says whether a text may be the UID of an object: letters, digits and hyphens, no hyphen at an end, as many as an API server
// makes or fewer. It can be shown, kept in a record, and be the value of a label.
func IsUID(uid types.UID) bool {
	if uid == "" || len(uid) > UIDLength || uid[0] == '-' || uid[len(uid)-1] == '-' {
		return false
	}
	for _, char := range []byte(uid) {
		letter := 'a' <= char && char <= 'z' || 'A' <= char && char <= 'Z'
		if digit := '0' <= char && char <= '9'; !letter && !digit && char != '-' {
			return false
		}
	}
	return true
}
