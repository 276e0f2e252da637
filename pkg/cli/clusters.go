package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// fewClusters is how many named clusters get installations of their own. For more, AddonSets on the master select them.
const fewClusters = 5

// Clusters are the add-ons and clusters of verbs enable and disable: flag --names with --clusters, --selector or --all-clusters.
type Clusters struct {
	// Addons are those of --names, each once. Connect reads them.
	Addons []Demand
	// Names of --clusters, each as --cluster has it.
	Names    []string
	addons   []string
	selector string
	all      bool
}

// Flags adds the flags to a command. Flag --names is required, and exactly one of those for clusters.
func (c *Clusters) Flags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringSliceVar(&c.addons, "names", nil, "add-ons, as ADDON or ADDON@VERSION, separated by commas")
	_ = command.MarkFlagRequired("names")
	flags.StringSliceVar(&c.Names, "clusters", nil, "names of clusters, separated by commas")
	flags.StringVarP(&c.selector, "selector", "l", "", "label selector of clusters, such as env=prod, for an AddonSet on the master")
	flags.BoolVar(&c.all, "all-clusters", false, "all clusters of all seeds, for an AddonSet on the master")
	command.MarkFlagsMutuallyExclusive("clusters", "selector", "all-clusters")
	command.MarkFlagsOneRequired("clusters", "selector", "all-clusters")
}

// Connect connects to a seed if a few clusters are named. Otherwise, or if the context is a master alone, it connects to
// the master, and returns the namespace of AddonSets there. Errors: ExitUsage for wrong flags, ExitContext, ExitUnreachable.
func (c *Clusters) Connect(ctx context.Context, t *Tool) (found *Platform, sets string, err error) {
	if err := c.check(); err != nil {
		return nil, "", err
	}
	if found, err = t.Connect(ctx); err != nil {
		return nil, "", err
	}
	if found.IsSeed && len(c.Names) > 0 && len(c.Names) <= fewClusters {
		return found, "", nil
	}
	if found, sets, err = t.Master(ctx); err != nil {
		return nil, "", fmt.Errorf("AddonSets on the master select these clusters: %w", err)
	}
	return found, sets, nil
}

// check reads the add-ons. An empty name of a cluster would be the cluster of the context, which the caller did not name.
func (c *Clusters) check() error {
	c.Addons = nil
	for _, name := range c.addons {
		one, err := ParseDemand(name)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(c.Addons, func(other Demand) bool { return other.Addon == one.Addon }) {
			return Fail(ExitUsage, "name it once", "--names has add-on %q twice", one.Addon)
		}
		c.Addons = append(c.Addons, one)
	}
	if len(c.Addons) == 0 {
		return Fail(ExitUsage, "name add-ons with --names", "no add-on is named")
	}
	for at, name := range c.Names {
		if name == "" || slices.Contains(c.Names[:at], name) {
			return Fail(ExitUsage, "name each cluster once", "--clusters has an empty name, or %q twice", name)
		}
	}
	return nil
}

// selects chooses the clusters in an AddonSet. Errors: ExitUsage.
func (c *Clusters) selects() (*metav1.LabelSelector, error) {
	if c.all {
		return &metav1.LabelSelector{}, nil
	}
	names := slices.Sorted(slices.Values(c.Names))
	if len(names) == 0 {
		selector, err := metav1.ParseToLabelSelector(c.selector)
		if err != nil || strings.TrimSpace(c.selector) == "" {
			return nil, Fail(ExitUsage, "write it like env=prod,tier!=test, or use --all-clusters",
				"--selector %q is not a label selector", c.selector)
		}
		return selector, nil
	}
	if at := slices.IndexFunc(names, func(name string) bool { return strings.Contains(name, "/") }); at >= 0 {
		return nil, Fail(ExitUsage, "use --selector", "an AddonSet can't select cluster %q by namespace and name", names[at])
	}
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: v1.FactName, Operator: metav1.LabelSelectorOpIn, Values: names},
	}}, nil
}

// Set reads the AddonSet that enables an add-on in the clusters, or makes it if there is none. Its name follows from both, so
// that the same flags find it again. Errors: ExitUsage; ExitRefused for a set of this name that people changed or wrote.
func (c *Clusters) Set(ctx context.Context, master *Platform, namespace string, of Demand) (set *v1.AddonSet, exists bool, err error) {
	selector, err := c.selects()
	if err != nil {
		return nil, false, err
	}
	encoded, _ := json.Marshal(selector) // always encodes
	sum := sha256.Sum256([]byte(of.Addon + "\n" + string(encoded)))
	const most = 45
	short, name := strings.TrimRight(of.Addon[:min(most, len(of.Addon))], ".-"), v1.AddonName(of.Addon)
	made := &v1.AddonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "enabled-" + short + "-" + hex.EncodeToString(sum[:4])},
		Spec: v1.AddonSetSpec{Type: v1.AddonSetCustom, ClusterSelector: selector, Addons: []v1.AddonSetItem{
			{Name: name, AddonRef: v1.AddonReference{Name: name, Version: of.Version}},
		}},
	}
	set = &v1.AddonSet{}
	err = master.Get(ctx, client.ObjectKeyFromObject(made), set)
	switch {
	case apierrors.IsNotFound(err):
		return made, false, nil
	case err != nil:
		return nil, false, err
	case len(set.Spec.Addons) != 1 || set.Spec.Addons[0].AddonRef.Name != name,
		!equality.Semantic.DeepEqual(set.Spec.ClusterSelector, selector):
		return nil, false, Fail(ExitRefused, "edit or delete the set with kubectl",
			"AddonSet %q in namespace %q has other add-ons too, or selects other clusters than these flags", set.Name, namespace)
	}
	return set, true, nil
}
