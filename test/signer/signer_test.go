package signer_test

import (
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/pkg/clusters/access/certificate"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/signer"
)

func TestMain(m *testing.M) { fleet.Main(m, fleet.ClusterOptions{Name: "seed"}) }

const name, user = "signer.example.com/agents", "system:addon:cluster-abc:abc:agent:7f3c"

var groups = []string{"system:addon:cluster-abc:abc:agent", "system:addon:agent"}

type seed struct {
	client.Client
	approvals kubernetes.Interface
}

func newSeed(t *testing.T) seed {
	t.Helper()
	config := fleet.Shared().Cluster("seed").Config
	c, err := client.New(config, client.Options{})
	expect.NoError(t, err)
	approvals, err := kubernetes.NewForConfig(config)
	expect.NoError(t, err)
	return seed{c, approvals}
}

// ask makes a request, and gives its key.
func (s seed) ask(t *testing.T, signerName string) (*certificatesv1.CertificateSigningRequest, []byte) {
	t.Helper()
	key, asked := newRequest(t)
	request := &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "agent-"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: asked, SignerName: signerName, ExpirationSeconds: new(int32(1200)),
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
	expect.Create(t, s, request)
	return request, key
}

func newRequest(t *testing.T) (key, request []byte) {
	t.Helper()
	key, err := certificate.NewKey()
	expect.NoError(t, err)
	request, _, err = certificate.Request(key, user, groups)
	expect.NoError(t, err)
	return key, request
}

func (s seed) decide(t *testing.T, request *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) {
	t.Helper()
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: kind, Status: corev1.ConditionTrue, Reason: "Test"}}
	_, err := s.approvals.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), request.Name, request, metav1.UpdateOptions{})
	expect.NoError(t, err)
}

// signed waits for the certificate.
func (s seed) signed(t *testing.T, request *certificatesv1.CertificateSigningRequest) []byte {
	t.Helper()
	return expect.Object(t, s, request, func(request *certificatesv1.CertificateSigningRequest) error {
		if len(request.Status.Certificate) == 0 {
			return fmt.Errorf("there is no certificate; conditions %v", request.Status.Conditions)
		}
		return nil
	}).Status.Certificate
}

func TestAnApprovedRequestIsSigned(t *testing.T) {
	s, honest := newSeed(t), signer.New(t, name)
	before, beforeKey := s.ask(t, name)
	s.decide(t, before, certificatesv1.CertificateApproved)
	honest.Start(t, fleet.Shared().Cluster("seed").Config)
	after, afterKey := s.ask(t, name)
	s.decide(t, after, certificatesv1.CertificateApproved)
	for why, one := range map[string]struct {
		request *certificatesv1.CertificateSigningRequest
		key     []byte
	}{"approved before it ran": {before, beforeKey}, "approved since": {after, afterKey}} {
		issued, expires, err := certificate.Check(s.signed(t, one.request), one.key, user, groups, time.Now())
		if err != nil || expires.Sub(issued).Round(time.Minute) != 25*time.Minute {
			t.Errorf("%s: valid from %s to %s, error %v; want 20 minutes after signing", why, issued, expires, err)
		}
	}
}

// What is signed after them shows that the signer has seen the others.
func TestOthersRequestsAreLeftAlone(t *testing.T) {
	s, honest := newSeed(t), signer.New(t, name)
	honest.Start(t, fleet.Shared().Cluster("seed").Config)
	pending, _ := s.ask(t, name)
	denied, _ := s.ask(t, name)
	s.decide(t, denied, certificatesv1.CertificateDenied)
	foreign, _ := s.ask(t, "signer.example.com/others")
	s.decide(t, foreign, certificatesv1.CertificateApproved)
	last, _ := s.ask(t, name)
	s.decide(t, last, certificatesv1.CertificateApproved)
	s.signed(t, last)
	for why, request := range map[string]*certificatesv1.CertificateSigningRequest{
		"not approved": pending, "denied": denied, "of another signer": foreign,
	} {
		expect.Read(t, s, request)
		if len(request.Status.Certificate) > 0 {
			t.Errorf("a request that is %s was signed", why)
		}
	}
}

func TestAStoppedSignerSignsNothing(t *testing.T) {
	s, honest := newSeed(t), signer.New(t, name)
	honest.Start(t, fleet.Shared().Cluster("seed").Config)()
	request, _ := s.ask(t, name)
	s.decide(t, request, certificatesv1.CertificateApproved)
	signer.New(t, "signer.example.com/others").Start(t, fleet.Shared().Cluster("seed").Config)
	witness, _ := s.ask(t, "signer.example.com/others")
	s.decide(t, witness, certificatesv1.CertificateApproved)
	s.signed(t, witness)
	expect.Read(t, s, request)
	if len(request.Status.Certificate) > 0 {
		t.Error("it was signed")
	}
}

// AG12: An API server takes every lie into the status of a request, so whoever reads it is to look.
func TestEveryLieReachesTheRequest(t *testing.T) {
	s, liar := newSeed(t), signer.New(t, name)
	liar.Start(t, fleet.Shared().Cluster("seed").Config)
	for _, lie := range signer.Lies() {
		liar.Lie(lie)
		request, key := s.ask(t, name)
		s.decide(t, request, certificatesv1.CertificateApproved)
		signed := s.signed(t, request)
		var refused *certificate.RefusedError
		if _, _, err := certificate.Check(signed, key, user, groups, time.Now()); !errors.As(err, &refused) {
			t.Errorf("%s: %v", lie, err)
		}
	}
	liar.Lie()
	request, key := s.ask(t, name)
	s.decide(t, request, certificatesv1.CertificateApproved)
	if _, _, err := certificate.Check(s.signed(t, request), key, user, groups, time.Now()); err != nil {
		t.Errorf("honest again: %v", err)
	}
}

func TestAnOutageIsWaitedOut(t *testing.T) {
	cluster := fleet.ForTest(t, fleet.ClusterOptions{Name: "ailing"}).Cluster("ailing")
	c, err := client.New(cluster.Config, client.Options{})
	expect.NoError(t, err)
	approvals, err := kubernetes.NewForConfig(cluster.Config)
	expect.NoError(t, err)
	s := seed{c, approvals}
	signer.New(t, name).Start(t, cluster.Config)
	first, _ := s.ask(t, name)
	s.decide(t, first, certificatesv1.CertificateApproved)
	s.signed(t, first)
	cluster.StopServer()
	expect.NoError(t, cluster.StartServer(t.Context()))
	second, _ := s.ask(t, name)
	s.decide(t, second, certificatesv1.CertificateApproved)
	s.signed(t, second)
}

func TestWhatIsNoRequestIsNotSigned(t *testing.T) {
	s, now := signer.New(t, name), time.Now()
	_, request := newRequest(t)
	for _, test := range []struct {
		why, says string
		request   []byte
	}{
		{"no PEM", "not in PEM", []byte("request")},
		{"no request", "reading the request", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("request")})},
		{"a signature of another key", "checking the request", broken(request)},
	} {
		if _, err := s.Sign(test.request, time.Hour, now); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.why, err)
		}
	}
}

// broken is the request with a signature that is not its key's.
func broken(request []byte) []byte {
	block, _ := pem.Decode(request)
	block.Bytes[len(block.Bytes)-1] ^= 1
	return pem.EncodeToMemory(block)
}

func TestASignerThatFailsSaysSo(t *testing.T) {
	s, failing := newSeed(t), signer.New(t, name)
	failing.Fail()
	failing.Start(t, fleet.Shared().Cluster("seed").Config)
	request, _ := s.ask(t, name)
	s.decide(t, request, certificatesv1.CertificateApproved)
	expect.Object(t, s, request, func(request *certificatesv1.CertificateSigningRequest) error {
		for _, condition := range request.Status.Conditions {
			if condition.Type == certificatesv1.CertificateFailed && len(request.Status.Certificate) == 0 {
				return nil
			}
		}
		return fmt.Errorf("its conditions are %v", request.Status.Conditions)
	})
	failing.Lie()
	next, _ := s.ask(t, name)
	s.decide(t, next, certificatesv1.CertificateApproved)
	s.signed(t, next)
	if err := s.Get(t.Context(), client.ObjectKeyFromObject(request), request); err != nil || len(request.Status.Certificate) > 0 {
		t.Errorf("what has failed was signed after all, error %v", err)
	}
}
