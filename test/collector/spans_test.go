package collector

import (
	"errors"
	"testing"
)

// A message of a later encoder would have fields that no test looks at.
func TestUnknownFieldsAreRefused(t *testing.T) {
	for why, message := range map[string]string{
		"in the message": "\x7a\x01x",
		"in a span":      "\x0a\x0a\x12\x08\x12\x06\x2a\x01s\xfa\x01\x00",
	} {
		if _, err := Read([]byte(message)); !errors.Is(err, errFields) {
			t.Errorf("%s: error is %v", why, err)
		}
	}
	spans, err := Read([]byte("\x0a\x07\x12\x05\x12\x03\x2a\x01s"))
	if err != nil || len(spans) != 1 || spans[0].Name != "s" {
		t.Errorf("a span without them is %v, %v", spans, err)
	}
}
