package budget

import (
	"reflect"
	"time"
)

// mapFactor is for the space of a map in addition to its entries.
const mapFactor = 2

var timeType = reflect.TypeFor[time.Time]()

// sizeOf is how many bytes of memory a decoded object takes, with everything that it points to, and how many of them
// the status has, which users don't write.
func sizeOf[T any](object *T) (bytes, status int64) {
	value := reflect.ValueOf(object).Elem()
	return int64(value.Type().Size()) + below(value), below(value.FieldByName("Status"))
}

// below is the size of everything that a value points to.
func below(value reflect.Value) (sum int64) {
	switch value.Kind() {
	case reflect.String:
		return int64(value.Len())
	case reflect.Pointer, reflect.Interface:
		if !value.IsNil() {
			sum = int64(value.Elem().Type().Size()) + below(value.Elem())
		}
	case reflect.Slice:
		sum = int64(value.Cap()) * int64(value.Type().Elem().Size())
		if value.Type().Elem().Kind() == reflect.Uint8 {
			return sum
		}
		for at := range value.Len() {
			sum += below(value.Index(at))
		}
	case reflect.Map:
		entry := int64(value.Type().Key().Size() + value.Type().Elem().Size())
		sum = int64(value.Len()) * entry * mapFactor
		for each := value.MapRange(); each.Next(); {
			sum += below(each.Key()) + below(each.Value())
		}
	case reflect.Struct:
		if value.Type() == timeType { // it points to a location that all share
			return 0
		}
		for at := range value.NumField() { //nolint:modernize // Fields makes a description of each field, which takes memory
			sum += below(value.Field(at))
		}
	}
	return sum
}
