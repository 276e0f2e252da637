// Package upgrade is the verb that changes the version or the values of an installation.
package upgrade

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/cli/endpoint"
)

const example = `  # Upgrade to a version, after a confirmation
  kubectl addons upgrade prometheus --cluster 47s2ddlfgj --version 2.0.0

  # Change one value; all others stay
  kubectl addons upgrade prometheus --cluster 47s2ddlfgj --set replicas=3 --yes --wait

  # Replace all values
  kubectl addons upgrade prometheus --cluster 47s2ddlfgj --reset-values --values prometheus.yaml`

type options struct {
	*cli.Tool
	given         cli.Given
	consent       cli.Consent
	wait          cli.Wait
	version       string
	setsVersion   bool
	reset, reuse  bool
	allowsToLower bool
	isLive        bool
}

// Command makes the command.
func Command(tool *cli.Tool) *cobra.Command {
	o := &options{Tool: tool}
	command := &cobra.Command{
		Use:   "upgrade NAME",
		Short: "Change the version or the values of an installation",
		Long: "Change the version or the values of an installation. The present values stay, except for those that --values and --set " +
			"replace; with --reset-values, none is kept.\n\n" +
			"It shows what changes, with a preview of the objects, and asks; without a terminal, --yes is required. If nothing changes, it fails.",
		Example: example, Annotations: cli.Needs("get addoncatalogues with --version"),
	}
	o.given.Flags(command)
	o.consent.Flag(command)
	o.wait.Flags(command, "it is Ready")
	endpoint.LiveFlag(command, &o.isLive)
	flags := command.Flags()
	flags.StringVar(&o.version, "version", "", "version or range; empty: the newest that fits; default: as before")
	flags.BoolVar(&o.reset, "reset-values", false, "drop the present values")
	flags.BoolVar(&o.reuse, "reuse-values", false, "keep the present values, and merge the given ones; this is the default")
	flags.BoolVar(&o.allowsToLower, "allow-downgrade", false, "allow a lower version, by an annotation that stays on the installation")
	command.MarkFlagsMutuallyExclusive("reset-values", "reuse-values")
	return tool.Changes(command, o.run, func() error {
		o.setsVersion = flags.Changed("version")
		return cli.CheckVersion(o.version)
	}, func() error { return o.given.CheckInput(&o.consent) }, func() error { return o.consent.Check(tool) }, o.wait.Check)
}

func (o *options) run(ctx context.Context, seed *cli.Platform, present *v1.AddonInstallation) error {
	change, err := o.change(present)
	if err != nil {
		return err
	}
	if err := o.checkOffer(ctx, seed, present, &change); err != nil {
		return err
	}
	return o.write(ctx, seed, present, change)
}

// change is what the patch of an installation does.
type change struct {
	// operations of a JSON patch, which also sends null values.
	operations []map[string]any
	facts      []string
	version    string
	values     map[string]any
	isVersion  bool
	isValues   bool
}

func (c *change) add(operation, path string, value any) {
	one := map[string]any{"op": operation, "path": path}
	if operation != "remove" {
		one["value"] = value
	}
	c.operations = append(c.operations, one)
}

// change compares an installation with what the caller asks for. Errors: ExitNo if nothing differs, ExitRefused for
// installations that others own.
func (o *options) change(present *v1.AddonInstallation) (change, error) {
	made := change{version: present.Spec.AddonRef.Version}
	if present.DeletionTimestamp != nil {
		return made, cli.Fail(cli.ExitRefused, "", "installation %q is being removed", present.Name)
	}
	if o.setsVersion && o.version != made.version {
		if err := cli.CheckOwned(present, "moved to another version"); err != nil {
			return made, err
		}
		o.changeVersion(present, &made)
	}
	if o.allowsToLower && present.Annotations[v1.AnnotationAllowDowngrade] != "true" {
		if err := cli.CheckOwned(present, "changed to allow a lower version"); err != nil {
			return made, err
		}
		if len(present.Annotations) == 0 {
			made.add("add", "/metadata/annotations", map[string]any{})
		}
		made.add("add", "/metadata/annotations/"+strings.ReplaceAll(v1.AnnotationAllowDowngrade, "/", "~1"), "true")
		made.facts = append(made.facts, "  lower versions:   allowed, until annotation "+v1.AnnotationAllowDowngrade+" is removed")
	}
	if err := o.changeValues(present, &made); err != nil {
		return made, err
	}
	if len(made.operations) == 0 {
		return made, cli.Fail(cli.ExitNo, "give --version, --set or --values",
			"nothing changes: installation %q has this version and these values", present.Name)
	}
	return made, nil
}

func (o *options) changeVersion(present *v1.AddonInstallation, made *change) {
	before, installed := present.Spec.AddonRef, ""
	made.version, made.isVersion = o.version, true
	if present.Status.Version != "" {
		installed = fmt.Sprintf(" (installed: %s)", present.Status.Version)
	}
	if o.version == "" {
		made.add("remove", "/spec/addonRef/version", nil)
	} else {
		made.add("add", "/spec/addonRef/version", o.version)
	}
	if before.Digest != "" { // it pins content of the version before
		made.add("remove", "/spec/addonRef/digest", nil)
		made.facts = append(made.facts, "  digest:           removed")
	}
	const newest = "the newest that fits"
	made.facts = append(made.facts,
		fmt.Sprintf("  version:          %s%s -> %s", cmp.Or(before.Version, newest), installed, cmp.Or(o.version, newest)))
}

func (o *options) changeValues(present *v1.AddonInstallation, made *change) error {
	before, err := cli.ReadValues(present.Spec.Values)
	if err != nil && !o.reset {
		return &cli.Error{Code: cli.ExitRefused, Hint: "replace them with --reset-values", Err: err}
	}
	below := before
	if o.reset {
		below = nil
	}
	if made.values, err = o.given.Values(o.Tool, below); err != nil {
		return err
	}
	facts := differences(before, made.values)
	if len(facts) == 0 {
		return nil
	}
	made.isValues = true
	made.facts = append(made.facts, facts...)
	if raw := cli.RawValues(made.values); raw != nil {
		made.add("add", "/spec/values", json.RawMessage(raw.Raw))
	} else {
		made.add("remove", "/spec/values", nil)
	}
	return nil
}

// differences names the paths of values that are added, changed and removed; not the values.
func differences(before, after map[string]any) (facts []string) {
	oldPaths, olds := cli.Paths(before)
	newPaths, news := cli.Paths(after)
	for _, path := range newPaths {
		switch old, had := olds[path]; {
		case !had:
			facts = append(facts, "  value added:      "+path)
		case old != news[path]:
			facts = append(facts, "  value changed:    "+path)
		}
	}
	for _, path := range oldPaths {
		if _, has := news[path]; !has {
			facts = append(facts, "  value removed:    "+path)
		}
	}
	return facts
}

// checkOffer refuses a version that the cluster is not offered, and values that its form refuses.
func (o *options) checkOffer(ctx context.Context, seed *cli.Platform, present *v1.AddonInstallation, made *change) error {
	demand := cli.Demand{
		Addon: string(present.Spec.AddonRef.Name), Version: made.version, Installed: present.Status.Version,
		Downgrade: o.allowsToLower || present.Annotations[v1.AnnotationAllowDowngrade] == "true",
	}
	if !made.isVersion {
		demand.Version = cmp.Or(present.Status.Target, made.version)
	} else {
		of := cli.ClusterOf(present)
		var available v1.AddonCatalogue
		err := seed.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: of.AvailableName()}, &available)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		} else if err == nil {
			if demand.Version, err = cli.Choose(&available, demand); err != nil {
				return err
			}
		}
	}
	hasOthers := len(present.Spec.ValuesFrom) > 0 || present.Spec.ValuesTemplate != "" || present.Spec.CoreAddon
	if hasOthers || demand.Version == "" || !made.isValues && !made.isVersion {
		return nil // admission checks them
	}
	return cli.CheckForm(ctx, seed, demand, made.values)
}

// write has admission check the patch, shows it, asks, and writes it, unless the object changed meanwhile.
func (o *options) write(ctx context.Context, seed *cli.Platform, present *v1.AddonInstallation, made change) error {
	made.add("replace", "/metadata/resourceVersion", present.ResourceVersion)
	encoded, err := json.Marshal(made.operations)
	if err != nil {
		return err
	}
	patch := client.RawPatch(types.JSONPatchType, encoded)
	changed := present.DeepCopy()
	if err := seed.Patch(ctx, changed, patch, cli.FieldManager, client.DryRunAll); err != nil {
		return cli.Changed(err)
	}
	facts := append([]string{fmt.Sprintf("AddonInstallation %q in namespace %q:", present.Name, present.Namespace)}, made.facts...)
	if o.consent.Asks() {
		facts = append(facts, endpoint.Foresee(ctx, o.Tool, seed, changed, o.isLive)...)
	}
	if err := o.consent.Ask(ctx, o.Tool, facts, "Change it?"); err != nil {
		return err
	}
	if err := o.Patch(ctx, seed, present, patch, "changed"); err != nil {
		return err
	}
	return o.wait.Ready(ctx, o.Tool, seed, present)
}
