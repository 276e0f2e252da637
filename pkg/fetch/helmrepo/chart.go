package helmrepo

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/fetch/archive"
	"github.com/trellis-addons/trellis/pkg/fetch/outbound"
	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

const (
	archiveLimit  = 20 << 20
	metadataLimit = 1 << 20
	metadataFile  = "Chart.yaml"
)

// limits on a chart are Helm's own, so that all charts that Helm loads are accepted.
var limits = archive.Limits{Unpacked: 100 << 20, File: 5 << 20, Inflated: archive.Defaults.Inflated, Entries: archive.Defaults.Entries}

// Fetch unpacks the chart's archive, without its top folder. The digest is the archive's.
func (s *Source) Fetch(ctx context.Context, reference fetch.Reference, revision fetch.Revision, folder string) (string, error) {
	location, ok := reference.Location.(Location)
	if !ok {
		return "", errNoChart
	}
	ctx, cancel := s.network.Operation(ctx)
	defer cancel()
	file, err := archive.Nameless(ctx, filepath.Dir(folder))
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	bring := s.fromIndex
	if location.isOCI() {
		bring = s.fromRegistry
	}
	digest, err := bring(ctx, location, reference, revision, file)
	if err != nil {
		return "", err
	}
	if _, err := file.File.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	return digest, unpack(ctx, file.File, folder, location)
}

func (s *Source) fromIndex(
	ctx context.Context, location Location, reference fetch.Reference, revision fetch.Revision, file io.Writer,
) (string, error) {
	found, err := s.find(ctx, location, reference, false)
	if err != nil {
		return "", err
	}
	repository, err := s.repository(location)
	if err != nil {
		return "", err
	}
	at, err := archiveURL(repository, found.URL)
	if err != nil {
		return "", err
	}
	digest, err := s.download(ctx, outbound.Request{
		Method: http.MethodGet, URL: at, Origin: repository, Credentials: reference.Credentials, OtherHosts: true, Limit: archiveLimit,
	}, file)
	if err != nil {
		return "", err
	}
	if revision.Digest != "" && digest != revision.Digest {
		return "", &fetch.RefusedError{Subject: outbound.Shown(at), Rule: fmt.Sprintf(
			"its digest is %s, and the index says %s", digest, revision.Digest)}
	}
	return digest, nil
}

// archiveURL resolves a URL as Helm does: relative to the repository.
func archiveURL(repository *url.URL, text string) (*url.URL, error) {
	subject := outbound.Shown(repository)
	parsed, err := url.Parse(text)
	if err != nil {
		return nil, &fetch.RefusedError{Subject: subject, Rule: "the index has an address of the archive that is not a URL"}
	}
	if parsed.User != nil {
		return nil, &fetch.RefusedError{Subject: subject, Rule: "the index has a URL of the archive with a user part"}
	}
	if parsed.Scheme == "oci" {
		return nil, &fetch.RefusedError{Subject: subject, Rule: "the index refers to a registry for its archives, which is not supported: " +
			"set source.helm.url to the registry itself" + registryOf(parsed)}
	}
	base := *repository
	base.Path += "/"
	return base.ResolveReference(parsed), nil
}

// registryOf is the URL to set if an index names oci://host/path/chart:version; "" if unknown.
func registryOf(archive *url.URL) string {
	above := path.Dir(archive.Path)
	if archive.Host == "" || !path.IsAbs(above) || above == "/" {
		return ""
	}
	return ", " + strconv.Quote(cut(ociScheme+archive.Host+above))
}

// download writes the archive to the file and returns its digest. Other hosts get no credentials.
func (s *Source) download(ctx context.Context, request outbound.Request, file io.Writer) (string, error) {
	answer, err := s.network.Do(ctx, request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	if err := answer.Problem(fmt.Sprintf("chart archive %q", outbound.Shown(answer.URL))); err != nil {
		return "", err
	}
	hasher := sha256.New()
	if _, err := io.Copy(io.MultiWriter(file, hasher), answer.Body); err != nil {
		return "", err
	}
	return fmt.Sprintf("sha256:%x", hasher.Sum(nil)), nil
}

// unpack removes the archive's one top folder and checks that the content is the requested chart.
func unpack(ctx context.Context, file io.Reader, folder string, location Location) error {
	into, err := archive.OpenFolder(ctx, folder, limits)
	if err != nil {
		return err
	}
	defer into.Close()
	top := ""
	err = archive.Extract(ctx, file, into, func(name string) (string, bool, error) {
		first, rest, _ := strings.Cut(name, "/")
		if top == "" {
			top = first
		}
		if first != top {
			return "", false, &fetch.RefusedError{Subject: fmt.Sprintf("path %q", name), Rule: "it is outside of the chart's folder"}
		}
		return rest, rest != "", nil
	})
	if err != nil {
		return inChart(err, location)
	}
	return inChart(checkMetadata(folder, into, location), location)
}

func inChart(err error, location Location) error {
	refusal, ok := errors.AsType[*fetch.RefusedError](err)
	if !ok {
		return err
	}
	subject := fmt.Sprintf("chart %q version %q: %s", location.Chart, location.Version, refusal.Subject)
	return &fetch.RefusedError{Subject: subject, Rule: refusal.Rule}
}

// checkMetadata refuses an archive of another chart than the index names.
func checkMetadata(folder string, into *archive.Folder, location Location) error {
	refused := func(rule string) error { return &fetch.RefusedError{Subject: metadataFile, Rule: rule} }
	if !into.Has(metadataFile) {
		return refused("the archive has none in its top folder")
	}
	file, err := os.OpenInRoot(folder, metadataFile)
	if err != nil {
		return err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, metadataLimit+1))
	if err != nil {
		return err
	}
	var metadata struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	within := strictyaml.Limits{Bytes: metadataLimit, Depth: yamlDepth, Pieces: yamlPieces}
	if err := strictyaml.DecodeInto(content, within, &metadata); err != nil {
		return refused(fmt.Sprintf("it can't be read: it %v", err))
	}
	if metadata.Name != location.Chart {
		return refused(fmt.Sprintf("it names the chart %q", cut(metadata.Name)))
	}
	if metadata.Version != string(location.Version) && !sameVersion(string(location.Version))(version{Version: metadata.Version}) {
		return refused(fmt.Sprintf("it says version %q", cut(metadata.Version)))
	}
	return nil
}
