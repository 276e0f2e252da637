package catalogue_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// TestWhoMayUseASecret (F7) fails when a user whom the annotation does not name may use a Secret, or, without the
// annotation, users other than Core and those that had it.
func TestWhoMayUseASecret(t *testing.T) {
	secret := func(uid types.UID, usedBy ...string) *corev1.Secret {
		made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "login", UID: uid}}
		if len(usedBy) > 0 {
			made.Annotations = map[string]string{v1.AnnotationUsedBy: usedBy[0]}
		}
		return made
	}
	set := func(uid types.UID) catalogue.SecretUser {
		return catalogue.SetUser(&v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: uid}})
	}
	of := func(name string, kind v1.CatalogueType) catalogue.SecretUser {
		object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "c"}}
		object.Spec.Type = kind
		return catalogue.CatalogueUser(object)
	}
	previous := catalogue.PreviousUsers{}
	previous.Note(set("s"), secret("1"), secret("1"))
	previous.Note(of("core", v1.CatalogueCore), secret("1"))
	previous.Note(of("b", ""), secret("1", ""))
	if kept := previous.String(); kept != "Secret/login 1 AddonSet/a s" {
		t.Fatalf("noted: %q", kept)
	}
	for _, test := range []struct {
		why         string
		secret      *corev1.Secret
		user        catalogue.SecretUser
		warns, says string
	}{
		{"named", secret("1", "AddonSet/b, AddonSet/a"), set("new"), "", ""},
		{"all", secret("1", "*"), of("b", ""), "", ""},
		{"another kind of that name", secret("1", "AddonSet/b"), of("b", ""), "", `may not be used by AddonCatalogue/b: add AddonCatalogue/b to its annotation addons.kubermatic.k8c.io/used-by`},
		{"a part of a name", secret("1", "AddonSet/ab"), set("s"), "", "may not be used by AddonSet/a"},
		{"a former user that is not named", secret("1", "AddonSet/b"), set("s"), "", "may not be used"},
		{"an empty annotation", secret("1", ""), of("core", v1.CatalogueCore), "", "may not be used"},
		{"Core without annotation", secret("1"), of("core", v1.CatalogueCore), "", ""},
		{"Custom without annotation", secret("1"), of("b", v1.CatalogueCustom), "", "annotate the Secret with addons.kubermatic.k8c.io/used-by=AddonCatalogue/b"},
		{"no type is Custom", secret("1"), of("b", ""), "", "annotate the Secret"},
		{"a former user", secret("1"), set("s"), "annotate the Secret with addons.kubermatic.k8c.io/used-by=AddonSet/a", ""},
		{"a later set of that name", secret("1"), set("t"), "", "annotate the Secret"},
		{"a later Secret of that name", secret("2"), set("s"), "", "annotate the Secret"},
	} {
		warning, refusal := catalogue.ReadPreviousUsers(previous.String()).MayUse(test.secret, test.user)
		said := ""
		if refusal != nil {
			said = refusal.Error()
		}
		if (said == "") != (test.says == "") || !strings.Contains(said, test.says) || (warning == "") != (test.warns == "") || !strings.Contains(warning, test.warns) {
			t.Errorf("%s: warning %q, refusal %q", test.why, warning, said)
		}
	}
}

// TestVersionsWithoutASecret fails when a Core catalogue whose versions are all left out frees the name of its add-on
// for others, or when versions that do not need the Secret are left out.
func TestVersionsWithoutASecret(t *testing.T) {
	version := func(name, secret string) v1.AddonVersion {
		made := v1.AddonVersion{
			Version: name, Template: &v1.Template{Method: v1.MethodGoTemplate},
			Source: &v1.Source{Git: &v1.GitSource{Remote: "https://git.example.com/a.git", CASecretRef: &v1.LocalReference{Name: "login"}}},
		}
		if secret != "" {
			made.Source.Git.SecretRef = &v1.LocalReference{Name: secret}
		}
		return made
	}
	read := func(name string, kind v1.CatalogueType, versions ...v1.AddonVersion) *catalogue.Source {
		object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
		object.Spec = v1.AddonCatalogueSpec{Type: kind, Addons: []v1.Addon{{Name: "web", Versions: versions}}}
		source, err := catalogue.Read(object)
		if err != nil {
			t.Fatal(err)
		}
		return source
	}
	core := read("core", v1.CatalogueCore, version("1.0.0", "login"))
	custom := read("custom", v1.CatalogueCustom, version("2.0.0", "login"), version("2.1.0", "other"), version("2.2.0", ""))
	merged := asBefore([]*catalogue.Source{core.Without([]string{"login"}), custom})
	if len(merged.Addons) != 0 || len(merged.Conflicts["custom"]) != 1 {
		t.Errorf("the name is free: %v, %v", merged.Addons, merged.Conflicts)
	}
	merged = asBefore([]*catalogue.Source{custom.Without([]string{"login"})})
	var left []string
	for _, one := range merged.Addons["web"].Spec.Addons[0].Versions {
		left = append(left, one.Version)
	}
	if got := strings.Join(left, " "); got != "2.2.0 2.1.0" || len(asBefore([]*catalogue.Source{custom}).Addons["web"].Origins) != 3 {
		t.Errorf("versions %s", got)
	}
	if got := strings.Join(custom.Secrets, " "); got != "login other" {
		t.Errorf("Secrets %s", got)
	}
}

// TestNotesOfPreviousUsersAreBounded fails when the notes don't fit a ConfigMap, when one user takes the space of
// others, or when later users come before earlier ones.
func TestNotesOfPreviousUsersAreBounded(t *testing.T) {
	var secrets []metav1.Object
	for i := range 40 {
		name := types.UID(fmt.Sprintf("%s%02d", strings.Repeat("s", 250), i))
		secrets = append(secrets, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: string(name), UID: name}})
	}
	user := func(at int) catalogue.SecretUser {
		return catalogue.SetUser(&v1.AddonSet{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("a%d", at), UID: types.UID(fmt.Sprint(at))}})
	}
	previous := catalogue.PreviousUsers{}
	for at := range 100 {
		previous.Note(user(at), secrets...)
		previous.Note(user(at), secrets...)
		if at == 0 && len(previous) != 32 {
			t.Errorf("one user has %d", len(previous))
		}
	}
	if bytes := len(previous.String()); bytes > 256<<10 || bytes < 255<<10 {
		t.Errorf("%d bytes", bytes)
	}
	for at, says := range map[int]bool{0: true, 1: true, 99: false} {
		if _, refusal := previous.MayUse(secrets[31], user(at)); (refusal == nil) != says {
			t.Errorf("user %d: %v", at, refusal)
		}
	}
}
