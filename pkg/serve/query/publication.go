package query

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/serve/certificate"
)

// publishEvery is the time between two reads of a certificate in a folder.
const publishEvery = time.Minute

// Publication writes the data of ConfigMap addon-query in namespace kube-public: how clients reach the endpoint, and which authority they
// trust. The chart creates the ConfigMap, so that Helm removes it. Every replica writes the same data.
type Publication struct {
	// Writer bypasses caches.
	Writer client.Writer
	// URL is the endpoint's outside of the cluster; empty: there is none.
	URL string
	// Namespace, Service and Port are those of the endpoint's Service.
	Namespace, Service, Port string
	// Folder has tls.crt, and ca.crt if there is one; empty: a certificate.Rotator calls Publish.
	Folder string
	// Logger gets errors: they don't keep the endpoint from serving.
	Logger logr.Logger
}

var _ certificate.Publisher = (*Publication)(nil)

// NeedLeaderElection is false: every replica serves the certificate.
func (p *Publication) NeedLeaderElection() bool { return false }

// Start publishes the certificate of the folder every minute until the context ends.
func (p *Publication) Start(ctx context.Context) error {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		serving, err := os.ReadFile(filepath.Join(p.Folder, corev1.TLSCertKey))
		if err != nil {
			p.Logger.Error(err, "the query endpoint's certificate can't be published")
			return
		}
		authorities, _ := os.ReadFile(filepath.Join(p.Folder, certificate.KeyAuthorities)) // it may be missing
		_ = p.Publish(ctx, map[string][]byte{corev1.TLSCertKey: serving, certificate.KeyAuthorities: authorities}, time.Time{})
	}, publishEvery)
	return nil
}

// Complete adds nothing to the certificate's Secret.
func (p *Publication) Complete(map[string][]byte) bool { return false }

// Publish writes the ConfigMap. It logs errors and returns nil, since clients may know the endpoint by other means.
func (p *Publication) Publish(ctx context.Context, data map[string][]byte, _ time.Time) error {
	patch, err := p.patch(data)
	if err == nil {
		held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: v1.ConfigMapQuery}}
		err = p.Writer.Patch(ctx, held, patch)
	}
	if err != nil && ctx.Err() == nil {
		p.Logger.Error(err, "ConfigMap addon-query, which the chart creates, can't be written: clients can't find the query endpoint")
	}
	return nil
}

var errNoCertificate = errors.New("tls.crt has no certificate that can be read")

// patch sets all keys. Without an authority the last certificate of the chain is trusted.
func (p *Publication) patch(data map[string][]byte) (client.Patch, error) {
	chain, authorities := certificate.Parse(data[corev1.TLSCertKey]), data[certificate.KeyAuthorities]
	if len(chain) == 0 {
		return nil, errNoCertificate
	}
	if len(certificate.Parse(authorities)) == 0 {
		authorities = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: chain[len(chain)-1].Raw})
	}
	content := map[string]any{
		v1.QueryURL: nil, v1.QueryNamespace: p.Namespace, v1.QueryService: p.Service, v1.QueryPort: p.Port,
		v1.QueryServerName: "", v1.QueryCA: string(authorities),
	}
	switch serving := chain[0]; {
	case len(serving.DNSNames) > 0:
		content[v1.QueryServerName] = serving.DNSNames[0]
	case len(serving.IPAddresses) > 0:
		content[v1.QueryServerName] = serving.IPAddresses[0].String()
	}
	if p.URL != "" {
		content[v1.QueryURL] = p.URL
	}
	encoded, err := json.Marshal(map[string]any{"data": content})
	if err != nil {
		return nil, fmt.Errorf("encoding ConfigMap %q: %w", v1.ConfigMapQuery, err)
	}
	return client.RawPatch(types.MergePatchType, encoded), nil
}
