package certificate_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trellis-addons/trellis/pkg/clusters/access/certificate"
	"github.com/trellis-addons/trellis/test/signer"
)

const user = "system:addon:cluster-abc:abc:agent:7f3c"

var groups = []string{"system:addon:cluster-abc:abc:agent", "system:addon:agent"}

// asked is a key with its request.
type asked struct{ key, request, public []byte }

func ask(t testing.TB) asked {
	t.Helper()
	key, err := certificate.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	request, public, err := certificate.Request(key, user, groups)
	if err != nil {
		t.Fatal(err)
	}
	return asked{key, request, public}
}

func sign(t testing.TB, s *signer.Signer, request []byte, now time.Time) []byte {
	t.Helper()
	signed, err := s.Sign(request, time.Hour, now)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func TestARequestSaysUserGroupsAndKey(t *testing.T) {
	made := ask(t)
	block, rest := pem.Decode(made.request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(rest) > 0 {
		t.Fatalf("the request is no single block: %s", made.request)
	}
	read, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := read.CheckSignature(); err != nil {
		t.Error(err)
	}
	slices.Sort(read.Subject.Organization)
	if read.Subject.CommonName != user || !slices.Equal(read.Subject.Organization, slices.Sorted(slices.Values(groups))) ||
		len(read.Subject.Names) != 3 {
		t.Errorf("the request is for %s", read.Subject)
	}
	if !bytes.Equal(read.RawSubjectPublicKeyInfo, made.public) {
		t.Error("the public key is another than the request's")
	}
}

func TestARequestIsTheSameEachTime(t *testing.T) {
	made := ask(t)
	request, public, err := certificate.Request(made.key, user, groups)
	if err != nil || !bytes.Equal(request, made.request) || !bytes.Equal(public, made.public) {
		t.Errorf("a second request of the same key differs, error %v", err)
	}
	other := ask(t)
	if sha256.Sum256(other.public) == sha256.Sum256(made.public) || bytes.Equal(other.key, made.key) {
		t.Error("two keys are the same")
	}
}

func TestARequestNeedsAKeyAndAUser(t *testing.T) {
	if _, _, err := certificate.Request(ask(t).key, "", groups); err == nil {
		t.Error("a request without a user was made")
	}
	for why, key := range badKeys(t) {
		if _, _, err := certificate.Request(key, user, groups); err == nil {
			t.Errorf("%s: a request was made", why)
		} else if len(key) > 0 && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error has the key: %v", why, err)
		}
	}
}

func badKeys(t testing.TB) map[string][]byte {
	t.Helper()
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(other)
	if err != nil {
		t.Fatal(err)
	}
	good, _ := pem.Decode(ask(t).key)
	return map[string][]byte{
		"nothing":                nil,
		"no PEM":                 []byte("canary"),
		"nothing in the block":   pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("canary")}),
		"a block of another use": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: good.Bytes}),
		"a key of another kind":  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
	}
}

func TestACertificateThatWasAskedForIsTaken(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	s, made := signer.New(t, "signer.example.com/agents"), ask(t)
	signed := sign(t, s, made.request, now)
	reversed := slices.Clone(groups)
	slices.Reverse(reversed)
	for _, test := range []struct {
		why    string
		signed []byte
		groups []string
		now    time.Time
	}{
		{"as it was signed", signed, groups, now},
		{"groups have no order", signed, reversed, now},
		{"the signer's authority is behind it", slices.Concat(signed, s.Authority()), groups, now},
		{"seven authorities are behind it", slices.Concat(signed, bytes.Repeat(s.Authority(), 7)), groups, now},
		{"white space is around blocks", slices.Concat([]byte("\n\r\n "), signed, []byte("\n\n"), s.Authority(), []byte(" \n")), groups, now},
		{"lines end as elsewhere", bytes.ReplaceAll(signed, []byte("\n"), []byte("\r\n")), groups, now},
		{"the signer's clock is five minutes ahead", signed, groups, now.Add(-10 * time.Minute)},
		{"a second before its end", signed, groups, now.Add(time.Hour - time.Second)},
	} {
		issued, expires, err := certificate.Check(test.signed, made.key, user, test.groups, test.now)
		if err != nil || !issued.Equal(now.Add(-5*time.Minute)) || !expires.Equal(now.Add(time.Hour)) {
			t.Errorf("%s: valid from %s to %s, error %v", test.why, issued, expires, err)
		}
	}
}

// refusals say for each lie of a signer why it is refused.
var refusals = map[signer.Lie]string{
	signer.OtherKey:       "the certificate is for a different key than the request",
	signer.RSAKey:         "the certificate is for a different key than the request",
	signer.OtherUser:      "the certificate does not have the requested subject: user \"" + user + "\" and its groups",
	signer.MoreGroups:     "the requested subject",
	signer.FewerGroups:    "the requested subject",
	signer.MoreSubject:    "the requested subject",
	signer.CABit:          "the certificate is a CA certificate, which may sign others",
	signer.SigningUsage:   "the certificate is a CA certificate, which may sign others",
	signer.NoSignature:    "the certificate has key usages without digital signature",
	signer.ServerUsage:    "the certificate may be used by a server",
	signer.AnyUsage:       "the certificate allows every use",
	signer.NoClientUsage:  "the certificate may not be used by a client",
	signer.Expired:        "the certificate expired at 2026-",
	signer.NotYetValid:    "the certificate is not valid before 2026-",
	signer.EndsFirst:      "the certificate expires before it becomes valid",
	signer.AuthorityFirst: "the certificate is for a different key than the request",
	signer.OtherBehind:    "the certificate is followed by a certificate that is not a CA certificate",
	signer.ManyBehind:     "the certificate is followed by more than 7 CA certificates",
	signer.TrailingText:   "the certificate is next to data that is not a PEM certificate",
	signer.LeadingText:    "the certificate is next to data that is not a PEM certificate",
	signer.Huge:           "bytes, more than 65536",
}

// AG12: Whatever a signer makes of a request, only what was asked for is taken.
func TestALyingSignerIsRefused(t *testing.T) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	made := ask(t)
	for _, lie := range signer.Lies() {
		s := signer.New(t, "signer.example.com/agents")
		s.Lie(lie)
		signed := sign(t, s, made.request, now)
		refuses(t, string(lie), answer{signed, made.key, now}, refusals[lie])
		s.Lie()
		if _, _, err := certificate.Check(sign(t, s, made.request, now), made.key, user, groups, now); err != nil {
			t.Errorf("%s: the same signer without its lie: %v", lie, err)
		}
	}
}

// answer is what a signer gave for a key, and when it is looked at.
type answer struct {
	signed, key []byte
	now         time.Time
}

// refuses fails the test unless the error is a *RefusedError with these words, and without the key.
func refuses(t *testing.T, why string, given answer, says string) {
	t.Helper()
	issued, expires, err := certificate.Check(given.signed, given.key, user, groups, given.now)
	var refused *certificate.RefusedError
	if !errors.As(err, &refused) || says == "" || !strings.Contains(err.Error(), says) || !issued.IsZero() || !expires.IsZero() {
		t.Errorf("%s: from %s to %s, error %v; want %q", why, issued, expires, err, says)
		return
	}
	if len(err.Error()) > 200 || strings.Contains(err.Error(), string(bytes.Split(given.key, []byte("\n"))[1])) {
		t.Errorf("%s: the error has too much: %v", why, err)
	}
}

// AG12: Bytes that are no certificates are refused, also where a certificate that would do is among them.
func TestWhatIsNoCertificateIsRefused(t *testing.T) {
	now := time.Now()
	s, made := signer.New(t, "signer.example.com/agents"), ask(t)
	signed := sign(t, s, made.request, now)
	block, _ := pem.Decode(signed)
	block.Headers = map[string]string{"Proc-Type": "4,ENCRYPTED"}
	cut := bytes.Replace(signed, []byte("-----END CERTIFICATE-----\n"), nil, 1)
	for _, test := range []struct {
		why    string
		signed []byte
		says   string
	}{
		{"nothing", nil, "is empty"},
		{"white space", []byte(" \n"), "is empty"},
		{"text", []byte("a certificate"), "not a PEM certificate"},
		{"DER", block.Bytes, "not a PEM certificate"},
		{"a key before it", slices.Concat(made.key, signed), "a PEM block that is not a certificate"},
		{"a key behind it", slices.Concat(signed, made.key), "a PEM block that is not a certificate"},
		{"headers in the block", pem.EncodeToMemory(block), "a PEM block that is not a certificate"},
		{"a block without end alone", cut, "not a PEM certificate"},
		{"a block without end before it", slices.Concat(cut, signed), "not a PEM certificate"},
		{"a block without end behind it", slices.Concat(signed, cut), "not a PEM certificate"},
		{"a block with other bytes", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("canary")}), "can't be read"},
		{"one of two can't be read", slices.Concat(signed, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE"})), "can't be read"},
		{"1 MiB", bytes.Repeat([]byte("\n"), 1<<20), "1048576 bytes, more than 65536"},
		{"the request itself", made.request, "a PEM block that is not a certificate"},
	} {
		refuses(t, test.why, answer{test.signed, made.key, now}, test.says)
	}
}

// AG12: Times are held against the clock that is given, to the second.
func TestTimesAreThoseOfTheClock(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	s, made := signer.New(t, "signer.example.com/agents"), ask(t)
	signed := sign(t, s, made.request, now)
	refuses(t, "at its end", answer{signed, made.key, now.Add(time.Hour)},
		"expired at "+now.Add(time.Hour).UTC().Format(time.RFC3339))
	refuses(t, "five minutes and a second before its beginning", answer{signed, made.key, now.Add(-10*time.Minute - time.Second)},
		"is not valid before")
}

// AG12: The subject counts with every attribute, also where what libraries show of it is what was asked for.
func TestASubjectIsComparedWhole(t *testing.T) {
	now := time.Now()
	made := ask(t)
	block, _ := pem.Decode(made.key)
	read, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	key := read.(*ecdsa.PrivateKey)
	attribute := func(value any, last ...int) pkix.AttributeTypeAndValue {
		return pkix.AttributeTypeAndValue{Type: append(asn1.ObjectIdentifier{2, 5, 4}, last...), Value: value}
	}
	name, first, second := attribute(user, 3), attribute(groups[0], 10), attribute(groups[1], 10)
	for _, test := range []struct {
		why     string
		subject pkix.RDNSequence
		says    string
	}{
		{"an attribute each", pkix.RDNSequence{{name}, {first}, {second}}, ""},
		{"the user last", pkix.RDNSequence{{first, second}, {name}}, ""},
		{"all in one", pkix.RDNSequence{{first, name, second}}, ""},
		{"two users, ours last", pkix.RDNSequence{{attribute("system:admin", 3)}, {name}, {first, second}}, "the requested subject"},
		{"two users, ours first", pkix.RDNSequence{{name}, {attribute("system:admin", 3)}, {first, second}}, "the requested subject"},
		{"no user", pkix.RDNSequence{{first, second}}, "the requested subject"},
		{"a group twice", pkix.RDNSequence{{name}, {first, second}, {second}}, "the requested subject"},
		{"a group less", pkix.RDNSequence{{name}, {first}}, "the requested subject"},
		{"a group that is a number", pkix.RDNSequence{{name}, {first, second, attribute(1, 10)}}, "can't be read"},
		{"an identity that API servers read", pkix.RDNSequence{{name}, {first, second}, {pkix.AttributeTypeAndValue{
			Type: asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 57683, 2}, Value: "uid"}}}, "the requested subject"},
		{"a mail address", pkix.RDNSequence{{name}, {first, second}, {pkix.AttributeTypeAndValue{
			Type: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}, Value: "a@example.com"}}}, "the requested subject"},
		{"no user", nil, "the requested subject"},
	} {
		raw, err := asn1.Marshal(test.subject)
		if err != nil {
			t.Fatal(err)
		}
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), RawSubject: raw, NotBefore: now.Add(-time.Minute), NotAfter: now.Add(time.Hour),
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			t.Fatal(err)
		}
		signed := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
		if test.says != "" {
			refuses(t, test.why, answer{signed, made.key, now}, test.says)
		} else if _, _, err := certificate.Check(signed, made.key, user, groups, now); err != nil {
			t.Errorf("%s: %v", test.why, err)
		}
	}
}

// A subject counts also where nobody was asked for: no caller gets around it by an empty user.
func TestAnEmptyUserIsNobodys(t *testing.T) {
	now := time.Now()
	s, made := signer.New(t, "signer.example.com/agents"), ask(t)
	if _, _, err := certificate.Check(sign(t, s, made.request, now), made.key, "", nil, now); err == nil {
		t.Error("a certificate of some user was taken where none was asked for")
	}
}

// An error of our own key is no refusal of a certificate, and has nothing of the key.
func TestAKeyThatCantBeReadIsNoRefusal(t *testing.T) {
	now := time.Now()
	s, made := signer.New(t, "signer.example.com/agents"), ask(t)
	signed := sign(t, s, made.request, now)
	for why, key := range badKeys(t) {
		_, _, err := certificate.Check(signed, key, user, groups, now)
		var refused *certificate.RefusedError
		if err == nil || errors.As(err, &refused) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", why, err)
		}
	}
}

// keyOf is the same key in every process: what was signed in one is tried in others.
func keyOf(t testing.TB, number byte) []byte {
	t.Helper()
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), bytes.Repeat([]byte{number}, 32))
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// FuzzCheck holds that nothing makes Check panic, and that whatever it takes begins with a certificate of the key, the user and the
// groups, for clients only. It tries bytes as PEM, and as what is in a block.
func FuzzCheck(f *testing.F) {
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	s, key, otherKey := signer.New(f, "signer.example.com/agents"), keyOf(f, 1), keyOf(f, 2)
	request, public, err := certificate.Request(key, user, groups)
	if err != nil {
		f.Fatal(err)
	}
	seed := func(signed []byte) {
		f.Add(signed)
		if block, _ := pem.Decode(signed); block != nil {
			f.Add(block.Bytes)
		}
	}
	seed(request)
	seed(slices.Concat(sign(f, s, request, now), s.Authority()))
	for _, lie := range signer.Lies() {
		if lie == signer.Huge {
			continue // its size alone is what refuses it
		}
		s.Lie(lie)
		seed(sign(f, s, request, now))
	}
	holds := func(t *testing.T, signed []byte) {
		if _, _, err := certificate.Check(signed, otherKey, user, groups, now); err == nil {
			t.Fatal("a certificate of another key was taken")
		}
		_, expires, err := certificate.Check(signed, key, user, groups, now)
		if err != nil {
			return
		}
		block, _ := pem.Decode(signed)
		leaf, err := x509.ParseCertificate(block.Bytes)
		if err != nil || !bytes.Equal(leaf.RawSubjectPublicKeyInfo, public) || leaf.Subject.CommonName != user || leaf.IsCA ||
			len(leaf.Subject.Organization) != len(groups) || !expires.After(now) || !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth) {
			t.Fatalf("taken, error %v", err)
		}
	}
	f.Fuzz(func(t *testing.T, tried []byte) {
		holds(t, tried)
		holds(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tried}))
	})
}
