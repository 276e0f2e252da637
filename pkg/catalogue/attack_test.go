package catalogue_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/budget"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

func TestAttackOwnerReferences(t *testing.T) {
	into := budget.New[v1.AddonCatalogue](catalogue.Budget("kubermatic"))
	var all []any
	stubs := 0
	for at := range 200 {
		one := crowd(fmt.Sprintf("x-%d", at), 1, 1, 1)
		one.Namespace = "kubermatic"
		one.OwnerReferences = []metav1.OwnerReference{{APIVersion: "x/v1", Kind: "X", UID: "x", Name: strings.Repeat("x", 1400<<10)}}
		held, made := hold(t, into, one)
		all, stubs = append(all, held...), stubs+len(made)
		if at == 0 {
			t.Logf("admission counts %d bytes", catalogue.WeighObject(one).Bytes)
		}
	}
	honest := crowd("honest", 1, 1, 1)
	honest.Namespace = "kubermatic"
	_, made := hold(t, into, honest)
	t.Logf("200 catalogues, %d stubs, %d MiB held of 96; an honest small one is a stub: %v", stubs, into.Of("kubermatic").Bytes>>20, made)
	runtime.KeepAlive(all)
}
