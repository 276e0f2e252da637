package seed

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// Red when a Secret that is for nobody any more stays on a seed while a set is invalid, or when another one goes then.
func TestARevokedSecretLeavesWhateverIsHeld(t *testing.T) {
	have := observed{
		secrets:    map[string]observedObject{"lost": {forValues: true}, "needed": {forValues: true}, "login": {}, "missing": {forValues: true}},
		catalogues: map[string]observedObject{"web": {origins: []string{"invalid"}, secrets: []string{"login"}}},
	}
	want := &Wanted{Held: map[string]bool{"invalid": true}, Secrets: Secrets{
		HoldValues: true, Revoked: map[string]bool{"lost": true, "login": true}, Held: map[string]bool{"missing": true},
	}}
	todo := planSeed(want, &marker{}, have)
	if !slices.Equal(todo.removeValues, []string{"lost"}) || len(todo.removeSecret)+len(todo.writeSecret) > 0 {
		t.Errorf("%+v", todo)
	}
}

// Red when a catalogue that can't be read keeps copies of Secrets on seeds that what is merged of it does not name, or loses one that it names.
func TestWhatIsHeldKeepsItsOwnSecretsAlone(t *testing.T) {
	secrets := map[string]observedObject{"login": {}, "authority": {}, "former": {}}
	merged := func(annotations map[string]string) observedObject {
		object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: annotations}}
		object.Labels = map[string]string{v1.LabelRole: v1.RoleMerged}
		return observe(object)
	}
	credentials, authority := &v1.LocalReference{Name: "login"}, &v1.LocalReference{Name: "authority"}
	source := &v1.Source{Git: &v1.GitSource{SecretRef: credentials, CASecretRef: authority}}
	addon := &catalogue.MergedAddon{
		Spec:    v1.AddonCatalogueSpec{Addons: []v1.Addon{{Name: "web", Versions: []v1.AddonVersion{{Version: "1.0.0", Source: source}}}}},
		Origins: map[string]catalogue.Origin{"1.0.0": {Catalogue: "invalid"}},
	}
	written := (&marker{}).annotations("web", addon, nil)
	earlier := map[string]string{v1.AnnotationVersions: addon.OriginsJSON()}
	held, refused := map[string]bool{"invalid": true}, map[string]*catalogue.TooLargeError{"web": {}}
	for _, test := range []struct {
		why         string
		annotations map[string]string
		want        Wanted
		gone        []string
	}{
		{"it is held", written, Wanted{Held: held}, []string{"former"}},
		{"it is refused", written, Wanted{Refused: refused}, []string{"former"}},
		{"an earlier build wrote it", earlier, Wanted{Held: held}, nil},
		{"another one is held", written, Wanted{Held: map[string]bool{"other": true}}, []string{"authority", "former", "login"}},
		{"another one is refused", written, Wanted{Refused: map[string]*catalogue.TooLargeError{"other": {}}}, []string{"authority", "former", "login"}},
	} {
		have := observed{secrets: secrets, catalogues: map[string]observedObject{"web": merged(test.annotations)}}
		if todo := planSeed(&test.want, &marker{}, have); !slices.Equal(todo.removeSecret, test.gone) {
			t.Errorf("%s: %v go, want %v", test.why, todo.removeSecret, test.gone)
		}
	}
}
