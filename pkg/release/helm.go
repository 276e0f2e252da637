package release

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// HelmHistory is the number of revisions of a Helm release that are kept in the user cluster; helm's own default.
const HelmHistory = 10

// Helm's names for what it stores (pkg/storage of Helm).
const (
	helmSecretType = "helm.sh/release.v1"
	helmKey        = "release"
	helmKeyFormat  = "sh.helm.release.v1.%s.v%d"
	reservedValues = "kkp"
)

// HelmNameTakenError says that the user cluster has a Helm release of the name which is not ours.
type HelmNameTakenError struct{ Secret string }

// Error implements error.
func (e *HelmNameTakenError) Error() string {
	return fmt.Sprintf("the Helm release in Secret %q belongs to somebody else", e.Secret)
}

// HelmReleaseName is the Helm release's name for an installation: its own up to 53 characters, which is what Helm allows,
// else the first 44, "-" and 8 hex digits of the whole name's SHA-256.
func HelmReleaseName(installation string) string {
	if len(installation) <= 53 {
		return installation
	}
	sum := sha256.Sum256([]byte(installation))
	// A dot must not be followed by a dash.
	return strings.TrimRight(installation[:44], ".") + "-" + hex.EncodeToString(sum[:4])
}

// HelmObject builds Helm's own form of the record's release, labelled with the owner. It has no templates, no files and no
// value under kkp. Nil when the record is not of a Helm release.
func (r *Record) HelmObject() *helmrelease.Release {
	h := r.Helm
	if h == nil {
		return nil
	}
	config := maps.Clone(h.Config)
	delete(config, reservedValues)
	return &helmrelease.Release{
		Name: h.Name, Namespace: h.Namespace, Version: h.Revision,
		Chart: &chart.Chart{Metadata: &chart.Metadata{
			APIVersion: chart.APIVersionV2, Type: "application",
			Name: h.ChartName, Version: h.ChartVersion, AppVersion: h.AppVersion,
		}},
		Info: &helmrelease.Info{
			FirstDeployed: helmTime(h.FirstDeployed),
			LastDeployed:  helmTime(h.LastDeployed),
			Status:        helmrelease.Status(h.Status), Description: h.Description,
		},
		Config: config, Manifest: h.Manifest, Hooks: r.helmHooks(),
		Labels: map[string]string{v1.LabelInstallation: r.Owner().ID()},
	}
}

// WriteHelm writes a Helm release, made by HelmObject, into its namespace of the user cluster as Helm's Secrets driver does, so
// that helm shows it; secrets must be those of that namespace. An equal one is left alone, and then nothing is written at all. When
// its status is deployed, earlier revisions become superseded; those beyond HelmHistory go in any case. A revision that isNew is
// written without a look at what is there first. Errors: HelmNameTakenError, HelmCopyTooLargeError, or the API server's. What it
// returns is the resource version of the release's Secret, by which a change is known.
func WriteHelm(
	ctx context.Context, secrets corev1client.SecretInterface, rel *helmrelease.Release, isNew bool,
) (version string, err error) {
	shelf := &shelf{secrets: secrets, owner: rel.Labels[v1.LabelInstallation], isNew: isNew}
	stored, err := shelf.write(ctx, rel)
	if err != nil {
		return "", fmt.Errorf("writing revision %d of Helm release %q: %w", rel.Version, rel.Name, err)
	}
	if rel.Info.Status == helmrelease.StatusDeployed && rel.Version > 1 { // before the first there is none
		if err := shelf.supersede(ctx, rel); err != nil {
			return "", err
		}
	}
	if shelf.wrote && rel.Version > HelmHistory {
		return stored.ResourceVersion, shelf.trim(ctx, rel)
	}
	return stored.ResourceVersion, nil
}

// HelmSecret is the name of the Secret that shows a revision of a Helm release.
func (h *HelmRelease) HelmSecret() string { return fmt.Sprintf(helmKeyFormat, h.Name, h.Revision) }

// RemoveHelm deletes every revision of a Helm release that carries the owner's label, without reading any.
func RemoveHelm(ctx context.Context, secrets corev1client.SecretInterface, name string, owner ownership.Owner) error {
	err := secrets.DeleteCollection(ctx, metav1.DeleteOptions{}, ours(name, owner.ID()))
	if err != nil {
		return fmt.Errorf("removing Helm release %q: %w", name, err)
	}
	return nil
}

func (s *shelf) write(ctx context.Context, rel *helmrelease.Release) (*corev1.Secret, error) {
	plain, err := json.Marshal(rel)
	if err != nil {
		return nil, err
	}
	secret, err := helmSecret(rel.Name, rel.Version, rel.Info.Status, s.owner, plain)
	if err != nil {
		return nil, err
	}
	return s.put(ctx, secret)
}

// supersede marks earlier revisions that still look current. What can't be decoded is left as it is.
func (s *shelf) supersede(ctx context.Context, rel *helmrelease.Release) error {
	options := ours(rel.Name, s.owner,
		requirement("status", selection.In, "deployed", "pending-install", "pending-upgrade", "pending-rollback"),
		requirement("version", selection.NotIn, strconv.Itoa(rel.Version)))
	options.Limit = HelmHistory
	list, err := s.secrets.List(ctx, options)
	if err != nil {
		return fmt.Errorf("listing revisions of Helm release %q: %w", rel.Name, err)
	}
	for _, item := range list.Items[:min(len(list.Items), HelmHistory)] { // whatever was asked for, the answer is theirs
		if err := ctx.Err(); err != nil {
			return err
		}
		earlier, secret, err := superseded(ctx, item.Data[helmKey], s.owner)
		if err != nil || earlier.Version >= rel.Version || item.Name != fmt.Sprintf(helmKeyFormat, rel.Name, earlier.Version) ||
			earlier.Name != rel.Name {
			continue
		}
		if _, err := s.put(ctx, secret); err != nil {
			return fmt.Errorf("superseding revision %d of Helm release %q: %w", earlier.Version, rel.Name, err)
		}
	}
	return nil
}

// trim removes revisions older than the history. The one that is deployed stays, as it does with helm.
func (s *shelf) trim(ctx context.Context, rel *helmrelease.Release) error {
	var kept []string
	for i := range HelmHistory {
		kept = append(kept, strconv.Itoa(rel.Version-i))
	}
	err := s.secrets.DeleteCollection(ctx, metav1.DeleteOptions{}, ours(rel.Name, s.owner,
		requirement("version", selection.NotIn, kept...), requirement("status", selection.NotIn, "deployed")))
	if err != nil {
		return fmt.Errorf("trimming the history of Helm release %q: %w", rel.Name, err)
	}
	return nil
}

// ours selects the revisions of a release that carry the owner's label.
func ours(name, owner string, more ...labels.Requirement) metav1.ListOptions {
	selector := labels.SelectorFromSet(labels.Set{"owner": "helm", "name": name, v1.LabelInstallation: owner})
	return metav1.ListOptions{LabelSelector: selector.Add(more...).String(), FieldSelector: "type=" + helmSecretType}
}

// requirement takes constants and numbers only, which are always valid.
func requirement(key string, operator selection.Operator, values ...string) labels.Requirement {
	r, err := labels.NewRequirement(key, operator, values)
	if err != nil {
		return labels.Requirement{}
	}
	return *r
}
