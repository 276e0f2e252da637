package installation

import (
	"cmp"
	"fmt"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/budget"
)

// The share of the seed that the installations of one cluster may take.
const (
	mostInstallations = 1000
	mostBytes         = 16 << 20
	// freeManaged bytes of managedFields are allowed for an installation, plus mostManaged times its own bytes: each
	// manager of a field names the field once.
	freeManaged = 64 << 10
	mostManaged = 4
)

// CheckShare refuses an installation that, together with others before it, takes more of the seed than one cluster
// may. Core add-ons and installations of sets are not refused and don't count.
func CheckShare(object *v1.AddonInstallation, before []v1.AddonInstallation) error {
	if isOfPlatform(object) {
		return nil
	}
	count, sum := 0, Bytes(object)
	for i := range before {
		if before[i].Name != object.Name && !isOfPlatform(&before[i]) {
			count++
			sum += bytesCached(&before[i])
		}
	}
	switch {
	case count >= mostInstallations:
		return fmt.Errorf("the cluster has %d AddonInstallations, and at most %d are allowed: delete some first", count, mostInstallations)
	case sum > mostBytes:
		return fmt.Errorf("all AddonInstallations of the cluster together would have %d KiB of values, labels and annotations, and at most %d "+
			"KiB are allowed: make those of this one smaller, or delete installations", sum>>10, mostBytes>>10)
	}
	return nil
}

// IsFarWithinShare reports whether all installations of a namespace together take so little memory that none of them
// can exceed its cluster's share.
func IsFarWithinShare(all budget.Sum) bool {
	return all.Stubs == 0 && all.Objects <= mostInstallations && all.Bytes <= mostBytes
}

// isOfPlatform says whether the platform made an installation.
func isOfPlatform(object *v1.AddonInstallation) bool {
	_, isOfSet := object.Labels[v1.LabelSet]
	return object.Spec.CoreAddon || isOfSet
}

// Bytes is the size of the parts of an installation that users write without a limit of their own: values, labels and
// annotations.
func Bytes(object *v1.AddonInstallation) int {
	sum := len(object.Spec.ValuesTemplate)
	if object.Spec.Values != nil {
		sum += len(object.Spec.Values.Raw)
	}
	for _, of := range []map[string]string{object.Labels, object.Annotations} {
		for key, value := range of {
			sum += len(key) + len(value)
		}
	}
	return sum
}

// bytesCached is Bytes of an installation from a cache, which may be a stub.
func bytesCached(object *v1.AddonInstallation) int {
	bytes, _ := budget.Size(object)
	return max(int(bytes), Bytes(object))
}

// heldBytes is enough for 50,000 installations of 5 KiB each. While a list is read again a seed's manager may have them twice.
const (
	heldBytes = 256 << 20
	// smallBytes is more than an installation of the platform takes without large additions by users.
	smallBytes = 64 << 10
)

// Budget bounds the installations in the cache of a seed's manager. Users may change the fields that stubs of the
// platform's lack.
func Budget() budget.Kind[v1.AddonInstallation] {
	return budget.Kind[v1.AddonInstallation]{
		Most: heldBytes, Namespaced: true,
		IsAlwaysWhole: func(object *v1.AddonInstallation, bytes int64) bool {
			return isOfPlatform(object) && bytes <= smallBytes
		},
		Strip: func(object *v1.AddonInstallation) {
			object.Spec.Values = nil
			if !isOfPlatform(object) {
				object.Spec.ValuesTemplate, object.Spec.ValuesFrom = "", nil
			}
		},
	}
}

// CheckManagers refuses managedFields that are many times as large as the installation, and grow: a user may apply it
// as any number of managers. before is nil for a new one. Only admission checks this: managers have no managedFields
// in memory, and stored ones take their space already. If the webhook is skipped, each installation has what the API
// server accepts in one request, and a ResourceQuota bounds the number of installations.
func CheckManagers(before, object *v1.AddonInstallation) error {
	managed, most := managedBytes(object), freeManaged+mostManaged*Bytes(object)
	if managed <= most || before != nil && managed <= managedBytes(before) {
		return nil
	}
	return fmt.Errorf("metadata.managedFields: %d field managers would take %d KiB, and at most %d KiB are allowed for an "+
		"installation of this size: apply it with fewer field managers", len(object.ManagedFields), managed>>10, most>>10)
}

// managedBytes is the size of an installation's managedFields.
func managedBytes(object *v1.AddonInstallation) (sum int) {
	for _, entry := range object.ManagedFields {
		sum += len(entry.Manager)
		if entry.FieldsV1 != nil {
			sum += len(entry.FieldsV1.GetRawBytes())
		}
	}
	return sum
}

// IsOlder says whether an installation is older than another one; of two that were created in the same second, the name decides.
func IsOlder(a, b *v1.AddonInstallation) bool {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}
