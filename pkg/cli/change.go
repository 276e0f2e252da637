package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
)

// FieldManager owns the fields that the command writes.
const FieldManager = client.FieldOwner("kubectl-addons")

// Change is what a verb does to an installation.
type Change func(ctx context.Context, seed *Platform, one *v1.AddonInstallation) error

// Changes completes a command that changes the installation of its argument: it adds flag --cluster, connects and finds
// the installation. Checks refuse a wrong call before that.
func (t *Tool) Changes(command *cobra.Command, change Change, checks ...func() error) *cobra.Command {
	t.ClusterFlag(command)
	command.Args, command.ValidArgsFunction = cobra.ExactArgs(1), t.Completes(1, t.InstallationNames)
	needs := slices.Clone(changesNeed)
	if own := command.Annotations[annotationRights]; own != "" {
		needs = append(needs, own)
	}
	if command.Flags().Lookup("wait") != nil {
		needs = append(needs, WaitNeeds)
	}
	command.Annotations = Needs(needs...)
	command.RunE = func(command *cobra.Command, arguments []string) error {
		for _, check := range checks {
			if err := check(); err != nil {
				return err
			}
		}
		seed, err := t.Seed(command.Context())
		if err != nil {
			return err
		}
		one, err := t.Named(command.Context(), seed, arguments[0])
		if err != nil {
			return err
		}
		return change(command.Context(), seed, one)
	}
	return command
}

// CheckOwned refuses what users may not do with a core installation or one of a set, and says who decides. Doing
// completes "can't be …". Errors: ExitRefused.
func CheckOwned(one *v1.AddonInstallation, doing string) error {
	set := one.Labels[v1.LabelSet]
	switch {
	case one.Spec.CoreAddon:
		return Fail(ExitRefused, "ask an admin of the seed to change ConfigMap custom-core-addons, the Core catalogue, or the setting of "+
			"the Cluster",
			"installation %q can't be %s: it is a core add-on of its cluster", one.Name, doing)
	case set != "":
		return Fail(ExitRefused, "change the set, or the clusters that it selects, on the master",
			"installation %q can't be %s: it belongs to AddonSet %q", one.Name, doing, set)
	}
	return nil
}

// NewInstallation is an installation of an add-on for a cluster; without a name it gets that of the add-on.
func NewInstallation(of target.Ref, demand Demand, name string) *v1.AddonInstallation {
	named := metav1.ObjectMeta{Namespace: of.Namespace, Name: cmp.Or(name, of.NameOf(demand.Addon))}
	made := WithKind(&v1.AddonInstallation{ObjectMeta: named})
	made.Spec.AddonRef = v1.AddonReference{Name: v1.AddonName(demand.Addon), Version: demand.Version}
	if !of.IsKKP() {
		made.Spec.ClusterName = of.Name
	}
	return made
}

// Annotating is a patch that sets an annotation.
func Annotating(key, value string) client.Patch {
	return Merging(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
}

// Merging is a patch that merges a content into an object.
func Merging(content map[string]any) client.Patch {
	encoded, _ := json.Marshal(content) // maps of texts and plain values always encode
	return client.RawPatch(types.MergePatchType, encoded)
}

// Setting is a patch that sets a field of the spec.
func Setting(field string, value any) client.Patch {
	return Merging(map[string]any{"spec": map[string]any{field: value}})
}

// Patch patches an object and prints what was done.
func (t *Tool) Patch(ctx context.Context, with *Platform, object client.Object, patch client.Patch, done string) error {
	if err := with.Patch(ctx, object, patch, FieldManager); err != nil {
		return Changed(err)
	}
	t.Done(object, done)
	return nil
}

// Changed explains a conflict with another writer; other errors stay as they are.
func Changed(err error) error {
	if apierrors.IsConflict(err) {
		return Fail(ExitFailed, "run the command again", "another client changed the object in the meantime: %w", err)
	}
	return err
}

// Done prints what a verb did to an installation or a set: kind.group/name and the text.
func (t *Tool) Done(object client.Object, done string) {
	kind := "addoninstallation"
	if _, isSet := object.(*v1.AddonSet); isSet {
		kind = "addonset"
	}
	fmt.Fprintf(t.Out, "%s.%s/%s %s\n", kind, v1.GroupVersion.Group, text.Line(object.GetName()), text.Line(done))
}

// PrintObject prints an installation for git, without what an API server adds.
func (t *Tool) PrintObject(o *Output, one *v1.AddonInstallation) error {
	return t.Print(o, Answer{Object: &unstructured.Unstructured{Object: Content(one)}})
}

// Content is an installation without what only an API server adds.
func Content(one *v1.AddonInstallation) map[string]any {
	content, _ := runtime.DefaultUnstructuredConverter.ToUnstructured(WithKind(one.DeepCopy())) // our own types always convert
	delete(content, "status")
	for _, field := range []string{"managedFields", "uid", "resourceVersion", "generation", "creationTimestamp"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	unstructured.RemoveNestedField(content, "spec", "coreAddon") // false
	return content
}
