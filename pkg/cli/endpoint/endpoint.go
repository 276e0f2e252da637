// Package endpoint calls the query endpoint of a seed for verbs, with the credentials of the caller's kubeconfig (ADR 141).
//
// ConfigMap addon-query in namespace kube-public says where the endpoint is. It is reached by its URL, else by a port-forward to a ready
// pod of its Service. Either way TLS reaches from the command to the endpoint, verified by the authority of the ConfigMap and by no other:
// a token goes nowhere else. Nothing is followed that redirects.
package endpoint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/cli"
)

const (
	// callTime limits one call, with the connection.
	callTime = 30 * time.Second
	// mostAnswer is how many bytes of an answer are read.
	mostAnswer = 32 << 20
	// mostWait is how many seconds a call waits before it is repeated.
	mostWait = 30
)

const hint = "ask an admin of the seed to set query.url of chart trellis-seed, or to allow you to list endpointslices and create " +
	"pods/portforward in the platform namespace"

// Endpoint is the query endpoint of a seed.
type Endpoint struct {
	seed *cli.Platform
	at   map[string]string
	// tried says why ways to the endpoint did not work, and pod is the one that answered last.
	tried []string
	pod   string
}

// Find finds the endpoint of a seed. Errors: ExitUsage for --as, ExitUnreachable if the seed does not say where the endpoint is.
func Find(ctx context.Context, seed *cli.Platform) (*Endpoint, error) {
	if as := seed.Config.Impersonate; as.UserName != "" || as.UID != "" || len(as.Groups) > 0 {
		return nil, cli.Fail(cli.ExitUsage, "leave out --as, --as-group and --as-uid", "the query endpoint does not support impersonation")
	}
	found := &corev1.ConfigMap{}
	err := seed.Get(ctx, client.ObjectKey{Namespace: metav1.NamespacePublic, Name: v1.ConfigMapQuery}, found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, cli.Fail(cli.ExitUnreachable, "ask an admin of the seed to set query.enabled of chart trellis-seed, which creates it",
			"the seed has no ConfigMap %q in namespace %q, which says where the query endpoint is", v1.ConfigMapQuery, metav1.NamespacePublic)
	case err != nil:
		return nil, err
	case !x509.NewCertPool().AppendCertsFromPEM([]byte(found.Data[v1.QueryCA])):
		return nil, unreachable("ConfigMap %q in namespace %q has no certificate authority yet", v1.ConfigMapQuery, metav1.NamespacePublic)
	}
	return &Endpoint{seed: seed, at: found.Data}, nil
}

func unreachable(format string, arguments ...any) error {
	return cli.Fail(cli.ExitUnreachable, hint, "the query endpoint can't be reached: "+format, arguments...)
}

// answer is what the endpoint answered.
type answer struct {
	status int
	// retryAfter is in how many seconds to ask again, if the answer says so: from 1 to mostWait.
	retryAfter int
	body       []byte
}

// Question is a request to the endpoint.
type Question struct {
	Path  string
	Query url.Values
	// Body is sent by POST as JSON; without one, the request is a GET.
	Body any
	// Right is what the caller lacks if the endpoint answers 404, such as "list addoninstallations in all namespaces".
	Right string
}

// Ask finds the endpoint of a seed, and decodes its answer to a question into a value. Errors: those of Find, ExitForbidden, ExitRefused.
func Ask(ctx context.Context, seed *cli.Platform, asked Question, into any) error {
	e, err := Find(ctx, seed)
	if err != nil {
		return err
	}
	found, err := e.call(ctx, asked)
	if err != nil {
		return err
	}
	if found.status != http.StatusOK {
		return e.refusal(found, asked.Right)
	}
	return decode(found.body, into)
}

// call sends a request until a replica answers it. An answer of 503 is tried at the other pods. Errors: ExitUnreachable with all that
// was tried.
func (e *Endpoint) call(ctx context.Context, asked Question) (found answer, err error) {
	if address := e.at[v1.QueryURL]; address != "" {
		if found, err = e.callURL(ctx, asked); err == nil || ctx.Err() != nil {
			return found, err
		}
		e.failed(address, err)
		delete(e.at, v1.QueryURL) // not tried again
	}
	pods, err := e.pods(ctx)
	if err != nil {
		e.failed("the pods of Service "+e.at[v1.QueryNamespace]+"/"+e.at[v1.QueryService], err)
	}
	answered := false
	for _, one := range pods {
		got, err := e.callThrough(ctx, one, asked)
		switch {
		case ctx.Err() != nil:
			return answer{}, ctx.Err()
		case err != nil:
			e.failed("a port-forward to pod "+one.name, err)
			continue
		}
		if found, answered = got, true; got.status != http.StatusServiceUnavailable {
			e.pod = one.name
			break
		}
	}
	if !answered {
		return answer{}, unreachable("%s", strings.Join(e.tried, "; "))
	}
	return found, nil
}

func (e *Endpoint) failed(what string, err error) {
	e.tried = append(e.tried, what+": "+text.Line(err.Error()))
}

// callURL sends a request to the URL.
func (e *Endpoint) callURL(ctx context.Context, asked Question) (answer, error) {
	at, err := url.Parse(e.at[v1.QueryURL])
	if err != nil || at.Scheme != "https" {
		return answer{}, errors.New("it is not an https URL")
	}
	return e.send(ctx, way{base: at}, asked)
}

// way is how a request reaches the endpoint.
type way struct {
	base *url.URL
	// serverName is verified in place of the URL's host; empty: the URL's host.
	serverName string
	// isLocal says that no proxy is used.
	isLocal bool
}

// send sends a request on a connection of its own: the next one may reach another replica.
func (e *Endpoint) send(ctx context.Context, by way, asked Question) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	carries, err := e.transport(by)
	if err != nil {
		return answer{}, err
	}
	request, err := asked.request(ctx, by.base)
	if err != nil {
		return answer{}, err
	}
	request.Close = true
	got, err := carries.RoundTrip(request) // follows no redirect
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = got.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(got.Body, mostAnswer))
	if err != nil {
		return answer{}, err
	}
	after, _ := strconv.Atoi(got.Header.Get("Retry-After"))
	return answer{got.StatusCode, min(max(1, after), mostWait), content}, nil
}

// request is the HTTP request of a question at a URL.
func (q Question) request(ctx context.Context, base *url.URL) (*http.Request, error) {
	at := base.JoinPath(q.Path)
	at.RawQuery = q.Query.Encode()
	if q.Body == nil {
		return http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	}
	body, err := json.Marshal(q.Body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), bytes.NewReader(body))
	if err == nil {
		request.Header.Set("Content-Type", "application/json")
	}
	return request, err
}

// transport sends requests with the caller's credentials over TLS that only the published authority verifies.
func (e *Endpoint) transport(by way) (http.RoundTripper, error) {
	config := rest.CopyConfig(e.seed.Config)
	config.Username, config.Password = "", "" // for the API server only
	settings, err := config.TransportConfig()
	if err != nil {
		return nil, err
	}
	tls := &settings.TLS
	tls.Insecure, tls.CAFile, tls.CAData, tls.ServerName = false, "", []byte(e.at[v1.QueryCA]), by.serverName
	if by.isLocal {
		settings.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	}
	return transport.New(settings)
}

// refusal is the error for an answer that is none of those that a caller expects.
func (e *Endpoint) refusal(of answer, right string) error {
	var status metav1.Status
	_ = json.Unmarshal(of.body, &status) // a proxy's answer has none
	message := text.Message(cmp.Or(status.Message, http.StatusText(of.status), strconv.Itoa(of.status)))
	switch of.status {
	case http.StatusUnauthorized:
		return cli.Fail(cli.ExitForbidden, "the kubeconfig needs a token, or a certificate of the API server's client CA",
			"the query endpoint does not accept the credentials of the kubeconfig")
	case http.StatusNotFound:
		return cli.Fail(cli.ExitForbidden, "ask an admin of the seed for it, or choose a namespace or cluster of yours",
			"you lack the right to %s", right)
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return cli.Fail(cli.ExitRefused, "", "the query endpoint refuses the request: %s", message)
	case http.StatusServiceUnavailable:
		return cli.Fail(cli.ExitUnreachable, "run the command again", "the query endpoint can't answer now: %s", message)
	}
	return cli.Fail(cli.ExitFailed, "", "the query endpoint answered with status %d: %s", of.status, message)
}
