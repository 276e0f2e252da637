package fetch

import (
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Kinds are the kinds of source that a process serves.
type Kinds struct{ served []Served }

// Served is one of several Kinds.
type Served struct {
	Source
	name       string
	location   reflect.Type
	locate     func(v1.SourceKind) (Location, bool)
	secretKeys []SecretKey
}

// Serve makes a Served of a Kind. Locations are plain values: equal ones have equal keys.
func Serve[L interface {
	comparable
	Location
}](kind Kind[L],
) Served {
	return Served{
		Source: kind, name: kind.Name(), location: reflect.TypeFor[L](), secretKeys: kind.SecretKeys(),
		locate: func(source v1.SourceKind) (Location, bool) { return kind.Locate(source) },
	}
}

// NewKinds panics if kinds share a name or type of locations, or if a key can't contain them.
func NewKinds(all ...Served) Kinds {
	for i, kind := range all {
		_ = texts(reflect.Zero(kind.location).Interface())
		for _, other := range all[:i] {
			if kind.name == other.name || kind.location == other.location {
				panic(fmt.Sprintf("kinds of source %q and %q have the same name or the same locations", kind.name, other.name))
			}
		}
	}
	return Kinds{served: all}
}

// Source returns the kind that serves a reference. Errors: *NotServedError.
func (k Kinds) Source(reference Reference) (Source, error) {
	if kind := k.kindOf(reference.Location); kind != nil {
		return kind, nil
	}
	return nil, errNotServed
}

// Name is the name of the kind that serves a reference; "": none does.
func (k Kinds) Name(reference Reference) string {
	if kind := k.kindOf(reference.Location); kind != nil {
		return kind.name
	}
	return ""
}

var errNotServed = &NotServedError{Subject: "the source", Mend: "use one of " + v1.SourceKinds}

func (k Kinds) kindOf(location Location) *Served {
	for i := range k.served {
		if k.served[i].location == reflect.TypeOf(location) {
			return &k.served[i]
		}
	}
	return nil
}

// SecretKeys are the keys of source Secrets that any kind reads, once each: secret ones first.
func (k Kinds) SecretKeys() SecretKeys {
	var secret SecretKeys
	public := SecretKeys{keyCA}
	for _, kind := range k.served {
		for _, key := range kind.secretKeys {
			if key.Public && !public.Has(key.Name) {
				public = append(public, key)
			}
			if !key.Public && !secret.Has(key.Name) {
				secret = append(secret, key)
			}
		}
	}
	// A key that is secret for one kind is secret for all.
	public = slices.DeleteFunc(public, func(key SecretKey) bool { return secret.Has(key.Name) })
	return append(secret, public...)
}

// Reference creates a reference from a catalogue's source, with the credentials of its Secrets, which it reads with
// secret. Errors: those of secret, *NotServedError, and *NotFoundError for a Secret without certificate authorities.
func (k Kinds) Reference(source v1.SourceKind, secret func(name string) (*corev1.Secret, error)) (Reference, error) {
	for _, kind := range k.served {
		location, ok := kind.locate(source)
		if !ok {
			continue
		}
		credentials, err := k.credentials(source, kind, secret)
		return Reference{Location: location, Credentials: credentials}, err
	}
	return Reference{}, errNotServed
}

func (k Kinds) credentials(source v1.SourceKind, kind Served, secret func(name string) (*corev1.Secret, error)) (Credentials, error) {
	var credentials Credentials
	login, authorities := source.Secrets()
	if login != nil {
		found, err := secret(login.Name)
		if err != nil {
			return credentials, err
		}
		// Other kinds' keys count too, as stored keys of content include them. Its own come last.
		credentials = readSecret(found, append(k.SecretKeys(), kind.secretKeys...))
	}
	if authorities != nil {
		found, err := secret(authorities.Name)
		if err != nil {
			return credentials, err
		}
		if credentials.CA = found.Data[keyCA.Name]; len(credentials.CA) == 0 {
			return credentials, &NotFoundError{What: fmt.Sprintf("key %q in Secret %q", keyCA.Name, authorities.Name)}
		}
	}
	return credentials, nil
}
