package seed

import (
	"slices"
	"testing"
)

// Red when a Secret that is for nobody any more stays on a seed while a set is invalid, or when another one goes then.
func TestARevokedSecretLeavesWhateverIsHeld(t *testing.T) {
	have := observed{secrets: map[string]observedObject{
		"lost": {forValues: true}, "needed": {forValues: true}, "login": {}, "missing": {forValues: true},
	}}
	want := &Wanted{Secrets: Secrets{
		HoldValues: true, HoldAll: true, Revoked: map[string]bool{"lost": true, "login": true}, Held: map[string]bool{"missing": true},
	}}
	todo := planSeed(want, &marker{}, have)
	if !slices.Equal(todo.removeValues, []string{"lost"}) || len(todo.removeSecret)+len(todo.writeSecret) > 0 {
		t.Errorf("%+v", todo)
	}
}
