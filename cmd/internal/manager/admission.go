package manager

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-addons/trellis/pkg/serve/certificate"
	trellis "github.com/trellis-addons/trellis/pkg/serve/webhook"
)

// admissionFlags configure the address of admission webhooks, and their certificate.
type admissionFlags struct {
	address, configuration, secret, folder string
	hosts                                  []string
	// pathFile has the secret path without a keeper; clientCA and clientName identify the API server.
	pathFile, clientCA, clientName string

	keeper       *certificate.Rotator
	registration *trellis.Registration
}

func (f *admissionFlags) register(set *flag.FlagSet) {
	set.StringVar(&f.address, "webhook-bind-address", "0", "address of the admission webhooks; 0 turns them off")
	set.StringVar(&f.configuration, "webhook-configuration", "",
		"the ValidatingWebhookConfiguration whose caBundle the manager updates")
	set.StringVar(&f.secret, "webhook-secret", "", "the Secret in --namespace that stores the webhooks' certificate")
	ListVar(set, &f.hosts, "webhook-hosts",
		"names and addresses at which the API server calls the webhooks, comma-separated", Name)
	set.StringVar(&f.folder, "webhook-certificate-folder", "",
		"serve with tls.crt and tls.key of this folder, as cert-manager writes them, instead of a generated certificate")
	set.StringVar(&f.pathFile, "webhook-path-file", "",
		"with --webhook-certificate-folder: file with the secret path of the webhooks")
	set.StringVar(&f.clientCA, "webhook-client-ca", "",
		"file with the CA certificates that verify the API server's client certificate, which the webhooks then require; empty: "+
			"the webhooks answer every client that knows the path")
	set.StringVar(&f.clientName, "webhook-client-name", "", "common name that the API server's client certificate must have; empty: any name")
}

func (f *admissionFlags) isOn() bool { return f.address != "0" }

func (f *admissionFlags) server(namespace string) (webhook.Server, error) {
	if !f.isOn() {
		return nil, nil
	}
	host, port, err := net.SplitHostPort(f.address)
	if err != nil {
		return nil, fmt.Errorf("flag --webhook-bind-address: %w", err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("flag --webhook-bind-address: %q is not a port", port)
	}
	options := webhook.Options{Host: host, Port: number, CertDir: f.folder}
	harden, err := f.clients()
	if err != nil {
		return nil, err
	}
	if f.folder != "" {
		options.TLSOpts = append(options.TLSOpts, harden)
		return webhook.NewServer(options), nil
	}
	f.registration = &trellis.Registration{Configuration: f.configuration}
	f.keeper = certificate.New(certificate.Options{
		Name: "trellis-webhook", Secret: client.ObjectKey{Namespace: namespace, Name: f.secret}, Hosts: f.hosts,
		Publisher: f.registration,
	})
	options.TLSOpts = append(options.TLSOpts, harden, func(config *tls.Config) { config.GetCertificate = f.keeper.GetCertificate })
	return webhook.NewServer(options), nil
}

// clients returns the TLS setup, with a client certificate if one is required.
func (f *admissionFlags) clients() (func(config *tls.Config), error) {
	if f.clientCA == "" {
		return func(config *tls.Config) { config.MinVersion = tls.VersionTLS12 }, nil
	}
	content, err := os.ReadFile(f.clientCA)
	if err != nil {
		return nil, fmt.Errorf("flag --webhook-client-ca: %w", err)
	}
	authorities := x509.NewCertPool()
	if !authorities.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("flag --webhook-client-ca: %q has no certificate", f.clientCA)
	}
	return func(config *tls.Config) {
		config.MinVersion = tls.VersionTLS12
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, authorities
		config.VerifyConnection = f.isAPIServer
	}, nil
}

var errOtherClient = errors.New("the client certificate does not have the common name that --webhook-client-name requires")

// isAPIServer compares the name of a verified client certificate.
func (f *admissionFlags) isAPIServer(state tls.ConnectionState) error {
	if f.clientName != "" && (len(state.PeerCertificates) == 0 || state.PeerCertificates[0].Subject.CommonName != f.clientName) {
		return errOtherClient
	}
	return nil
}

func (f *admissionFlags) path() func() string {
	if f.registration != nil {
		return f.registration.Path
	}
	return func() string {
		content, err := os.ReadFile(f.pathFile) // it may change
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(content))
	}
}

// Admit serves the handlers, by path, if a flag requests it. The manager is not ready before that.
func (f *Flags) Admit(made manager.Manager, handlers map[string]admission.Handler) error {
	if !f.admission.isOn() {
		return nil
	}
	server := made.GetWebhookServer()
	gate := &trellis.Gate{Path: f.admission.path(), Handlers: map[string]http.Handler{}}
	for path, handler := range handlers {
		gate.Handlers[path] = trellis.InTurn(&admission.Webhook{Handler: handler})
	}
	server.Register("/", gate)
	ready := server.StartedChecker()
	if keeper := f.admission.keeper; keeper != nil {
		f.admission.registration.Client, f.admission.registration.Reader = made.GetClient(), made.GetAPIReader()
		keeper.Use(made.GetClient(), made.GetAPIReader())
		if err := made.Add(keeper); err != nil {
			return fmt.Errorf("adding the webhooks' certificate: %w", err)
		}
		ready = keeper.Ready
	}
	if err := made.AddReadyzCheck("webhooks", ready); err != nil {
		return fmt.Errorf("adding the webhooks' readiness check: %w", err)
	}
	return nil
}
