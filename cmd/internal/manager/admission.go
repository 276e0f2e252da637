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

	"github.com/trellis-addons/trellis/pkg/certificate"
	trellis "github.com/trellis-addons/trellis/pkg/webhook"
)

// admissionFlags say where admission webhooks are served, and with which certificate.
type admissionFlags struct {
	address, configuration, secret, folder string
	hosts                                  []string
	// pathFile has the secret path without a keeper; clientCA and clientName identify the API
	// server.
	pathFile, clientCA, clientName string

	keeper       *certificate.Rotator
	registration *trellis.Registration
}

func (f *admissionFlags) register(set *flag.FlagSet) {
	set.StringVar(&f.address, "webhook-bind-address", "0", "address of the admission webhooks; 0 turns them off")
	set.StringVar(&f.configuration, "webhook-configuration", "",
		"the ValidatingWebhookConfiguration whose caBundle is kept up to date")
	set.StringVar(&f.secret, "webhook-secret", "", "the Secret in --namespace that the webhooks' certificate is kept in")
	ListVar(set, &f.hosts, "webhook-hosts",
		"names and addresses that the API server calls the webhooks by, comma-separated", Name)
	set.StringVar(&f.folder, "webhook-certificate-folder", "",
		"serve with tls.crt and tls.key of this folder, as cert-manager writes them, instead of keeping a certificate")
	set.StringVar(&f.pathFile, "webhook-path-file", "",
		"with --webhook-certificate-folder: file with the secret path below which the webhooks are asked")
	set.StringVar(&f.clientCA, "webhook-client-ca", "",
		"file with the authorities of the API server's client certificate; the webhooks answer nobody without one. Empty: anybody who "+
			"knows the path")
	set.StringVar(&f.clientName, "webhook-client-name", "", "common name of that client certificate; empty: any name")
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
		return nil, fmt.Errorf("flag --webhook-bind-address: %q is no port", port)
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

// clients sets TLS up, with a client certificate where one is required.
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

var errOtherClient = errors.New("the client certificate has another name")

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

// Admit serves the handlers, by path, if a flag asks for it. The manager is not ready before them.
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
