package installation

import (
	"cmp"
	"fmt"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// What the installations of one cluster may take of the seed.
const (
	mostInstallations = 1000
	mostValues        = 16 << 20
)

// CheckShare refuses an installation that takes more of the seed, beside others that come before it, than one cluster may. Core add-ons and
// installations of sets neither are refused nor count.
func CheckShare(object *v1.AddonInstallation, before []v1.AddonInstallation) error {
	if isOfPlatform(object) {
		return nil
	}
	count, sum := 0, ValueBytes(&object.Spec)
	for i := range before {
		if before[i].Name != object.Name && !isOfPlatform(&before[i]) {
			count++
			sum += ValueBytes(&before[i].Spec)
		}
	}
	switch {
	case count >= mostInstallations:
		return fmt.Errorf("the cluster has %d AddonInstallations, and at most %d are allowed: delete some first", count, mostInstallations)
	case sum > mostValues:
		return fmt.Errorf("spec.values: all AddonInstallations of the cluster together would have %d KiB of values, and at most %d KiB "+
			"are allowed: make these values smaller, or delete installations", sum>>10, mostValues>>10)
	}
	return nil
}

// isOfPlatform says whether the platform made an installation.
func isOfPlatform(object *v1.AddonInstallation) bool {
	_, isOfSet := object.Labels[v1.LabelSet]
	return object.Spec.CoreAddon || isOfSet
}

// ValueBytes is the size of what an installation has of values.
func ValueBytes(spec *v1.AddonInstallationSpec) int {
	if spec.Values == nil {
		return len(spec.ValuesTemplate)
	}
	return len(spec.Values.Raw) + len(spec.ValuesTemplate)
}

// IsOlder says whether an installation was there before another one, which is decided by name where both are of one second.
func IsOlder(a, b *v1.AddonInstallation) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}
