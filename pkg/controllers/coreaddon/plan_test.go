package coreaddon

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"

	kkpv1 "github.com/trellis-addons/trellis/apis/kkp/v1"
	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// TestPlan: The stories describe the plan: created, corrected (~), released, removed, blocked, taken and missing
// installations.
func TestPlan(t *testing.T) {
	inCore := func(addons ...string) catalogueTypes { return typed(v1.CatalogueCore, addons...) }
	monitoring := item{name: "monitoring", selector: labels.Everything(), spec: v1.AddonInstallationSpec{
		AddonRef: v1.AddonReference{Name: "prometheus"}, TargetNamespace: "monitoring",
	}}
	fillIn(&monitoring.spec)
	withList := listState{Read: true, Items: []item{monitoring}}
	for _, test := range []struct {
		why        string
		list       listState
		change     func(*kkpv1.Cluster)
		live       []v1.AddonInstallation
		catalogues catalogueTypes
		want       string
	}{
		{
			why: "a new cluster gets what the Core catalogues have", list: listState{Absent: true}, catalogues: inCore("canal", "kube-proxy"),
			want: "make canal, make kube-proxy, missing aws-node-termination-handler default-storage-class kubeadm-configmap kubelet-configmap rbac",
		},
		{
			why: "a Custom catalogue does not make a rule's add-on", list: listState{Absent: true}, catalogues: typed(v1.CatalogueCustom, "canal"),
			want: "missing aws-node-termination-handler canal default-storage-class kube-proxy kubeadm-configmap kubelet-configmap rbac",
		},
		{
			why: "but a list item's", list: withList, catalogues: typed(v1.CatalogueCustom, "prometheus"), change: bare,
			want: "make monitoring, missing default-storage-class kubeadm-configmap kubelet-configmap rbac",
		},
		{
			why: "what is right is left alone", list: listState{Absent: true}, catalogues: inCore("rbac"), change: bare,
			live: []v1.AddonInstallation{made("rbac")}, want: "missing default-storage-class kubeadm-configmap kubelet-configmap",
		},
		{
			why: "what is edited is put right", list: listState{Absent: true}, catalogues: inCore("rbac"), change: bare,
			live: []v1.AddonInstallation{made("rbac", paused)}, want: "~ rbac, missing default-storage-class kubeadm-configmap kubelet-configmap",
		},
		{
			why: "also where its catalogue is gone", list: listState{Absent: true}, catalogues: inCore(), change: bare,
			live: []v1.AddonInstallation{made("rbac", paused)}, want: "~ rbac, missing default-storage-class kubeadm-configmap kubelet-configmap",
		},
		{
			why: "a protection that somebody took off is put back", list: listState{Absent: true}, change: bare, catalogues: inCore(),
			live: []v1.AddonInstallation{made("rbac", unprotected)}, want: "~ rbac, missing default-storage-class kubeadm-configmap kubelet-configmap",
		},
		{
			why: "somebody's installation of that name is left alone", list: listState{Absent: true}, change: bare, catalogues: inCore("rbac"),
			live: []v1.AddonInstallation{made("rbac", somebodys)}, want: "taken rbac, missing default-storage-class kubeadm-configmap kubelet-configmap",
		},
		{
			why: "deleted in the set: blocked", list: listState{Absent: true}, change: bare, catalogues: inCore(),
			live: []v1.AddonInstallation{made("rbac", deleted)}, want: "blocked rbac, missing default-storage-class kubeadm-configmap kubelet-configmap",
		},
		{
			why: "deleted and stripped in the set: it goes, and comes again later", list: listState{Absent: true}, change: bare, catalogues: inCore(),
			live: []v1.AddonInstallation{made("rbac", deleted, unprotected)},
			want: "blocked rbac, missing default-storage-class kubeadm-configmap kubelet-configmap",
		},
		{
			why: "out of the set by a field", list: listState{Absent: true}, catalogues: inCore(),
			change: func(c *kkpv1.Cluster) { bare(c); c.Spec.ClusterNetwork.ProxyMode = "ebpf" },
			live:   []v1.AddonInstallation{made("kube-proxy")}, want: "remove kube-proxy, missing default-storage-class kubeadm-configmap kubelet-configmap rbac",
		},
		{
			why: "out of the set and deleted already", list: listState{Absent: true}, catalogues: inCore(),
			change: func(c *kkpv1.Cluster) { bare(c); c.Spec.ClusterNetwork.ProxyMode = "ebpf" },
			live:   []v1.AddonInstallation{made("kube-proxy", deleted)},
			want:   "release kube-proxy, missing default-storage-class kubeadm-configmap kubelet-configmap rbac",
		},
		{
			why: "a missing field removes nothing", list: listState{Absent: true}, catalogues: inCore("kube-proxy"), change: bare,
			live: []v1.AddonInstallation{made("kube-proxy")}, want: "missing default-storage-class kubeadm-configmap kubelet-configmap rbac",
		},
		{
			why: "a missing field makes nothing", list: listState{Absent: true}, catalogues: inCore("kube-proxy"), change: bare,
			want: "missing default-storage-class kubeadm-configmap kubelet-configmap rbac",
		},
		{
			why: "without a list, what an earlier one brought stays", list: listState{Absent: true}, change: bare, catalogues: inCore(),
			live: []v1.AddonInstallation{made("monitoring", fromList)}, want: "missing default-storage-class kubeadm-configmap kubelet-configmap rbac",
		},
		{
			why: "an empty list takes it away", list: listState{Read: true}, change: bare, catalogues: inCore(),
			live: []v1.AddonInstallation{made("monitoring", fromList)},
			want: "remove monitoring, missing default-storage-class kubeadm-configmap kubelet-configmap rbac",
		},
		{
			why: "but not what somebody made, whatever it says of itself", list: listState{Read: true}, change: bare, catalogues: inCore(),
			live: []v1.AddonInstallation{made("monitoring", fromList, unlabelled, unprotected), made("other", somebodys)},
			want: "missing default-storage-class kubeadm-configmap kubelet-configmap rbac",
		},
		{
			why: "an unreadable list at the start changes nothing", list: listState{Problem: &ListError{Problem: "bad"}}, catalogues: inCore("rbac"),
			live: []v1.AddonInstallation{made("monitoring", fromList), made("kube-proxy", paused)}, want: "",
		},
		{
			why: "an unreadable list later leaves the last good one in force", catalogues: typed(v1.CatalogueCustom, "prometheus"), change: bare,
			list: listState{Read: true, Items: []item{monitoring}, Problem: &ListError{Problem: "bad"}},
			want: "make monitoring, missing default-storage-class kubeadm-configmap kubelet-configmap rbac",
		},
	} {
		t.Run(test.why, func(t *testing.T) {
			cluster := fullCluster()
			if test.change != nil {
				test.change(cluster)
			}
			got := planFor(setFor(described(cluster), test.list, ""), test.live, test.catalogues)
			if reported := reportPlan(&got); reported != test.want {
				t.Errorf("\n got: %s\nwant: %s", reported, test.want)
			}
		})
	}
}

func TestTheListWinsOverTheRules(t *testing.T) {
	listed := item{name: "kube-proxy", selector: labels.Everything(), spec: specOf("kube-proxy")}
	listed.spec.AddonRef.Version = "v1.36.3"
	set := setFor(described(fullCluster()), listState{Read: true, Items: []item{listed}}, "")
	if found := set.find("kube-proxy"); found == nil || found.origin != v1.OriginList || found.spec.AddonRef.Version != "v1.36.3" {
		t.Errorf("kube-proxy is %+v", found)
	}
	listed.selector = labels.SelectorFromSet(labels.Set{"tier": "production"})
	set = setFor(described(fullCluster()), listState{Read: true, Items: []item{listed}}, "")
	if found := set.find("kube-proxy"); found == nil || found.origin != v1.OriginRule {
		t.Errorf("for a cluster that is not selected, kube-proxy is %+v", found)
	}
}

func TestIsApplied(t *testing.T) {
	one := wanted{name: "rbac", origin: v1.OriginRule, spec: specOf("rbac")}
	one.spec.Values = &runtime.RawExtension{Raw: []byte(`{"a":{"b":1},"list":[1,2]}`)}
	withValues := func(text string) func(*v1.AddonInstallation) {
		return func(live *v1.AddonInstallation) { live.Spec.Values = &runtime.RawExtension{Raw: []byte(text)} }
	}
	for _, test := range []struct {
		why    string
		change func(*v1.AddonInstallation)
		want   bool
	}{
		{"equal", withValues(`{"a":{"b":1},"list":[1,2]}`), true},
		{"what a cluster admin adds stays", withValues(`{"a":{"b":1,"c":2},"list":[1,2],"d":3}`), true},
		{"what the item sets is put back", withValues(`{"a":{"b":2},"list":[1,2]}`), false},
		{"a key is missing", withValues(`{"a":{"b":1}}`), false},
		{"lists are one value", withValues(`{"a":{"b":1},"list":[1,2,3]}`), false},
		{"no values", func(live *v1.AddonInstallation) { live.Spec.Values = nil }, false},
		{"values from elsewhere stay", func(live *v1.AddonInstallation) {
			withValues(`{"a":{"b":1},"list":[1,2]}`)(live)
			live.Spec.ValuesFrom = []v1.ValuesSource{{SecretRef: &v1.KeyReference{Name: "a", Key: "b"}}}
		}, true},
		{"a version is not the admin's", func(live *v1.AddonInstallation) {
			withValues(`{"a":{"b":1},"list":[1,2]}`)(live)
			live.Spec.AddonRef.Version = "1"
		}, false},
	} {
		t.Run(test.why, func(t *testing.T) {
			live := madeOf(one)
			test.change(&live)
			if got := isApplied(&live, one); got != test.want {
				t.Errorf("isApplied is %t", got)
			}
		})
	}
}

func reportPlan(p *plan) string {
	var reported []string
	for _, change := range p.apply {
		verb := "make"
		if change.live != nil {
			verb = "~"
		}
		reported = append(reported, verb+" "+change.wanted.name)
	}
	for _, group := range []struct {
		verb  string
		items []*v1.AddonInstallation
	}{{"release", p.release}, {"remove", p.remove}, {"blocked", p.blocked}} {
		for _, one := range group.items {
			reported = append(reported, group.verb+" "+one.Name)
		}
	}
	if len(p.taken) > 0 {
		reported = append(reported, "taken "+strings.Join(p.taken, " "))
	}
	if len(p.missing) > 0 {
		reported = append(reported, "missing "+strings.Join(p.missing, " "))
	}
	return strings.Join(reported, ", ")
}

func typed(kind v1.CatalogueType, addons ...string) catalogueTypes {
	return func(addon string) v1.CatalogueType {
		if slices.Contains(addons, addon) {
			return kind
		}
		return ""
	}
}

// bare leaves only the add-ons that KKP always has, and those whose rule needs no field.
func bare(cluster *kkpv1.Cluster) {
	cluster.Spec = kkpv1.ClusterSpec{}
}

func made(name string, changes ...func(*v1.AddonInstallation)) v1.AddonInstallation {
	live := madeOf(wanted{name: name, origin: v1.OriginRule, spec: specOf(name)})
	for _, change := range changes {
		change(&live)
	}
	return live
}

func madeOf(one wanted) v1.AddonInstallation {
	digest, err := intent("cluster-birch", one).Digest()
	if err != nil {
		panic(fmt.Sprintf("the intent of %q: %v", one.name, err))
	}
	return v1.AddonInstallation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "cluster-birch", Name: one.name,
			Labels:      map[string]string{v1.LabelManagedBy: v1.ManagedByCoreAddons},
			Annotations: map[string]string{v1.AnnotationCoreOrigin: one.origin, v1.AnnotationDigest: digest},
			Finalizers:  []string{v1.FinalizerCoreProtection},
		},
		Spec: one.spec,
	}
}

func paused(live *v1.AddonInstallation)      { live.Spec.Paused = true }
func unprotected(live *v1.AddonInstallation) { live.Finalizers = nil }
func unlabelled(live *v1.AddonInstallation)  { live.Labels = nil }
func somebodys(live *v1.AddonInstallation) {
	live.Spec.CoreAddon, live.Labels, live.Finalizers = false, nil, nil
}
func deleted(live *v1.AddonInstallation) {
	live.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
}
func fromList(live *v1.AddonInstallation) {
	live.Annotations[v1.AnnotationCoreOrigin] = v1.OriginList
}
