package sets_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/expect"
)

// F7: An author who may not read Secrets names one of the platform's, beside an add-on of his own that writes its values down. Red when
// a user cluster has anything of it, or when the set has no values once the Secret names it.
func TestASetShowsNoUserClusterWhatASecretKeepsFromIt(t *testing.T) {
	w := newWorld(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: "monitoring-values"}}
	put(w, secret, func(secret *corev1.Secret) {
		secret.Labels = map[string]string{v1.LabelUse: v1.UseValues}
		secret.Data = map[string][]byte{"values.yaml": []byte("text: S3CRET")}
	})
	w.offer(v1.CatalogueCustom, "web", w.version("1.0.0", "plain"))
	w.runMaster()
	expect.Object(t, w.master, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.platform, Name: v1.SecretCatalogueKey}},
		func(*corev1.Secret) error { return nil })
	w.keyed = true
	w.seeds["seed"].runSets()
	w.runInstallations()
	leak := w.set("leak", func(spec *v1.AddonSetSpec) {
		spec.Addons[0].PlatformSecretRef = &v1.PlatformSecretReference{Name: secret.Name}
	})
	w.says(leak, v1.ReasonSecretNotAllowed)
	for _, one := range w.seeds {
		one.lookAgain()
	}
	w.gone(w.target, amber, birch, cedar)
	put(w, secret, func(secret *corev1.Secret) {
		metav1.SetMetaDataAnnotation(&secret.ObjectMeta, v1.AnnotationUsedBy, "AddonSet/leak")
	})
	w.has("web", "S3CRET", amber, birch, cedar)
}
