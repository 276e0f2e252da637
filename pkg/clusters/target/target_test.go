package target

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

func TestRefMatchesWhatItAsksFor(t *testing.T) {
	amber := Ref{Kind: schema.GroupKind{Group: "kubermatic.k8c.io", Kind: "Cluster"}, Namespace: "cluster-amber", Name: "amber", UID: "u"}
	installation := &v1.AddonInstallation{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-amber", Name: "web"}}
	for _, test := range []struct {
		why  string
		ref  Ref
		want bool
	}{
		{"it names all", amber, true},
		{"nothing is asked for", Ref{}, true},
		{"whatever the namespace has", Ref{Namespace: "cluster-amber"}, true},
		{"an installation's cluster", InstalledIn(installation), true},
		{"a record's cluster", Recorded("cluster-amber", amber.Identity()), true},
		{"another namespace", Ref{Namespace: "cluster-basil"}, false},
		{"another name", Ref{Namespace: "cluster-amber", Name: "basil"}, false},
		{"a former one of the name", Recorded("cluster-amber", v1.ClusterIdentity{Name: "amber", UID: "former"}), false},
		{"another kind", Ref{Kind: schema.GroupKind{Group: "cluster.x-k8s.io", Kind: "Cluster"}, Name: "amber"}, false},
	} {
		if got := test.ref.Matches(amber); got != test.want {
			t.Errorf("%s: got %v", test.why, got)
		}
	}
	if (amber.Matches(Ref{Namespace: "cluster-amber"})) {
		t.Error("what is not known of a cluster is taken for what was asked for")
	}
}

// Red when the way out of a pause names a field that the cluster's kind has not.
func TestAPauseNamesItsField(t *testing.T) {
	capi := Description{Ref: Ref{Kind: KindClusterAPI}}
	annotated := capi
	annotated.Annotations = map[string]string{"cluster.x-k8s.io/paused": ""}
	for want, one := range map[string]Description{
		"set its spec.pause to false": {Ref: Ref{Kind: KindKKP}}, "set its spec.paused to false": capi,
		"remove its annotation cluster.x-k8s.io/paused, and set its spec.paused to false": annotated,
	} {
		if got := one.Unpause(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
