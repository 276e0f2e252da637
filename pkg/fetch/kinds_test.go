package fetch_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/git"
	"github.com/trellis-addons/trellis/pkg/fetch/helmrepo"
	"github.com/trellis-addons/trellis/pkg/fetch/image"
)

// kinds are those of the product and two that use the freedom of the contract.
var kinds = fetch.NewKinds(
	fetch.Serve(git.New(nil)), fetch.Serve(image.New(nil)), fetch.Serve(helmrepo.New(nil)),
	fetch.Serve(careless[bucket]{name: "bucket"}), fetch.Serve(careless[archive]{name: "archive"}),
)

// place is the constraint of the locations of careless kinds.
type place interface {
	comparable
	fetch.Location
}

// careless is a kind that defines only its name.
type careless[L place] struct {
	fetch.Source
	name string
	keys []fetch.SecretKey
}

func (c careless[L]) Name() string { return c.name }

func (c careless[L]) SecretKeys() []fetch.SecretKey { return c.keys }

func (careless[L]) Locate(v1.SourceKind) (location L, ok bool) { return location, false }

// bucket has the fields of a git repository.
type bucket struct {
	Remote                      string
	Branch, Tag, Commit, Semver fetch.Selector
	Path                        string
}

func (bucket) Host() string                                  { return "" }
func (bucket) Mirrored(fetch.Mirrors) (fetch.Location, bool) { return nil, false }
func (bucket) IsFixed() bool                                 { return false }

// archive has the fields of an image.
type archive struct{ Image, Path string }

func (archive) Host() string                                  { return "" }
func (archive) Mirrored(fetch.Mirrors) (fetch.Location, bool) { return nil, false }
func (archive) IsFixed() bool                                 { return false }

// random sets every text below a struct to one of few, so that values that differ in one field or in the place of a
// text are frequent.
func random(random *rand.Rand, kind reflect.Type) reflect.Value {
	few := []string{"", "", "", "a", "b", "ab", "git", "https://a/b"}
	made := reflect.New(kind).Elem()
	for _, field := range made.Fields() {
		text := few[random.IntN(len(few))]
		switch field.Interface().(type) {
		case []byte:
			field.SetBytes(append([]byte(nil), text...)) // nil, not empty
		case []string:
			for range random.IntN(3) {
				field.Set(reflect.Append(field, reflect.ValueOf(few[random.IntN(len(few))])))
			}
		default:
			field.SetString(text)
		}
	}
	return made
}

// TestKeysAreEqualForEqualReferencesOnly: Two references have the same key if, and only if, they are equal,
// regardless of the methods of their kind.
//
// Red where Key leaves out the kind's name or any field, and where Identity leaves out one.
func TestKeysAreEqualForEqualReferencesOnly(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 2))
	locations := []reflect.Type{
		reflect.TypeFor[git.Location](), reflect.TypeFor[bucket](), reflect.TypeFor[image.Location](), reflect.TypeFor[archive](),
		reflect.TypeFor[helmrepo.Location](),
	}
	byKey, byText := map[[32]byte]string{}, map[string][32]byte{}
	for range 200_000 {
		reference := fetch.Reference{Location: random(source, locations[source.IntN(len(locations))]).Interface().(fetch.Location)}
		if source.IntN(4) == 0 {
			reference.Credentials = random(source, reflect.TypeFor[fetch.Credentials]()).Interface().(fetch.Credentials)
			slices.Sort(reference.Credentials.Hosts) // their order is random
		}
		key, text := kinds.Key(reference), fmt.Sprintf("%T%#v", reference.Location, reference)
		if other, taken := byKey[key]; taken && other != text {
			t.Fatalf("one key for\n%s\n%s", text, other)
		}
		if other, known := byText[text]; known && other != key {
			t.Fatalf("two keys for %s", text)
		}
		byKey[key], byText[text] = text, key
	}
	if len(byKey) < 50_000 || len(byKey) > 190_000 {
		t.Errorf("%d references differ: the test compares too little", len(byKey))
	}
}

// TestRevisionKeysLeaveOutSelectorsOnly: A field that only selects a revision is in Key and, once the revision is
// known, no longer in RevisionKey. All others are in both.
//
// Red where RevisionKey leaves out a field of another type, the revision or the credentials.
func TestRevisionKeysLeaveOutSelectorsOnly(t *testing.T) {
	revision := fetch.Revision{Name: "r", Digest: "d"}
	for _, location := range []fetch.Location{git.Location{}, bucket{}, image.Location{}, archive{}, helmrepo.Location{}} {
		for i := range reflect.TypeOf(location).NumField() {
			changed := reflect.New(reflect.TypeOf(location)).Elem()
			changed.Field(i).SetString("x")
			one, other := fetch.Reference{Location: location}, fetch.Reference{Location: changed.Interface().(fetch.Location)}
			if kinds.Key(one) == kinds.Key(other) {
				t.Errorf("%T: field %d is not in its key", location, i)
			}
			_, selects := reflect.TypeAssert[fetch.Selector](changed.Field(i))
			if shared := kinds.RevisionKey(one, revision) == kinds.RevisionKey(other, revision); shared != selects {
				t.Errorf("%T: field %d selects a revision: %v; content is shared: %v", location, i, selects, shared)
			}
		}
	}
	images := func(name image.Name) [32]byte {
		return kinds.RevisionKey(fetch.Reference{Location: image.Location{Image: name}}, revision)
	}
	if images("r.example.com/a:v1") != images("r.example.com/a:v2@sha256:00") || images("r.example.com/a:v1") == images("r.example.com/b:v1") {
		t.Error("of an image, all but tag and digest tells contents apart")
	}
	reference := fetch.Reference{Location: git.Location{Remote: "x"}}
	known := map[[32]byte]bool{kinds.RevisionKey(reference, revision): true}
	known[kinds.RevisionKey(reference, fetch.Revision{Name: "r"})] = true
	known[kinds.RevisionKey(reference, fetch.Revision{Digest: "d"})] = true
	reference.Credentials.Username = "u"
	known[kinds.RevisionKey(reference, revision)] = true
	if len(known) != 4 {
		t.Error("revisions and credentials tell contents apart")
	}
}

// TestKeysStayAsTheyWere: A store finds its content by these keys after an upgrade.
func TestKeysStayAsTheyWere(t *testing.T) {
	full := fetch.Credentials{
		Username: "u", Password: "p", BearerToken: "t", PrivateKey: []byte("k"), KnownHosts: []byte("h"), DockerConfig: []byte("d"),
		CA: []byte("c"), Hosts: []string{"b.example.com", "a.example.com"},
	}
	for want, reference := range map[string]fetch.Reference{
		"f61e477b655555ba3bfd7e15a64979efe602c8240e8ad4e0f7940a5da03913c5": {
			Location: git.Location{Remote: "https://git.example.com/a.git", Branch: "main", Path: "addon"},
		},
		"9c496960147824de0fe5057b2b616a8486cdfa3df82b353452cee2671005ad6c": {
			Location: git.Location{Remote: "https://git.example.com/a.git", Semver: ">=1"}, Credentials: full,
		},
		"8e9306352423af675f125ceccc8ab0129695e75cf361412c944c820373e37ca0": {
			Location: image.Location{Image: "r.example.com/a:v1", Path: "addon"},
		},
		"fda285f1d83985c624a1441b37483142094d8793c853e8f5c52fb38678f7f152": {
			Location: image.Location{Image: "r.example.com/a:v1"}, Credentials: full,
		},
		"0feb16a4cc48c2e933df5c2c2d664c7e3ece86ee14294ccd437beab122479331": {
			Location: helmrepo.Location{URL: "oci://r.example.com/charts", Chart: "web", Version: "1.0.0"},
		},
		"5a89ca1b3a094f599a9cddba6105133bf24b667f3663dd40c25a53876b0cea80": {
			Location: helmrepo.Location{URL: "https://r.example.com/charts", Chart: "web", Version: "1.0.0"}, Credentials: full,
		},
	} {
		if got := fmt.Sprintf("%x", kinds.Key(reference)); got != want {
			t.Errorf("%#v: got %s, want %s", reference.Location, got, want)
		}
	}
	const identity = "a1696b19cfe55656bee087f6497009f3b0881ae90bf821a24274f89a9e361070"
	if got := fmt.Sprintf("%x", full.Identity()); got != identity {
		t.Errorf("credentials: got %s, want %s", got, identity)
	}
}

// numbered has a field that is no text.
type numbered struct {
	Port int
	fetch.Location
}

// TestKindsThatCannotBeDistinguishedAreNotServed fails without the checks of NewKinds.
func TestKindsThatCannotBeDistinguishedAreNotServed(t *testing.T) {
	for why, all := range map[string][]fetch.Served{
		"one name":          {fetch.Serve(careless[bucket]{name: "git"}), fetch.Serve(git.New(nil))},
		"one location":      {fetch.Serve(careless[bucket]{name: "a"}), fetch.Serve(careless[bucket]{name: "b"})},
		"fields of numbers": {fetch.Serve(careless[numbered]{name: "a"})},
	} {
		t.Run(why, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("they are served")
				}
			}()
			fetch.NewKinds(all...)
		})
	}
}

// TestSourcesOfCataloguesBecomeReferences fails when a kind does not copy a field of the catalogue's source, or
// copies one of another kind.
func TestSourcesOfCataloguesBecomeReferences(t *testing.T) {
	for want, source := range map[fetch.Location]v1.SourceKind{
		git.Location{Remote: "https://x", Branch: "main", Path: "p"}: &v1.GitSource{Remote: "https://x", Path: "p"},
		git.Location{Remote: "https://x", Branch: "b"}:               &v1.GitSource{Remote: "https://x", Ref: &v1.GitRef{Branch: "b"}},
		git.Location{Remote: "https://x", Tag: "t"}:                  &v1.GitSource{Remote: "https://x", Ref: &v1.GitRef{Tag: "t"}},
		git.Location{Remote: "https://x", Commit: "c"}:               &v1.GitSource{Remote: "https://x", Ref: &v1.GitRef{Commit: "c"}},
		git.Location{Remote: "https://x", Semver: "1.x"}:             &v1.GitSource{Remote: "https://x", Ref: &v1.GitRef{Semver: "1.x"}},
		image.Location{Image: "r/a:v1", Path: "p"}:                   &v1.ImageSource{Image: "r/a:v1", Path: "p"},
		helmrepo.Location{URL: "u", Chart: "c", Version: "v"}:        &v1.HelmSource{URL: "u", Chart: "c", Version: "v"},
	} {
		got, err := kinds.Reference(source, nil)
		if diff := cmp.Diff(fetch.Reference{Location: want}, got); err != nil || diff != "" {
			t.Errorf("%#v: %v (-want +got):\n%s", source, err, diff)
		}
	}
	both := &v1.Source{Git: &v1.GitSource{Remote: "https://x"}, Helm: &v1.HelmSource{URL: "u"}}
	for why, source := range map[string]v1.SourceKind{"none": nil, "two": both.Kind(), "a kind that is not served": &v1.HelmSource{}} {
		served := fetch.NewKinds(fetch.Serve(git.New(nil)), fetch.Serve(image.New(nil)))
		_, err := served.Reference(source, nil)
		if _, ok := errors.AsType[*fetch.NotServedError](err); !ok || !strings.HasSuffix(err.Error(), "use one of git, docker and helm") {
			t.Errorf("%s: got %v", why, err)
		}
	}
}

// TestKeysOfSecretsAreThoseOfTheKinds: A key that a kind names is distributed, kept and read, and each of two kinds
// that read one key reads it in its own way.
//
// Red where SecretKeys leaves out those of a kind, or credentials reads them for all kinds in one way.
func TestKeysOfSecretsAreThoseOfTheKinds(t *testing.T) {
	want := []string{
		"username", "password", "bearerToken", "token", "ssh-privatekey", "identity", ".dockerconfigjson", "ca.crt", "known_hosts",
	}
	if diff := cmp.Diff(want, kinds.SecretKeys().Names()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	own := []fetch.SecretKey{
		{Name: "accesskey", Read: func(into *fetch.Credentials, content []byte) { into.Username = string(content) }},
		{Name: "password", Read: func(into *fetch.Credentials, content []byte) { into.BearerToken = string(content) }},
		{Name: "known_hosts", Read: func(*fetch.Credentials, []byte) {}},
		{Name: "region", Public: true, Read: func(*fetch.Credentials, []byte) {}},
	}
	more := fetch.NewKinds(fetch.Serve(git.New(nil)), fetch.Serve(located{careless[bucket]{name: "bucket", keys: own}}))
	public := []string{}
	for _, key := range more.SecretKeys() {
		if key.Public {
			public = append(public, key.Name)
		}
	}
	secret := []string{
		"username", "password", "bearerToken", "token", "ssh-privatekey", "identity", "accesskey", "known_hosts",
	}
	if diff := cmp.Diff(append(secret, public...), more.SecretKeys().Names()); diff != "" {
		t.Errorf("what one kind calls secret is so for all (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"ca.crt", "region"}, public); diff != "" {
		t.Errorf("public keys (-want +got):\n%s", diff)
	}
	reference := &v1.LocalReference{Name: "x"}
	read := func(string) (*corev1.Secret, error) {
		return &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1.AnnotationHosts: " a.example.com,,b.example.com "}},
			Data: map[string][]byte{
				"username": []byte("user"), "password": []byte("p"), "bearerToken": []byte("b"), "token": {}, "accesskey": []byte("access"),
			},
		}, nil
	}
	found, err := more.Reference(&v1.HelmSource{SecretRef: reference}, read)
	wanted := fetch.Credentials{Username: "access", Password: "p", BearerToken: "p", Hosts: []string{"a.example.com", "b.example.com"}}
	if diff := cmp.Diff(wanted, found.Credentials); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for kind, want := range map[string]string{"ssh-privatekey": "kubernetes", "identity": "flux"} {
		data := map[string][]byte{"identity": []byte("flux"), kind: []byte(want)}
		found, err := kinds.Reference(&v1.GitSource{SecretRef: reference}, func(string) (*corev1.Secret, error) {
			return &corev1.Secret{Data: data}, nil
		})
		if err != nil || string(found.Credentials.PrivateKey) != want {
			t.Errorf("%s: got %q, %v", kind, found.Credentials.PrivateKey, err)
		}
	}
}

// located is a kind for the source type that catalogues call Helm.
type located struct{ careless[bucket] }

func (located) Locate(source v1.SourceKind) (bucket, bool) {
	_, ok := source.(*v1.HelmSource)
	return bucket{}, ok
}
