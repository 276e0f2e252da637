package templatedata

import (
	"reflect"
	"testing"
)

// Red when the sample lacks a fact that the list of these does not name: a mistake of a cluster without it
// would count as one of the author.
func TestBeyondSampleNamesAllThatTheSampleLacks(t *testing.T) {
	data, err := Sample("1.34.0")
	if err != nil {
		t.Fatal(err)
	}
	data.BuiltIn = &BuiltIn{}
	walkZero(t, reflect.ValueOf(data), "")
}

func walkZero(t *testing.T, value reflect.Value, at string) {
	t.Helper()
	for i := range value.NumField() {
		field := value.Type().Field(i)
		path := at + "." + field.Name
		found := value.Field(i)
		switch {
		case path == ".Variables", !field.IsExported(), !field.Anonymous && BeyondSample.MatchString(field.Name):
		case field.Anonymous:
			walkZero(t, found.Elem(), at)
		case found.Kind() == reflect.Struct:
			walkZero(t, found, path)
		case found.IsZero(), (found.Kind() == reflect.Map || found.Kind() == reflect.Slice) && found.Len() == 0:
			t.Errorf("the sample has no %s, and BeyondSample does not name it", path)
		}
	}
}
