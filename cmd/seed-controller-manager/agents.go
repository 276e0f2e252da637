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
	"github.com/trellis-addons/trellis/pkg/access"
	"github.com/trellis-addons/trellis/pkg/access/rights"
)

// Flags about agents.
const (
	flagHubServer = "hub-server"
	flagHubCAFile = "hub-ca-file"
	flagShared    = "agents-in-shared-namespaces"
	flagApprove   = "approve-signers"
)

const (
	// caInterval is the time between two looks at the file of --hub-ca-file.
	caInterval = 30 * time.Second
	// largestCA in bytes.
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
		"https URL of this seed's API server, as agents of add-ons in user clusters reach it; empty: no version gets credentials for it")
	set.StringVar(&o.hub.file, flagHubCAFile, "",
		"file with the authorities of that server's certificate, in PEM; it is read again when it changes")
	set.BoolVar(&o.shared, flagShared, false,
		"give credentials also in namespaces that several Clusters have, whose objects an agent of one can reach then")
	flags.ListVar(set, &o.approves, flagApprove,
		"signers, comma-separated, for which requests of agents for certificates are approved; empty: somebody approves each", signer)
}

// signer reads the name of one; an empty part is none.
func signer(part string) ([]string, error) {
	if part == "" {
		return nil, nil
	}
	return []string{part}, rights.CheckSigner(part)
}

// access is what the flags give to agents; nil: nothing.
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
	// told is the failure that is in the log.
	told string
}

// check says which flag can't be followed.
func (h *hub) check() error {
	parsed, err := url.Parse(h.server)
	if err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		return fmt.Errorf("--%s has to be an https URL of the seed's API server, without user and query", flagHubServer)
	}
	if h.file == "" {
		return fmt.Errorf("--%s has to name a file with the authorities of --%s", flagHubCAFile, flagHubServer)
	}
	_, err = h.now()
	return err
}

// now is the hub as it is now. A file that can't be read any more leaves what was read before.
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
		h.tell(err)
	}
	return access.Hub{Server: h.server, CA: h.ca}, nil
}

// tell logs that the file can't be read any more, and that it can, once each.
func (h *hub) tell(err error) {
	now := ""
	if err != nil {
		now = err.Error()
	}
	switch {
	case now == h.told:
	case err != nil:
		ctrl.Log.WithName("hub").Error(err, "the authorities of the hub can't be read: agents keep those that were read before")
	default:
		ctrl.Log.WithName("hub").Info("the authorities of the hub can be read again")
	}
	h.told = now
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
			return fmt.Errorf("has a block of type %q, and only certificates may be in it", block.Type)
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return fmt.Errorf("has a certificate that can't be read: %w", err)
		}
	}
	if found == 0 {
		return errors.New("has no certificate in PEM")
	}
	return nil
}
