package distributor

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/addonset"
)

// Red when more sets than a platform may have are copied, or when a new one takes the place of one that was there before.
func TestOfTooManySetsTheOldestCount(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var all []v1.AddonSet
	for i := range addonset.MaxSets + 2 {
		made := v1.AddonSet{}
		made.Namespace, made.Name, made.UID = "platform", fmt.Sprintf("set-%03d", i), types.UID(fmt.Sprint(i))
		made.CreationTimestamp = metav1.NewTime(began.Add(-time.Duration(i/2) * time.Second)) // two of each second
		all = append(all, made)
	}
	elsewhere := v1.AddonSet{}
	elsewhere.Namespace, elsewhere.UID = "default", "elsewhere"
	all = append(all, elsewhere)
	if beyond := youngest(all, "platform"); len(beyond) != 2 || !beyond["0"] || !beyond["1"] {
		t.Errorf("beyond the number are %v", beyond)
	}
	slices.Reverse(all)
	if beyond := youngest(all[3:], "platform"); len(beyond) != 0 {
		t.Errorf("of as many as may be, these are beyond: %v", beyond)
	}
}
