// Package config reads the configuration of the web view, with the keys and certificates that belong to it, and follows
// their files. A configuration is applied as a whole: if any part of it is invalid, the last valid one stays.
package config

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

const (
	mostBytes = 1 << 20
	mostSeeds = 200
	mostKeys  = 8
	// leastKey is how many bytes a key has at least.
	leastKey = 32
)

// Kinds of login.
const (
	LoginToken = "Token"
	LoginProxy = "Proxy"
	LoginOIDC  = "OIDC"
)

// Config is the file of --config.
type Config struct {
	// PublicURL is the address that browsers use. Requests for other hosts are refused.
	PublicURL string `json:"publicURL"`
	// TLSFolder has tls.crt and tls.key; empty: plain HTTP, for a proxy in front.
	TLSFolder string `json:"tlsFolder,omitempty"`
	// KeysFolder has the keys of login cookies, a file each, as a mounted Secret has them. The first by name seals, all open.
	KeysFolder string `json:"keysFolder"`
	// Master has catalogues and sets; nil: pages about them show those of the seeds.
	Master *Master `json:"master,omitempty"`
	Seeds  []Seed  `json:"seeds"`
	Login  Login   `json:"login"`
}

// Server is an API server, or an authenticating proxy in front of one.
type Server struct {
	Server string `json:"server"`
	// CA is the authority in PEM; empty: the system's authorities.
	CA string `json:"ca,omitempty"`
}

// Master is the master's API server.
type Master struct {
	Server `json:",inline"`
	// Namespace has catalogues and sets. Default: kubermatic.
	Namespace string `json:"namespace,omitempty"`
}

// Seed is the API server of a seed, and its query endpoint.
type Seed struct {
	Server `json:",inline"`
	Name   string `json:"name"`
	// Query is the URL of the query endpoint, QueryCA its authority in PEM; empty: the system's authorities.
	Query   string `json:"query"`
	QueryCA string `json:"queryCA,omitempty"`
}

// Login says how users log in.
type Login struct {
	// Kind is Token, Proxy or OIDC.
	Kind string `json:"kind"`
	OIDC *OIDC  `json:"oidc,omitempty"`
}

// OIDC is the provider of kind OIDC.
type OIDC struct {
	Issuer   string `json:"issuer"`
	ClientID string `json:"clientID"`
	// SecretFile has the client's secret; empty: a public client.
	SecretFile string `json:"secretFile,omitempty"`
	// CA is the issuer's authority in PEM; empty: the system's authorities.
	CA string `json:"ca,omitempty"`
	// Scopes are requested beside openid and offline_access.
	Scopes []string `json:"scopes,omitempty"`
}

// Loaded is a valid configuration with the files that it names.
type Loaded struct {
	Config
	// Public is the parsed PublicURL.
	Public *url.URL
	// Keys seal and open, the first one seals.
	Keys [][]byte
	// Certificate is nil without a TLSFolder.
	Certificate *tls.Certificate
	// Secret is that of the OIDC client.
	Secret string
	// digest covers all files.
	digest [sha256.Size]byte
}

// InvalidError says what is wrong with a configuration, and where.
type InvalidError struct{ Field, Problem string }

func (e *InvalidError) Error() string { return e.Field + ": " + e.Problem }

func invalid(field, format string, arguments ...any) error {
	return &InvalidError{field, fmt.Sprintf(format, arguments...)}
}

// Load reads the configuration and all files that it names.
func Load(file string) (*Loaded, error) {
	read := files{}
	content, err := read.file(file)
	if err != nil {
		return nil, err
	}
	made := &Loaded{}
	if made.Config, err = parse(content); err != nil {
		return nil, fmt.Errorf("%q: %w", file, err)
	}
	if made.Public, err = made.check(); err != nil {
		return nil, fmt.Errorf("%q: %w", file, err)
	}
	if err := made.load(&read); err != nil {
		return nil, fmt.Errorf("%q: %w", file, err)
	}
	made.digest = sha256.Sum256(read.all)
	return made, nil
}

// parse reads a document strictly: no unknown field, no key twice.
func parse(content []byte) (Config, error) {
	made := Config{}
	tree, err := strictyaml.Decode(content, strictyaml.Limits{Bytes: mostBytes, Depth: 8})
	if err != nil {
		return made, err
	}
	encoded, err := json.Marshal(tree)
	if err != nil {
		return made, errors.New("it is not a map")
	}
	unknown, err := kjson.UnmarshalStrict(encoded, &made)
	if err = errors.Join(append(unknown, err)...); err != nil {
		return made, err
	}
	if made.Master != nil && made.Master.Namespace == "" {
		made.Master.Namespace = "kubermatic"
	}
	return made, nil
}

var seedName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// check returns the public URL of a valid configuration. Errors: *InvalidError.
func (c *Config) check() (*url.URL, error) {
	public, err := parsePublic(c.PublicURL)
	switch {
	case err != nil:
		return nil, err
	case c.KeysFolder == "":
		return nil, invalid("keysFolder", "name the folder with the keys of login cookies")
	case len(c.Seeds) == 0 || len(c.Seeds) > mostSeeds:
		return nil, invalid("seeds", "name 1 to %d seeds, not %d", mostSeeds, len(c.Seeds))
	}
	if c.Master != nil {
		if err := c.Master.check("master"); err != nil {
			return nil, err
		}
	}
	if err := c.checkSeeds(); err != nil {
		return nil, err
	}
	return public, c.Login.check()
}

// parsePublic reads the public URL. Plain http is for loopback addresses only.
func parsePublic(text string) (*url.URL, error) {
	public, err := url.Parse(text)
	switch {
	case err != nil || public.Host == "" || public.User != nil || strings.Trim(public.Path, "/") != "" || public.RawQuery != "":
		return nil, invalid("publicURL", "write it like https://addons.example.com")
	case public.Scheme == "http" && !isLoopback(public.Hostname()):
		return nil, invalid("publicURL", "http is accepted for a loopback address only: login cookies need https")
	case public.Scheme != "http" && public.Scheme != "https":
		return nil, invalid("publicURL", "it is not an https URL")
	}
	// Browsers leave the default port out.
	public.Host = strings.TrimSuffix(strings.ToLower(public.Host), map[string]string{"http": ":80", "https": ":443"}[public.Scheme])
	return public, nil
}

func (c *Config) checkSeeds() error {
	seen := map[string]bool{}
	for i, seed := range c.Seeds {
		at := fmt.Sprintf("seeds[%d]", i)
		switch {
		case !seedName.MatchString(seed.Name):
			return invalid(at+".name", "%q is not a valid name: use lower-case letters, digits and hyphens", seed.Name)
		case seen[seed.Name]:
			return invalid(at+".name", "seed %q is in the list twice", seed.Name)
		}
		seen[seed.Name] = true
		query := Server{seed.Query, seed.QueryCA}
		if err := errors.Join(seed.check(at), query.checkAs(at+".query", at+".queryCA")); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) check(at string) error { return s.checkAs(at+".server", at+".ca") }

func (s *Server) checkAs(server, authority string) error {
	if err := checkURL(server, s.Server); err != nil {
		return err
	}
	_, err := Pool(authority, s.CA)
	return err
}

func checkURL(field, text string) error {
	parsed, err := url.Parse(text)
	if err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" || parsed.Fragment != "" {
		return invalid(field, "write an https URL without a user and a query: tokens are sent there")
	}
	return nil
}

// Pool are the authorities of a text in PEM; nil: the system's. Errors: *InvalidError.
func Pool(field, pem string) (*x509.CertPool, error) {
	if pem == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(pem)) {
		return nil, invalid(field, "it contains no PEM certificate")
	}
	return pool, nil
}

func (l *Login) check() error {
	switch {
	case !slices.Contains([]string{LoginToken, LoginProxy, LoginOIDC}, l.Kind):
		return invalid("login.kind", "%q is neither Token, Proxy nor OIDC", l.Kind)
	case (l.Kind == LoginOIDC) != (l.OIDC != nil):
		return invalid("login.oidc", "kind OIDC needs it, and no other kind has it")
	case l.OIDC == nil:
		return nil
	case l.OIDC.ClientID == "":
		return invalid("login.oidc.clientID", "it is missing")
	}
	_, err := Pool("login.oidc.ca", l.OIDC.CA)
	return errors.Join(checkURL("login.oidc.issuer", l.OIDC.Issuer), err)
}

func isLoopback(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || address != nil && address.IsLoopback()
}

// load reads keys, certificate and secret. Errors name files, and never their content.
func (l *Loaded) load(read *files) error {
	names, err := os.ReadDir(l.KeysFolder)
	if err != nil {
		return invalid("keysFolder", "%v", err)
	}
	for _, one := range names {
		name := filepath.Join(l.KeysFolder, one.Name())
		if info, err := os.Stat(name); strings.HasPrefix(one.Name(), ".") || err != nil || info.IsDir() {
			continue // a mounted Secret has links to its files, and a hidden folder with them
		}
		key, err := read.file(name)
		if err != nil {
			return invalid("keysFolder", "%v", err)
		}
		if len(key) < leastKey {
			return invalid("keysFolder", "key %q has fewer than %d bytes", one.Name(), leastKey)
		}
		l.Keys = append(l.Keys, key)
	}
	if len(l.Keys) == 0 || len(l.Keys) > mostKeys {
		return invalid("keysFolder", "it has %d keys: 1 to %d are needed", len(l.Keys), mostKeys)
	}
	if l.TLSFolder != "" {
		if l.Certificate, err = read.certificate(l.TLSFolder); err != nil {
			return invalid("tlsFolder", "%v", err)
		}
	}
	if l.Login.OIDC != nil && l.Login.OIDC.SecretFile != "" {
		secret, err := read.file(l.Login.OIDC.SecretFile)
		if err != nil {
			return invalid("login.oidc.secretFile", "%v", err)
		}
		l.Secret = strings.TrimSpace(string(secret))
	}
	return nil
}

// files reads files of limited size, and keeps what it read, to notice changes.
type files struct{ all []byte }

func (f *files) file(name string) ([]byte, error) {
	opened, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	content, err := io.ReadAll(io.LimitReader(opened, mostBytes+1))
	if err != nil {
		return nil, err
	}
	if len(content) > mostBytes {
		return nil, fmt.Errorf("%q has more than %d bytes", name, mostBytes)
	}
	f.all = append(append(append(f.all, name...), 0), content...)
	return content, nil
}

func (f *files) certificate(folder string) (*tls.Certificate, error) {
	certificate, err := f.file(filepath.Join(folder, "tls.crt"))
	if err != nil {
		return nil, err
	}
	key, err := f.file(filepath.Join(folder, "tls.key"))
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	return &pair, err
}
