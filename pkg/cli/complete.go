package cli

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

const (
	// completionTime is how long a shell waits for names.
	completionTime = 2 * time.Second
	// completionsShown is how many names it gets, and how many objects are listed for them.
	completionsShown = 200
)

// Names finds names for a completion, on the API server of the context.
type Names func(ctx context.Context, of *Platform, word string) ([]string, error)

// Completes completes the first arguments; if first is 0 all arguments, or the value of a flag. Nothing is completed if
// the API server does not answer in time, or refuses: no error is shown.
func (t *Tool) Completes(first int, names Names) cobra.CompletionFunc {
	return func(command *cobra.Command, arguments []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if first > 0 && len(arguments) >= first {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		t.ErrOut = io.Discard // warnings of the API server
		ctx, stop := context.WithTimeout(command.Context(), completionTime)
		defer stop()
		found := make(chan []string, 1)
		go func() { // discovery and programs for credentials don't end with the context
			var all []string
			if of, err := t.Connect(ctx); err == nil {
				all, _ = names(ctx, of, word)
			}
			found <- all
		}()
		var all []string
		select {
		case all = <-found:
		case <-ctx.Done():
		}
		all = slices.DeleteFunc(all, func(one string) bool {
			return !strings.HasPrefix(one, word) || text.Line(one) != one || strings.ContainsAny(one, " :") || slices.Contains(arguments, one)
		})
		slices.Sort(all)
		all = slices.Compact(all)
		return all[:min(len(all), completionsShown)], cobra.ShellCompDirectiveNoFileComp
	}
}

// metadataOf lists the names of objects, without their contents.
func metadataOf(
	ctx context.Context, of *Platform, kind string, options ...client.ListOption,
) ([]metav1.PartialObjectMetadata, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1.GroupVersion.WithKind(kind + "List"))
	err := of.List(ctx, list, append(options, client.Limit(completionsShown))...)
	return list.Items, err
}

// ClusterNames are the clusters with an available catalogue, of all namespaces or else of that of the caller.
func (t *Tool) ClusterNames(ctx context.Context, seed *Platform, _ string) ([]string, error) {
	isAvailable := client.MatchingLabels{v1.LabelRole: v1.RoleAvailable}
	found, err := metadataOf(ctx, seed, "AddonCatalogue", isAvailable)
	if err != nil {
		namespace, _ := t.Namespace()
		if namespace == "" {
			return nil, err
		}
		found, err = metadataOf(ctx, seed, "AddonCatalogue", isAvailable, client.InNamespace(namespace))
	}
	return NamesOf(found, func(one *metav1.PartialObjectMetadata) string { return clusterOf(one.ObjectMeta) }), err
}

// InstallationNames are the installations of the cluster or of the namespace.
func (t *Tool) InstallationNames(ctx context.Context, seed *Platform, _ string) ([]string, error) {
	of, err := t.Place(ctx, seed)
	if err != nil || of.Namespace == "" {
		return nil, err
	}
	found, err := metadataOf(ctx, seed, "AddonInstallation", client.InNamespace(of.Namespace))
	var names []string
	for _, one := range found {
		name, isOwn := one.Name, true
		if of.Name != "" {
			name, isOwn = of.ItemOf(one.Name)
		}
		if isOwn {
			names = append(names, name)
		}
	}
	return names, err
}

// SetNames are the AddonSets of the namespace, of all without one.
func (t *Tool) SetNames(ctx context.Context, of *Platform, _ string) ([]string, error) {
	namespace, err := t.Namespace()
	if err != nil {
		return nil, err
	}
	found, err := metadataOf(ctx, of, "AddonSet", client.InNamespace(namespace))
	return NamesOf(found, (*metav1.PartialObjectMetadata).GetName), err
}

// AddonNames are the add-ons that the cluster is offered; after "@" the versions of one.
func (t *Tool) AddonNames(ctx context.Context, seed *Platform, word string) ([]string, error) {
	_, available, err := t.Cluster(ctx, seed)
	if err != nil {
		return nil, err
	}
	addon, _, isVersion := strings.Cut(word, "@")
	var names []string
	for _, one := range available.Spec.Addons {
		if !isVersion {
			names = append(names, string(one.Name))
		} else if string(one.Name) == addon {
			for _, version := range one.Versions {
				names = append(names, addon+"@"+version.Version)
			}
		}
	}
	return names, nil
}
