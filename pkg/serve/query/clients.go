package query

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// ClientAuthorities is the ConfigMap, in namespace kube-system, in which the API server publishes the authorities of its clients'
// certificates.
const ClientAuthorities = "extension-apiserver-authentication"

const (
	keyClientAuthorities = "client-ca-file"
	// mostChain bounds how many certificates of a client are verified.
	mostChain = 5
)

// Groups that the API server adds to users, as it does not for a SubjectAccessReview.
const (
	groupAuthenticated   = "system:authenticated"
	groupUnauthenticated = "system:unauthenticated"
)

// Clients verifies certificates of clients as the API server does: by the API server's authorities, with the common name as the user and
// the organizations as the groups. Unlike the API server, it requires the usage clientAuth.
type Clients struct {
	source      toolscache.ResourceEventHandlerRegistration
	authorities atomic.Pointer[x509.CertPool]
}

// Watch follows ConfigMap ClientAuthorities in a cache that has only this ConfigMap.
func (c *Clients) Watch(ctx context.Context, informers cache.Informers) error {
	informer, err := informers.GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
	if err == nil {
		c.source, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: c.put, UpdateFunc: func(_, now any) { c.put(now) }, DeleteFunc: func(any) { c.authorities.Store(nil) },
		})
	}
	if err != nil {
		return fmt.Errorf("watching ConfigMap %q: %w", ClientAuthorities, err)
	}
	return nil
}

func (c *Clients) put(object any) {
	pool := x509.NewCertPool() // an empty one trusts no certificate
	if held, isConfigMap := object.(*corev1.ConfigMap); isConfigMap {
		pool.AppendCertsFromPEM([]byte(held.Data[keyClientAuthorities]))
	}
	c.authorities.Store(pool)
}

// identify returns the user of a certificate, which comes first in its chain. Errors: *UnauthenticatedError, *UnavailableError.
func (c *Clients) identify(chain []*x509.Certificate) (*Identity, error) {
	if !c.source.HasSynced() {
		return nil, &UnavailableError{"the authorities of client certificates are being read", errNotRead}
	}
	roots, leaf := c.authorities.Load(), chain[0]
	if roots == nil || len(chain) > mostChain || leaf.Subject.CommonName == "" ||
		!slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth) {
		return nil, &UnauthenticatedError{}
	}
	between := x509.NewCertPool()
	for _, one := range chain[1:] {
		between.AddCert(one)
	}
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, KeyUsages: usages}); err != nil {
		return nil, &UnauthenticatedError{}
	}
	groups := leaf.Subject.Organization
	if !slices.Contains(groups, groupAuthenticated) && !slices.Contains(groups, groupUnauthenticated) {
		groups = append(slices.Clip(groups), groupAuthenticated)
	}
	return &Identity{
		token: sha256.Sum256(leaf.Raw), user: authenticationv1.UserInfo{Username: leaf.Subject.CommonName, Groups: groups},
	}, nil
}

// impersonates is the beginning of the headers by which kubectl's --as asks for the rights of another user.
const impersonates = "Impersonate-"

// identify returns the caller: the user of the token or, without one, of the client certificate, which is verified for each request, since
// it may expire during a connection. Errors: *UnauthenticatedError, *UnavailableError, *ParameterError.
func (s *Server) identify(ctx context.Context, request *http.Request) (*Identity, error) {
	for name := range request.Header {
		if strings.HasPrefix(name, impersonates) {
			return nil, &ParameterError{"header " + shown(name), "this endpoint does not support impersonation: leave out --as"}
		}
	}
	if hasToken := len(request.Header["Authorization"]) > 0; !hasToken && s.Clients != nil && request.TLS != nil &&
		len(request.TLS.PeerCertificates) > 0 {
		return s.Clients.identify(request.TLS.PeerCertificates)
	}
	token, err := bearer(request.Header)
	if err != nil {
		return nil, err
	}
	return s.Reviews.Identify(ctx, token)
}
