package v1_test

import (
	"reflect"
	"strings"
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Red when a field of Source is missing in Kind or in SourceKinds.
func TestEveryFieldOfASourceIsAKind(t *testing.T) {
	fields := reflect.TypeFor[v1.Source]()
	names := []string{}
	both := reflect.New(fields)
	for i := range fields.NumField() {
		one := reflect.New(fields)
		set := reflect.New(fields.Field(i).Type.Elem())
		one.Elem().Field(i).Set(set)
		both.Elem().Field(i).Set(set)
		if got := one.Interface().(*v1.Source).Kind(); got != set.Interface() {
			t.Errorf("a source with field %s alone is of kind %v", fields.Field(i).Name, got)
		}
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	last := len(names) - 1
	if named := strings.Join(names[:last], ", ") + " and " + names[last]; named != v1.SourceKinds {
		t.Errorf("the kinds are %q, and SourceKinds is %q", named, v1.SourceKinds)
	}
	for why, source := range map[string]*v1.Source{
		"no source": nil, "one without a kind": {}, "one with all of them": both.Interface().(*v1.Source),
	} {
		if kind := source.Kind(); kind != nil {
			t.Errorf("%s is of kind %v", why, kind)
		}
	}
}

// Red when a kind names its Secrets in the wrong order, or not at all.
func TestSourcesNameTheirSecrets(t *testing.T) {
	credentials, authorities := &v1.LocalReference{Name: "credentials"}, &v1.LocalReference{Name: "authorities"}
	for field := range reflect.TypeFor[v1.Source]().Fields() {
		kind := reflect.New(field.Type.Elem())
		kind.Elem().FieldByName("SecretRef").Set(reflect.ValueOf(credentials))
		kind.Elem().FieldByName("CASecretRef").Set(reflect.ValueOf(authorities))
		first, second := kind.Interface().(v1.SourceKind).Secrets()
		if first != credentials || second != authorities {
			t.Errorf("%s names %v and %v", field.Name, first, second)
		}
	}
}

// Red when a field that both have is not copied.
func TestARepositoryOfACatalogueIsASource(t *testing.T) {
	full := v1.CatalogueGit{
		Remote: "https://git.example.com/a.git", Ref: &v1.GitRef{Tag: "v1"}, Path: "addons",
		SecretRef: &v1.LocalReference{Name: "credentials"}, CASecretRef: &v1.LocalReference{Name: "authorities"},
	}
	source := reflect.ValueOf(full.Source()).Elem()
	for i := range source.NumField() {
		name := source.Type().Field(i).Name
		if given := reflect.ValueOf(full).FieldByName(name); given.IsZero() || !reflect.DeepEqual(given.Interface(), source.Field(i).Interface()) {
			t.Errorf("%s is %v in the catalogue and %v in its source", name, given, source.Field(i))
		}
	}
}
