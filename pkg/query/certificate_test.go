package query_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/query"
)

func (w *world) own(clock *clocktesting.FakePassiveClock, hosts ...string) *query.OwnCertificate {
	key := client.ObjectKey{Namespace: w.catalogue, Name: "own"}
	own := query.NewOwnCertificate(w.seed, key, hosts, logr.Discard())
	own.SetClock(clock)
	return own
}

// loaded gives what is served after a look at the Secret.
func loaded(t *testing.T, own *query.OwnCertificate) *tls.Certificate {
	t.Helper()
	if err := own.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	served, err := own.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return served
}

func (w *world) ownSecret() *corev1.Secret {
	w.t.Helper()
	secret := &corev1.Secret{}
	if err := w.seed.Get(w.t.Context(), client.ObjectKey{Namespace: w.catalogue, Name: "own"}, secret); err != nil {
		w.t.Fatal(err)
	}
	return secret
}

func same(a, b *tls.Certificate) bool { return bytes.Equal(a.Leaf.Raw, b.Leaf.Raw) }

func TestReplicasShareTheirCertificate(t *testing.T) {
	w := newWorld(t)
	clock := clocktesting.NewFakePassiveClock(time.Now())
	first, second := w.own(clock, "a.example", "10.0.0.1"), w.own(clock, "a.example")
	if _, err := first.GetCertificate(nil); err == nil {
		t.Error("there is a certificate before the first look")
	}
	served := loaded(t, first)
	if !same(served, loaded(t, second)) {
		t.Error("two replicas serve two certificates")
	}
	secret := w.ownSecret()
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
	if !bytes.Equal(secret.Data["ca.crt"], w.ownSecret().Data["ca.crt"]) {
		t.Error("the authority changed, so that nobody trusts the endpoint any more")
	}
	if same(renewed, loaded(t, w.own(clock, "b.example"))) {
		t.Error("another host name is served the same certificate")
	}
	if err := w.seed.Delete(t.Context(), w.ownSecret()); err != nil {
		t.Fatal(err)
	}
	if same(renewed, loaded(t, first)) {
		t.Error("a deleted Secret does not come back")
	}
}

func TestForeignSecretsAreLeftAlone(t *testing.T) {
	w := newWorld(t)
	clock := clocktesting.NewFakePassiveClock(time.Now())
	loaded(t, w.own(clock, "a.example"))
	foreign := w.ownSecret()
	if err := w.seed.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	foreign.ObjectMeta = metav1.ObjectMeta{Namespace: foreign.Namespace, Name: foreign.Name}
	w.create(foreign)
	served := loaded(t, w.own(clock, "other.example"))
	pair, err := tls.X509KeyPair(foreign.Data[corev1.TLSCertKey], foreign.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		t.Fatal(err)
	}
	if !same(served, &pair) {
		t.Error("a certificate of somebody else's is not served as it is")
	}
	if err := w.seed.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	w.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: foreign.Namespace, Name: foreign.Name}, Data: map[string][]byte{"password": []byte("mine")},
	})
	if err := w.own(clock, "a.example").Load(t.Context()); err == nil {
		t.Error("a Secret that holds no certificate is no error")
	}
	if got := w.ownSecret(); string(got.Data["password"]) != "mine" || len(got.Data) != 1 {
		t.Errorf("somebody else's Secret was written: %v", got.Data)
	}
}
