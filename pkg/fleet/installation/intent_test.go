package installation

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

func coreIntent() Intent {
	return Intent{
		Namespace: "cluster-birch", Name: "rbac", Origin: v1.OriginRule, OwnsPaused: true,
		Labels:     map[string]string{v1.LabelManagedBy: v1.ManagedByCoreAddons},
		Finalizers: []string{v1.FinalizerCoreProtection},
		Spec: v1.AddonInstallationSpec{
			AddonRef: v1.AddonReference{Name: "rbac"}, CoreAddon: true, TargetNamespace: "kube-system",
			ReconcileStrategy: v1.ReconcileContinuous, DeletionPolicy: v1.DeletionDelete,
		},
	}
}

// TestTheDigestOfACoreAddonStaysAsItWas turns red when an upgrade would write every core add-on of
// every cluster anew: the digest is that of releases before.
func TestTheDigestOfACoreAddonStaysAsItWas(t *testing.T) {
	digest, err := coreIntent().Digest()
	if err != nil {
		t.Fatal(err)
	}
	if digest != "4190bb7d7cb5474c39ee38955640252c2e69ab6ec2d6b4f23c548b7a19e64926" {
		t.Errorf("it is %s", digest)
	}
}

// TestWhatOthersMaySetDecidesNothing turns red when a field that is not the controller's makes an
// installation wrong, or one that is does not.
func TestWhatOthersMaySetDecidesNothing(t *testing.T) {
	wanted := coreIntent()
	wanted.OwnsPaused, wanted.Stamps = false, map[string]string{v1.AnnotationMoved: "now"}
	wanted.Annotations = map[string]string{v1.AnnotationAdopt: "true"}
	wanted.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"a":1}`)}
	digest, err := wanted.Digest()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		why    string
		change func(*v1.AddonInstallation)
		want   bool
	}{
		{"as it was written", func(*v1.AddonInstallation) {}, true},
		{"paused by hand", func(live *v1.AddonInstallation) { live.Spec.Paused = true }, true},
		{"another time of the write", func(live *v1.AddonInstallation) { live.Annotations[v1.AnnotationMoved] = "then" }, true},
		{"values beside those of the intent", func(live *v1.AddonInstallation) {
			live.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"a":1,"b":2}`)}
		}, true},
		{"another value", func(live *v1.AddonInstallation) { live.Spec.Values = &runtime.RawExtension{Raw: []byte(`{"a":2}`)} }, false},
		{"an annotation of the intent is gone", func(live *v1.AddonInstallation) { delete(live.Annotations, v1.AnnotationAdopt) }, false},
		{"a label of the intent is gone", func(live *v1.AddonInstallation) { live.Labels = nil }, false},
		{"the finalizer is gone", func(live *v1.AddonInstallation) { live.Finalizers = nil }, false},
		{"another version", func(live *v1.AddonInstallation) { live.Spec.AddonRef.Version = "1.0.0" }, false},
		{"another intent", func(live *v1.AddonInstallation) { live.Annotations[v1.AnnotationDigest] = "other" }, false},
	} {
		t.Run(test.why, func(t *testing.T) {
			live := &v1.AddonInstallation{Spec: wanted.Spec}
			live.Labels = map[string]string{v1.LabelManagedBy: v1.ManagedByCoreAddons, "beside": "it"}
			live.Finalizers = []string{v1.FinalizerCoreProtection, "other"}
			live.Annotations = map[string]string{
				v1.AnnotationAdopt: "true", v1.AnnotationDigest: digest, v1.AnnotationMoved: "now", "beside": "it",
			}
			test.change(live)
			if got := IsRight(live, &wanted, digest); got != test.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
