package manager

import (
	"crypto/tls"
	"flag"
	"fmt"
	"net"
	"strconv"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/trellis-addons/trellis/pkg/webhook/certificate"
)

// admissionFlags say where admission webhooks are served, and who keeps their certificate.
type admissionFlags struct {
	address, configuration, secret, hosts, folder string

	keeper *certificate.Keeper
}

func (f *admissionFlags) register(set *flag.FlagSet) {
	set.StringVar(&f.address, "webhook-bind-address", "0", "address of the admission webhooks; 0 turns them off")
	set.StringVar(&f.configuration, "webhook-configuration", "",
		"the ValidatingWebhookConfiguration whose caBundle is kept up to date")
	set.StringVar(&f.secret, "webhook-secret", "", "the Secret in --namespace that the webhooks' certificate is kept in")
	set.StringVar(&f.hosts, "webhook-hosts", "", "names and addresses that the API server calls the webhooks by, comma-separated")
	set.StringVar(&f.folder, "webhook-certificate-folder", "",
		"serve with tls.crt and tls.key of this folder, as cert-manager writes them, instead of keeping a certificate")
}

func (f *admissionFlags) isOn() bool { return f.address != "0" }

// server is what the manager serves admission with; nil where it does not.
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
	harden := func(config *tls.Config) { config.MinVersion = tls.VersionTLS12 }
	if f.folder != "" {
		options.TLSOpts = append(options.TLSOpts, harden)
		return webhook.NewServer(options), nil
	}
	f.keeper = certificate.New(certificate.Options{
		Namespace: namespace, Secret: f.secret, Configuration: f.configuration, Hosts: strings.Split(f.hosts, ","),
	})
	options.TLSOpts = append(options.TLSOpts, harden, func(config *tls.Config) { config.GetCertificate = f.keeper.GetCertificate })
	return webhook.NewServer(options), nil
}

// Admit serves the handlers, by path, where the flags ask for it. The manager is not ready before they can be asked.
func (f *Flags) Admit(made manager.Manager, handlers map[string]admission.Handler) error {
	if !f.admission.isOn() {
		return nil
	}
	server := made.GetWebhookServer()
	for path, handler := range handlers {
		server.Register(path, &admission.Webhook{Handler: handler})
	}
	ready := server.StartedChecker()
	if keeper := f.admission.keeper; keeper != nil {
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
