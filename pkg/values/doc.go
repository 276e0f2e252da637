// Package values puts an installation's values together and checks them.
//
// Layers come lowest first; maps merge by key, lists and scalars replace, a null removes what is
// below and stays as null, so that a chart sees it and removes its own default too. Merge keeps the
// origin of every key that is in effect.
//
// A form's fields are values at dotted paths. Defaults are a layer of their own; CheckForm is the
// one check for admission and for rendering.
//
// CheckTemplate says whether a valuesTemplate parses, without running it; UnknownKeys finds what
// may be a misspelt field.
//
// CheckMarks finds template marks ("{{") in values of users, where templates see secrets.
//
// CheckFormSpec checks a form itself, FormSchema makes JSON schema of it for user interfaces.
//
// No error of this package holds a value: values may be secret.
package values
