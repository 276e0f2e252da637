package sourcecheck

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"net"
	"strings"
	"time"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/install/rendering"
	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

// look checks one source. An error says that the check was not possible.
func (r *Reconciler) look(ctx context.Context, of item) (outcome, error) {
	reference, err := r.Source(ctx, of.version.Source)
	if err != nil { // the master reports a missing Secret
		return outcome{}, err
	}
	reference.Owner = of.catalogue
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(r.Options.FetchWithin, func() { cancel(errSlow) })
	defer late.Stop()
	var content string
	err = r.Store.Try(ctx, reference, func(ctx context.Context, found fetch.Snapshot) error {
		late.Stop() // rendering has its own limit
		content = catalogue.ContentKey(found.Digest)
		if known := of.fault; known != nil && known.Content == content {
			return errKnown
		}
		return Check(ctx, r.Trial, of.use.Addon, of.version, found.FS)
	})
	reason, ofSource := fetch.Reason(err)
	failed, ofRendering := errors.AsType[*rendering.Error](err)
	_, untried := errors.AsType[*rendering.UntriedError](err)
	switch {
	case errors.Is(context.Cause(ctx), errSlow):
		return outcome{}, errSlow
	case err == nil, untried:
		return outcome{checked: true, unrendered: untried}, nil
	case errors.Is(err, errKnown):
		return outcome{checked: true, fault: of.fault}, nil
	case ofRendering:
		fault := catalogue.NewSourceFault(rendering.Reason(failed), failed.Error())
		fault.Content = content
		return outcome{checked: true, fault: &fault}, nil
	case ofSource:
		fault := catalogue.NewSourceFault(reason, shown(err))
		return outcome{checked: true, fault: &fault}, nil
	}
	return outcome{}, err
}

// errSlow says that the fetch of a check was aborted.
var errSlow = errors.New("fetching the source takes longer than the time limit of a check; installations have more time")

// errKnown says that this process rendered the content before, with a fault.
var errKnown = errors.New("rendered before")

// Check checks whether content has the files that a version's method renders, and renders it. Errors are those of
// package fetch about content, and those of a Trial.
func Check(ctx context.Context, trial *rendering.Trial, addon string, version *v1.AddonVersion, content fs.FS) error {
	if err := presence(version.Template.Method, content); err != nil {
		return err
	}
	return trial.Render(ctx, addon, version, content)
}

// shown is the text of an error for authors of catalogues, who may have no right to see this seed's network: the
// reason why a host is unreachable would reveal ports and addresses behind it, and a certificate or a host's key
// would reveal names.
func shown(err error) string {
	if refused, ok := errors.AsType[*fetch.RefusedError](err); ok && strings.HasPrefix(refused.Rule, ofHostKey) {
		return refused.Subject + ": its host key or host certificate does not match known_hosts"
	}
	unavailable, ok := errors.AsType[*fetch.UnavailableError](err)
	if !ok {
		return err.Error()
	}
	_, isCertificate := errors.AsType[*tls.CertificateVerificationError](err)
	name, isName := errors.AsType[*net.DNSError](err)
	switch {
	case isName && name.IsNotFound:
		return unavailable.Subject + ": no such host"
	case isCertificate:
		return unavailable.Subject + ": " + certificateProblem(err)
	case strings.HasPrefix(unavailable.Err.Error(), answered):
		return err.Error()
	}
	return unavailable.Subject + ": it can't be reached, or closes the connection"
}

const (
	// answered begins the text about a server that answers by http.
	answered = "the server answers with status "
	// ofHostKey begins the text about an ssh host's key or certificate.
	ofHostKey = "its host "
)

// certificateProblem is a text without names of the certificate.
func certificateProblem(err error) string {
	_, isUnknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, isOther := errors.AsType[x509.HostnameError](err)
	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case isUnknown:
		return "its certificate is signed by an unknown authority: set caSecretRef to a Secret with the CA certificate"
	case isOther:
		return "its certificate is for another host name"
	case isInvalid && invalid.Reason == x509.Expired:
		return "its certificate has expired, or is not valid yet"
	}
	return "its certificate is not valid"
}

const (
	metadataFile = "Chart.yaml"
	// metadataLimit is the maximal number of bytes of a Chart.yaml, metadataDepth of its levels, metadataPieces of its values.
	metadataLimit  = 1 << 20
	metadataDepth  = 64
	metadataPieces = 20_000
	manifests      = ".yaml"
)

// presence checks whether content has the files that a method renders.
func presence(method v1.Method, content fs.FS) error {
	if catalogue.TraitsOf(method).IsChart {
		return hasChart(content)
	}
	return hasManifests(content)
}

func hasChart(content fs.FS) error {
	file, err := content.Open(metadataFile)
	if errors.Is(err, fs.ErrNotExist) {
		return &fetch.NotFoundError{What: metadataFile + " in the source's path", Mend: "name the chart's own folder in path"}
	}
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	read, err := io.ReadAll(io.LimitReader(file, metadataLimit+1))
	if err != nil {
		return err
	}
	var metadata struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	within := strictyaml.Limits{Bytes: metadataLimit, Depth: metadataDepth, Pieces: metadataPieces}
	if err := strictyaml.DecodeInto(read, within, &metadata); err != nil {
		return &fetch.RefusedError{Subject: metadataFile, Rule: err.Error()}
	}
	if metadata.Name == "" || metadata.Version == "" {
		return &fetch.RefusedError{Subject: metadataFile, Rule: "it has no name or no version"}
	}
	return nil
}

var errFound = errors.New("found")

func hasManifests(content fs.FS) error {
	err := fs.WalkDir(content, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && strings.HasSuffix(name, manifests) {
			return errFound
		}
		return err
	})
	switch {
	case errors.Is(err, errFound):
		return nil
	case err != nil:
		return err
	}
	return &fetch.NotFoundError{What: "a *" + manifests + " file in the source's path"}
}
