package helmrelease

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	helm "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
)

// history is how many revisions of a release stay in the user cluster: helm's default.
const history = 10

// Helm's names for its stored releases (pkg/storage of Helm).
const (
	secretType = "helm.sh/release.v1"
	dataKey    = "release"
	nameFormat = "sh.helm.release.v1.%s.v%d"
)

// Write stores a Helm release, made by Object, as Helm's Secrets driver does, if it differs. A
// deployed one supersedes earlier revisions; those beyond history are deleted. One that isNew is
// created without a read. Errors: NameTakenError, CopyTooLargeError, or the API server's.
func Write(ctx context.Context, secrets corev1client.SecretInterface, rel *helm.Release, isNew bool) (version string, err error) {
	driver := &driver{secrets: secrets, owner: rel.Labels[v1.LabelInstallation], isNew: isNew}
	stored, err := driver.write(ctx, rel)
	if err != nil {
		return "", fmt.Errorf("writing revision %d of Helm release %q: %w", rel.Version, rel.Name, err)
	}
	if rel.Info.Status == helm.StatusDeployed && rel.Version > 1 { // there is none before the first
		if err := driver.supersede(ctx, rel); err != nil {
			return "", err
		}
	}
	if driver.wrote && rel.Version > history {
		return stored.ResourceVersion, driver.trim(ctx, rel)
	}
	return stored.ResourceVersion, nil
}

// Remove deletes every revision of a Helm release that carries the owner's label, without reading it.
func Remove(ctx context.Context, secrets corev1client.SecretInterface, name string, owner ownership.Owner) error {
	err := secrets.DeleteCollection(ctx, metav1.DeleteOptions{}, ours(name, owner.ID()))
	if err != nil {
		return fmt.Errorf("removing Helm release %q: %w", name, err)
	}
	return nil
}

func (s *driver) write(ctx context.Context, rel *helm.Release) (*corev1.Secret, error) {
	plain, err := json.Marshal(rel)
	if err != nil {
		return nil, err
	}
	packed, err := packRelease(plain)
	if err != nil {
		return nil, fmt.Errorf("packing revision %d of Helm release %q: %w", rel.Version, rel.Name, err)
	}
	return s.put(ctx, secretFor(rel.Name, rel.Version, rel.Info.Status, s.owner, packed))
}

// supersede marks earlier revisions that claim to be current; it skips undecodable ones.
func (s *driver) supersede(ctx context.Context, rel *helm.Release) error {
	options := ours(rel.Name, s.owner,
		requirement("status", selection.In, "deployed", "pending-install", "pending-upgrade", "pending-rollback"),
		requirement("version", selection.NotIn, strconv.Itoa(rel.Version)))
	options.Limit = history
	list, err := s.secrets.List(ctx, options)
	if err != nil {
		return fmt.Errorf("listing revisions of Helm release %q: %w", rel.Name, err)
	}
	for _, item := range list.Items[:min(len(list.Items), history)] { // the answer may exceed the limit
		if err := ctx.Err(); err != nil {
			return err
		}
		earlier, secret, err := superseded(ctx, item.Data[dataKey], s.owner)
		if err != nil || earlier.Version >= rel.Version || item.Name != fmt.Sprintf(nameFormat, rel.Name, earlier.Version) ||
			earlier.Name != rel.Name {
			continue
		}
		if _, err := s.put(ctx, secret); err != nil {
			return fmt.Errorf("superseding revision %d of Helm release %q: %w", earlier.Version, rel.Name, err)
		}
	}
	return nil
}

// trim removes revisions older than the history, except a deployed one, as helm does.
func (s *driver) trim(ctx context.Context, rel *helm.Release) error {
	var kept []string
	for i := range history {
		kept = append(kept, strconv.Itoa(rel.Version-i))
	}
	err := s.secrets.DeleteCollection(ctx, metav1.DeleteOptions{}, ours(rel.Name, s.owner,
		requirement("version", selection.NotIn, kept...), requirement("status", selection.NotIn, "deployed")))
	if err != nil {
		return fmt.Errorf("trimming the history of Helm release %q: %w", rel.Name, err)
	}
	return nil
}

func ours(name, owner string, more ...labels.Requirement) metav1.ListOptions {
	selector := labels.SelectorFromSet(labels.Set{"owner": "helm", "name": name, v1.LabelInstallation: owner})
	return metav1.ListOptions{LabelSelector: selector.Add(more...).String(), FieldSelector: "type=" + secretType}
}

// requirement takes only constants and numbers, which are always valid.
func requirement(key string, operator selection.Operator, values ...string) labels.Requirement {
	r, err := labels.NewRequirement(key, operator, values)
	if err != nil {
		return labels.Requirement{}
	}
	return *r
}
