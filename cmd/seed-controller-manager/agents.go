package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	flags "github.com/trellis-addons/trellis/cmd/internal/manager"
	"github.com/trellis-addons/trellis/pkg/clusters/access"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
)

// Flags about agents.
const (
	flagHubServer = "hub-server"
	flagHubCAFile = "hub-ca-file"
	flagShared    = "agents-in-shared-namespaces"
	flagApprove   = "approve-signers"
)

const (
	// caInterval is the time between two checks of the file of --hub-ca-file.
	caInterval = 30 * time.Second
	// largestCA is the largest size of that file, in bytes.
	largestCA = 256 << 10
)

// agentOptions are the flags about credentials for the hub.
type agentOptions struct {
	hub      hub
	shared   bool
	approves []string
}

func (o *agentOptions) register(set *flag.FlagSet) {
	set.StringVar(&o.hub.server, flagHubServer, "",
		"https URL at which agents of add-ons in user clusters reach this seed's API server; empty: no version gets credentials for it")
	set.StringVar(&o.hub.file, flagHubCAFile, "",
		"PEM file with the CA certificates that verify the server of --hub-server; reloaded when the file changes")
	set.BoolVar(&o.shared, flagShared, false,
		"issue credentials also in namespaces with several Clusters: an agent of one can then reach objects of the others")
	flags.ListVar(set, &o.approves, flagApprove,
		"signers, comma-separated, for which the manager approves certificate requests of agents; empty: an admin approves each request", signer)
}

// signer reads the name of a signer; an empty part is none.
func signer(part string) ([]string, error) {
	if part == "" {
		return nil, nil
	}
	return []string{part}, rights.CheckSigner(part)
}

// access is what the flags grant to agents; nil: nothing.
func (o *agentOptions) access() (*access.Options, error) {
	if o.hub.server == "" && o.hub.file == "" {
		if o.shared || len(o.approves) > 0 {
			return nil, fmt.Errorf("--%s and --%s need --%s", flagShared, flagApprove, flagHubServer)
		}
		return nil, nil
	}
	if err := o.hub.check(); err != nil {
		return nil, err
	}
	return &access.Options{Hub: o.hub.now, Shared: o.shared, Approves: slices.Clone(o.approves)}, nil
}

// hub is the API server of the seed as agents reach it.
type hub struct {
	server, file string

	lock   sync.Mutex
	ca     []byte
	looked time.Time
	// reported is the failure that was logged.
	reported string
}

// check names the flag that is invalid.
func (h *hub) check() error {
	parsed, err := url.Parse(h.server)
	if err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		return fmt.Errorf("--%s has to be an https URL of the seed's API server, without user and query", flagHubServer)
	}
	if h.file == "" {
		return fmt.Errorf("--%s has to name a file with the CA certificates of --%s", flagHubCAFile, flagHubServer)
	}
	_, err = h.now()
	return err
}

// now is the current hub. If the file can't be read any more, the last content stays.
func (h *hub) now() (access.Hub, error) {
	h.lock.Lock()
	defer h.lock.Unlock()
	if now := time.Now(); now.Sub(h.looked) >= caInterval {
		read, err := readAuthorities(h.file)
		if err != nil && h.ca == nil {
			return access.Hub{}, err
		}
		if h.looked = now; err == nil {
			h.ca = read
		}
		h.report(err)
	}
	return access.Hub{Server: h.server, CA: h.ca}, nil
}

// report logs that the file can't be read any more, and that it can again, once each.
func (h *hub) report(err error) {
	now := ""
	if err != nil {
		now = err.Error()
	}
	switch {
	case now == h.reported:
	case err != nil:
		ctrl.Log.WithName("hub").Error(err, "the CA certificates of the hub can't be read: agents keep the previous ones")
	default:
		ctrl.Log.WithName("hub").Info("the CA certificates of the hub can be read again")
	}
	h.reported = now
}

// readAuthorities reads certificates in PEM.
func readAuthorities(file string) ([]byte, error) {
	about, err := os.Stat(file)
	if err == nil && about.Size() > largestCA {
		err = fmt.Errorf("it has more than %d bytes", largestCA)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flagHubCAFile, err)
	}
	read, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flagHubCAFile, err)
	}
	if err := checkAuthorities(read); err != nil {
		return nil, fmt.Errorf("--%s: %q %w", flagHubCAFile, file, err)
	}
	return read, nil
}

func checkAuthorities(read []byte) error {
	found := 0
	for rest := read; ; found++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return fmt.Errorf("contains a block of type %q: only certificates are allowed", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("has a certificate that can't be read: %w", err)
		}
	}
	if found == 0 {
		return errors.New("contains no PEM certificate")
	}
	return nil
}
