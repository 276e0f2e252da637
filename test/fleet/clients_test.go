package fleet

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/pkg/clusters/access/certificate"
	"github.com/trellis-addons/trellis/test/binaries"
)

// TestClients checks how API servers authenticate clients: by tokens of service accounts everywhere, by certificates
// where a cluster has them.
func TestClients(t *testing.T) {
	f := ForTest(t,
		ClusterOptions{Name: "bare"},
		ClusterOptions{Name: "certified", Certificates: true},
		ClusterOptions{Name: "newer", Release: binaries.Newer, Certificates: true})

	for _, name := range []string{"certified", "newer"} {
		t.Run("an approved request becomes a certificate of "+name, func(t *testing.T) { certificateIsKnown(t, f, name) })
	}
	for _, name := range []string{"bare", "certified", "newer"} {
		t.Run("a token of a service account is known as long as its Secret, by "+name, func(t *testing.T) {
			t.Parallel() // API servers cache a token for ten seconds
			tokenIsKnown(t, f, name)
		})
	}
}

// certificateIsKnown gets a certificate signed as the product does. Its common name is longer than the 64 characters
// of RFC 5280, which neither the signer nor the API server enforces.
func certificateIsKnown(t *testing.T, f *Fleet, name string) {
	user := "system:addon:cluster-abcdefghij:abcdefghij:a-policy-agent-with-a-long-name:0123456789abcdef"
	groups := []string{"system:addon:cluster-abcdefghij:abcdefghij:a-policy-agent-with-a-long-name", "system:addon:agent"}
	client := clientOf(t, f, name)
	key, err := certificate.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	asked, _, err := certificate.Request(key, user, groups)
	if err != nil {
		t.Fatal(err)
	}
	request, err := client.CertificatesV1().CertificateSigningRequests().Create(t.Context(), &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: asked, SignerName: certificatesv1.KubeAPIServerClientSignerName, ExpirationSeconds: new(int32(3600)),
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
	}}
	_, err = client.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), request.Name, request, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the certificate", func(ctx context.Context) (bool, error) {
		request, err = client.CertificatesV1().CertificateSigningRequests().Get(ctx, request.Name, metav1.GetOptions{})
		return err == nil && len(request.Status.Certificate) > 0, err
	})
	issued, expires, err := certificate.Check(request.Status.Certificate, key, user, groups, time.Now())
	if err != nil || expires.Sub(issued) > 65*time.Minute {
		t.Fatalf("signed from %s to %s, error %v", issued, expires, err)
	}
	config := rest.AnonymousClientConfig(f.Cluster(name).Config)
	config.CertData, config.KeyData = request.Status.Certificate, key
	is(t, config, user, append(groups, "system:authenticated")...)
	for _, other := range []string{"bare", "certified", "newer"} {
		if config.Host = f.Cluster(other).Config.Host; other == name {
			continue
		}
		if _, err := whoIs(t.Context(), config); !apierrors.IsUnauthorized(err) {
			t.Errorf("cluster %s takes a certificate of %s, error %v", other, name, err)
		}
	}
}

func tokenIsKnown(t *testing.T, f *Fleet, name string) {
	client := clientOf(t, f, name).CoreV1()
	account, err := client.ServiceAccounts("default").Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := client.Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	token, err := client.ServiceAccounts("default").CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{
			ExpirationSeconds: new(int64(7200)),
			BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: kept.Name, UID: kept.UID},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if life := time.Until(token.Status.ExpirationTimestamp.Time); life < 119*time.Minute || life > 2*time.Hour {
		t.Errorf("the token lives for %s, want 2h", life)
	}
	config := rest.AnonymousClientConfig(f.Cluster(name).Config)
	config.BearerToken = token.Status.Token
	is(t, config, "system:serviceaccount:default:agent",
		"system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated")
	if err := client.Secrets("default").Delete(t.Context(), kept.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the token to be worth nothing", func(ctx context.Context) (bool, error) {
		_, err := whoIs(ctx, config)
		return apierrors.IsUnauthorized(err), err
	})
}

// is fails the test unless the API server authenticates the config as that user.
func is(t *testing.T, config *rest.Config, user string, groups ...string) {
	t.Helper()
	found, err := whoIs(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, group := range groups {
		missing[group] = true
	}
	for _, group := range found.Groups {
		delete(missing, group)
	}
	if found.Username != user || len(missing) > 0 || len(found.Groups) != len(groups) {
		t.Errorf("the API server knows user %q in groups %q, want %q in %q", found.Username, found.Groups, user, groups)
	}
}

func whoIs(ctx context.Context, config *rest.Config) (authenticationv1.UserInfo, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return authenticationv1.UserInfo{}, fmt.Errorf("making a client: %w", err)
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	if review.Status.UserInfo.Username == "" {
		return authenticationv1.UserInfo{}, errors.New("the API server names nobody")
	}
	return review.Status.UserInfo, nil
}
