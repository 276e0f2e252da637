// Package values merges an installation's values and checks them.
//
// Layers are in order, lowest first. Maps merge by key; lists and scalars replace. A null removes the value of lower
// layers and stays in the result, so that a chart removes its own default too. Merge returns the origin of each key.
//
// A form's fields are values at dotted paths. Their defaults are a layer; CheckForm is the check for both admission
// and rendering.
//
// CheckTemplate parses a valuesTemplate without running it; UnknownKeys finds misspelt fields.
//
// CheckMarks finds template marks ("{{") in values of users, for templates that see secrets.
//
// CheckFormSpec checks a form itself; FormSchema converts it to JSON schema for user interfaces.
//
// No error of this package contains a value: values may be secret.
package values
