package boot

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	"github.com/trellis-addons/trellis/test/standins"
)

// item is what every Cluster has, of one method in the one and of the other method in the other.
type item struct {
	name string
	slot v1.Slot
	// methods by Cluster.
	methods map[string]v1.Method
}

func items() []item {
	const chart, template = v1.MethodHelm, v1.MethodGoTemplate
	return []item{
		{"logs", "", map[string]v1.Method{listed: chart, inSet: template}}, // what comes last is listed first
		{"mail", "", map[string]v1.Method{listed: template, inSet: chart}},
		{"network", v1.SlotCNI, map[string]v1.Method{listed: chart, inSet: template}},
		{"cloud", v1.SlotCPI, map[string]v1.Method{listed: template, inSet: chart}},
		{"bricks", v1.SlotCSI, map[string]v1.Method{listed: chart, inSet: template}},
	}
}

// addon is the one that offers an item by a method.
func (i item) addon(by v1.Method) v1.AddonName { return v1.AddonName(i.name + "-by-" + string(by)) }

// offer has every item as a chart and as templates, and both Clusters' wishes.
func (p *platform) offer() {
	p.t.Helper()
	var list strings.Builder
	var set []v1.AddonSetItem
	for _, one := range items() {
		inList, inSets := one.addon(one.methods[listed]), one.addon(one.methods[inSet])
		for _, method := range one.methods {
			p.publish(one, method)
		}
		fmt.Fprintf(&list, "- {name: %s, addonRef: {name: %s}, targetNamespace: kube-system, clusterSelector: {matchLabels: {by: %s}}}\n",
			one.name, inList, listed)
		set = append(set, v1.AddonSetItem{
			Name: v1.AddonName(one.name), AddonRef: v1.AddonReference{Name: inSets}, TargetNamespace: metav1.NamespaceSystem,
		})
	}
	expect.Create(p.t, p.client, given.CoreList(platformNamespace, list.String()))
	copies := standins.Copies{Client: p.client, Namespace: catalogueNamespace}
	copies.Put(p.t, "basics", v1.AddonSetSpec{
		ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"by": inSet}}, Addons: set,
	})
	copies.KeepOpen(p.t, "basics", 1)
}

// expectSettled waits until the set has nothing to do yet: on a platform it was there before.
func (p *platform) expectSettled() {
	p.t.Helper()
	set := &v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Namespace: catalogueNamespace, Name: "basics"}}
	expect.HasCondition(p.t, p.client, set, expect.Is(v1.ConditionReady, "True", v1.ReasonComplete))
}

// publish offers an item by one method: a ConfigMap, and a Deployment that does not work before somebody says so.
func (p *platform) publish(of item, method v1.Method) {
	p.t.Helper()
	addon := of.addon(method)
	manifest := fmt.Sprintf(`apiVersion: v1
kind: ConfigMap
metadata: {name: %[1]s}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s}
spec:
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {containers: [{name: main, image: "example.com/%[1]s:1"}]}
`, of.name)
	files := map[string]string{"all.yaml": manifest}
	if method == v1.MethodHelm {
		files = map[string]string{
			"Chart.yaml": "apiVersion: v2\nname: " + of.name + "\nversion: 1.0.0\n", "templates/all.yaml": manifest,
		}
	}
	if _, err := p.sources.Commit(string(addon), files); err != nil {
		p.t.Fatal(err)
	}
	version := given.Version("1.0.0", given.Git(p.sources.GitURL+"/"+string(addon)+".git", ""))
	version.Template.Method = method
	offered := v1.Addon{Name: addon, Slot: of.slot, Versions: []v1.AddonVersion{version}}
	expect.Create(p.t, p.client, given.Merged(catalogueNamespace, v1.CatalogueCustom, offered))
}
