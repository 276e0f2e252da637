package certificate_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/serve/certificate"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
)

var ownSecret = client.ObjectKey{Namespace: place, Name: "own"}

// own keeps a certificate as the query endpoint does.
func own(c client.Client, clock *testingclock.FakeClock, hosts ...string) *certificate.Rotator {
	made := certificate.New(certificate.Options{
		Name: "trellis-query", Secret: ownSecret, Owner: "query-endpoint", Hosts: hosts, LastingAuthority: true, Clock: clock,
	})
	made.Use(c, c)
	return made
}

// loaded gives what is served after a look at the Secret.
func loaded(t *testing.T, own *certificate.Rotator) *tls.Certificate {
	t.Helper()
	expect.NoError(t, own.Load(t.Context()))
	served, err := own.GetCertificate(nil)
	expect.NoError(t, err)
	return served
}

func readOwn(t *testing.T, c client.Client) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	expect.Get(t, c, ownSecret, secret)
	return secret
}

// without deletes the Secret, now and after the test.
func without(t *testing.T, c client.Client) {
	t.Helper()
	remove := func(ctx context.Context) {
		held := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ownSecret.Namespace, Name: ownSecret.Name}}
		expect.NoError(t, client.IgnoreNotFound(c.Delete(ctx, held)))
	}
	remove(t.Context())
	t.Cleanup(func() { remove(context.Background()) })
}

func same(a, b *tls.Certificate) bool { return bytes.Equal(a.Leaf.Raw, b.Leaf.Raw) }

func TestReplicasShareTheirCertificate(t *testing.T) {
	c := connect(t)
	without(t, c)
	clock := testingclock.NewFakeClock(time.Now())
	first, second := own(c, clock, "a.example", "10.0.0.1"), own(c, clock, "a.example")
	if _, err := first.GetCertificate(nil); err == nil {
		t.Error("there is a certificate before the first look")
	}
	served := loaded(t, first)
	if !same(served, loaded(t, second)) {
		t.Error("two replicas serve two certificates")
	}
	secret := readOwn(t, c)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(secret.Data["ca.crt"])
	for _, host := range []string{"a.example", "10.0.0.1"} {
		if _, err := served.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: host}); err != nil {
			t.Errorf("whoever trusts ca.crt refuses %s: %v", host, err)
		}
	}
	if secret.Type != corev1.SecretTypeTLS {
		t.Errorf("the Secret has type %q", secret.Type)
	}

	clock.SetTime(served.Leaf.NotAfter.Add(-29 * 24 * time.Hour))
	renewed := loaded(t, first)
	if same(served, renewed) {
		t.Error("it is not renewed before its end")
	}
	if !same(renewed, loaded(t, second)) {
		t.Error("the other replica does not follow")
	}
	if !bytes.Equal(secret.Data["ca.crt"], readOwn(t, c).Data["ca.crt"]) {
		t.Error("the authority changed, so that nobody trusts the endpoint any more")
	}
	if same(renewed, loaded(t, own(c, clock, "b.example"))) {
		t.Error("another host name is served the same certificate")
	}
	expect.Delete(t, c, readOwn(t, c))
	if same(renewed, loaded(t, first)) {
		t.Error("a deleted Secret does not come back")
	}
}

func TestForeignSecretsAreLeftAlone(t *testing.T) {
	c := connect(t)
	without(t, c)
	clock := testingclock.NewFakeClock(time.Now())
	loaded(t, own(c, clock, "a.example"))
	foreign := readOwn(t, c)
	expect.Delete(t, c, foreign)
	foreign.ObjectMeta = metav1.ObjectMeta{Namespace: foreign.Namespace, Name: foreign.Name}
	expect.Create(t, c, foreign)
	served := loaded(t, own(c, clock, "other.example"))
	pair, err := tls.X509KeyPair(foreign.Data[corev1.TLSCertKey], foreign.Data[corev1.TLSPrivateKeyKey])
	expect.NoError(t, err)
	if !same(served, &pair) {
		t.Error("a certificate of somebody else's is not served as it is")
	}
	expect.Delete(t, c, foreign)
	expect.Create(t, c, given.Secret(foreign.Namespace, foreign.Name, map[string][]byte{"password": []byte("mine")}))
	if err := own(c, clock, "a.example").Load(t.Context()); err == nil {
		t.Error("a Secret that holds no certificate is no error")
	}
	if got := readOwn(t, c); string(got.Data["password"]) != "mine" || len(got.Data) != 1 {
		t.Errorf("somebody else's Secret was written: %v", got.Data)
	}
}
