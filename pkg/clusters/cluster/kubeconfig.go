package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

// KubeconfigLimit is the maximum size of a kubeconfig, in bytes. PEM and YAML parsers never get more (cert-manager
// CVE-2024-12401).
const KubeconfigLimit = 256 << 10

// Limits of a kubeconfig's content. A usable one has about forty values, five deep.
const (
	kubeconfigDepth  = 32
	kubeconfigPieces = 8192
)

// KubeconfigError reports which field of a kubeconfig is refused, and why; never its value.
type KubeconfigError struct {
	// Field is its path in the file, such as "users[].user.exec"; empty: the whole file.
	Field   string
	Problem string
}

func (e *KubeconfigError) Error() string {
	if e.Field == "" {
		return "kubeconfig " + e.Problem
	}
	return fmt.Sprintf("kubeconfig field %q %s", e.Field, e.Problem)
}

// ParseKubeconfig converts a kubeconfig to a client configuration. It allows an https server, CA data, client
// certificate and key data, a token and tls-server-name. It refuses all other fields, such as exec, auth providers,
// files, proxies and impersonation (Flux CVE-2022-24817), and more than one context. The error is a KubeconfigError.
func ParseKubeconfig(data []byte) (*rest.Config, error) {
	file, err := readKubeconfig(data)
	if err != nil {
		return nil, err
	}
	return file.config()
}

// kubeconfig has one cluster, one user, and one context that joins them.
type kubeconfig struct {
	server, serverName, token string
	ca, certificate, key      []byte
}

func (k *kubeconfig) config() (*rest.Config, error) {
	for _, check := range []func() error{k.checkServer, k.checkServerName, k.checkCA, k.checkCredentials} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return &rest.Config{
		Host: k.server, BearerToken: k.token,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: k.serverName, CAData: k.ca, CertData: k.certificate, KeyData: k.key,
		},
	}, nil
}

func (k *kubeconfig) checkServer() error {
	server, err := url.Parse(k.server)
	switch {
	case err != nil || server.Host == "" || server.Hostname() == "":
		return &KubeconfigError{fieldServer, "is not a URL with a host"}
	case server.Scheme != "https":
		return &KubeconfigError{fieldServer, "is not https"}
	case server.User != nil || server.RawQuery != "" || server.Fragment != "":
		return &KubeconfigError{fieldServer, "has parts other than a host, a port and a path"}
	}
	return nil
}

func (k *kubeconfig) checkServerName() error {
	if k.serverName == "" || net.ParseIP(k.serverName) != nil {
		return nil
	}
	if len(validation.IsDNS1123Subdomain(strings.ToLower(k.serverName))) > 0 {
		return &KubeconfigError{"clusters[].cluster.tls-server-name", "is not a host name"}
	}
	return nil
}

func (k *kubeconfig) checkCA() error {
	if len(k.ca) > 0 && !x509.NewCertPool().AppendCertsFromPEM(k.ca) {
		return &KubeconfigError{"clusters[].cluster.certificate-authority-data", "contains no PEM certificate"}
	}
	return nil
}

func (k *kubeconfig) checkCredentials() error {
	if len(k.certificate) == 0 && len(k.key) == 0 && k.token == "" {
		return &KubeconfigError{"users[].user", "has neither a token nor a client certificate"}
	}
	if strings.ContainsFunc(k.token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return &KubeconfigError{"users[].user.token", "has characters that are invalid in a token"}
	}
	if len(k.certificate) == 0 && len(k.key) == 0 {
		return nil
	}
	if _, err := tls.X509KeyPair(k.certificate, k.key); err != nil {
		return &KubeconfigError{"users[].user.client-certificate-data", "does not form a PEM key pair with client-key-data"}
	}
	return nil
}

func readKubeconfig(data []byte) (*kubeconfig, error) {
	if len(data) > KubeconfigLimit {
		return nil, &KubeconfigError{"", fmt.Sprintf("is larger than %d KiB", KubeconfigLimit>>10)}
	}
	content, err := strictyaml.Decode(data, strictyaml.Limits{Bytes: KubeconfigLimit, Depth: kubeconfigDepth, Pieces: kubeconfigPieces})
	if err != nil {
		problem := fmt.Sprintf("must be one valid YAML document of at most %d KiB, even after its aliases are expanded", KubeconfigLimit>>10)
		return nil, &KubeconfigError{"", problem} // the reader's error may name keys, and a key may be any text
	}
	tree, isMap := content.(map[string]any)
	if !isMap && content != nil {
		return nil, &KubeconfigError{"", "is not a map of fields"}
	}
	top := fields{path: "", values: tree}
	if err := top.allow("apiVersion", "kind", "preferences", "extensions", "current-context", "clusters", "users", "contexts"); err != nil {
		return nil, err
	}
	return readParts(top)
}

func readParts(top fields) (*kubeconfig, error) {
	clusterName, cluster, err := top.only("clusters", "cluster")
	if err != nil {
		return nil, err
	}
	userName, user, err := top.only("users", "user")
	if err != nil {
		return nil, err
	}
	if err := checkContext(top, clusterName, userName); err != nil {
		return nil, err
	}
	file := &kubeconfig{}
	if err := file.readCluster(cluster); err != nil {
		return nil, err
	}
	return file, file.readUser(user)
}

func checkContext(top fields, cluster, user string) error {
	name, context, err := top.only("contexts", "context")
	if err != nil {
		return err
	}
	if err := context.allow("cluster", "user", "namespace", "extensions"); err != nil {
		return err
	}
	for field, want := range map[string]string{"cluster": cluster, "user": user} {
		if got, err := context.text(field); err != nil || got != want {
			return &KubeconfigError{"contexts[].context." + field, "is not the name of the only entry"}
		}
	}
	if current, err := top.text("current-context"); err != nil || current != name {
		return &KubeconfigError{"current-context", "is not the name of the only context"}
	}
	return nil
}

const fieldServer = "clusters[].cluster.server"

func (k *kubeconfig) readCluster(cluster fields) (err error) {
	// disable-compression requests our default.
	if err := cluster.allow("server", "certificate-authority-data", "tls-server-name", "disable-compression", "extensions"); err != nil {
		return err
	}
	if k.server, err = cluster.text("server"); err != nil {
		return err
	}
	if k.serverName, err = cluster.text("tls-server-name"); err != nil {
		return err
	}
	k.ca, err = cluster.bytes("certificate-authority-data")
	return err
}

func (k *kubeconfig) readUser(user fields) (err error) {
	if err := user.allow("client-certificate-data", "client-key-data", "token", "extensions"); err != nil {
		return err
	}
	if k.token, err = user.text("token"); err != nil {
		return err
	}
	if k.certificate, err = user.bytes("client-certificate-data"); err != nil {
		return err
	}
	k.key, err = user.bytes("client-key-data")
	return err
}

type fields struct {
	path   string
	values map[string]any
}

// refused are known fields that Trellis does not support. Errors name only these: an unknown key may be any text,
// even a secret.
var refused = map[string]string{
	"exec":                     "is refused: it runs a program",
	"auth-provider":            "is refused: it runs a plugin",
	"tokenFile":                "is refused: it reads a file",
	"client-certificate":       "is refused: it reads a file",
	"client-key":               "is refused: it reads a file",
	"certificate-authority":    "is refused: it reads a file",
	"proxy-url":                "is refused: it connects to another address",
	"insecure-skip-tls-verify": "is refused: the server's certificate must be verified",
	"username":                 "is refused: API servers accept no passwords",
	"password":                 "is refused: API servers accept no passwords",
	"as":                       "is refused: it impersonates another user",
	"as-uid":                   "is refused: it impersonates another user",
	"as-groups":                "is refused: it impersonates another user",
	"as-user-extra":            "is refused: it impersonates another user",
}

// allow refuses all fields but these. It ignores fields that are false, empty or null.
func (f fields) allow(names ...string) error {
	allowed := map[string]bool{}
	for _, name := range names {
		allowed[name] = true
	}
	unknown := false
	for name, value := range f.values {
		if allowed[name] || value == nil || value == false || value == "" {
			continue
		}
		if problem, known := refused[name]; known {
			return &KubeconfigError{f.path + name, problem}
		}
		unknown = true
	}
	if unknown {
		return &KubeconfigError{strings.TrimSuffix(f.path, "."), "has a field that kubeconfigs don't have"}
	}
	return nil
}

func (f fields) only(list, item string) (string, fields, error) {
	items, _ := f.values[list].([]any)
	if len(items) != 1 {
		return "", fields{}, &KubeconfigError{list, fmt.Sprintf("has %d items, but must have exactly one", len(items))}
	}
	values, _ := items[0].(map[string]any)
	entry := fields{path: list + "[].", values: values}
	if err := entry.allow("name", item); err != nil {
		return "", fields{}, err
	}
	name, err := entry.text("name")
	if err != nil {
		return "", fields{}, err
	}
	inner, ok := values[item].(map[string]any)
	if !ok || name == "" {
		return "", fields{}, &KubeconfigError{list, "has an item without name or " + item}
	}
	return name, fields{path: list + "[]." + item + ".", values: inner}, nil
}

func (f fields) text(name string) (string, error) {
	value, found := f.values[name]
	if !found || value == nil {
		return "", nil
	}
	text, ok := value.(string)
	if !ok {
		return "", &KubeconfigError{f.path + name, "is not a string"}
	}
	return text, nil
}

func (f fields) bytes(name string) ([]byte, error) {
	text, err := f.text(name)
	if err != nil || text == "" {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return nil, &KubeconfigError{f.path + name, "is not base64"}
	}
	return data, nil
}
