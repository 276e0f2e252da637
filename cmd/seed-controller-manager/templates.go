package main

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	flags "github.com/trellis-addons/trellis/cmd/internal/manager"
	"github.com/trellis-addons/trellis/pkg/values/images"
)

// templateOptions are the flags about template data and rendered objects.
type templateOptions struct {
	mirrors       []string
	pullSecret    string
	variables     variables
	providerKinds []schema.GroupKind
}

func (o *templateOptions) register(set *flag.FlagSet) {
	flags.ListVar(set, &o.mirrors, "image-mirror",
		"replace a registry by a mirror in rendered objects: from=to, such as quay.io/prometheus=mirror.example.com/prometheus; "+
			"repeat it, or separate several by commas; the longest match is used",
		func(part string) ([]string, error) { return []string{part}, nil })
	set.StringVar(&o.pullSecret, "image-pull-secret", "",
		"name of a Secret for imagePullSecrets of pods with rewritten images; if --namespace has the Secret with label "+
			kubermaticv1.LabelUse+": "+kubermaticv1.UsePull+", the manager copies it to the pods' namespaces; "+
			"otherwise the Secret has to exist in these namespaces")
	o.variables = variables{"openvpn": {"NodeAccessNetwork": "10.254.0.0/16"}} // as in KKP
	set.Var(&o.variables, "addon-variable",
		"default of a key of .Variables in the templates of an add-on, as addon.Name=text; values override it; repeat the flag for more keys")
	flags.ListVar(set, &o.providerKinds, "provider-kinds",
		"kinds, comma-separated, that providerRef and objectRef of valuesFrom may name: Kind.group, such as BackupTarget.storage.example.com; "+
			"spec, status and data of their objects may become values, so they must not have secrets", providerKind)
}

// images are the rules for rendered objects.
func (o *templateOptions) images() (images.Rules, error) {
	mirrors, err := images.ParseMirrors(o.mirrors)
	return images.Rules{Mirrors: mirrors, PullSecret: o.pullSecret}, err
}

// variables is a flag of variables by add-on.
type variables map[string]map[string]any

func (v *variables) String() string {
	var all []string
	for _, addon := range slices.Sorted(maps.Keys(*v)) {
		for _, name := range slices.Sorted(maps.Keys((*v)[addon])) {
			all = append(all, fmt.Sprintf("%s.%s=%v", addon, name, (*v)[addon][name]))
		}
	}
	return strings.Join(all, ",")
}

// Set adds a variable.
func (v *variables) Set(text string) error {
	name, value, hasValue := strings.Cut(text, "=")
	addon, variable, hasName := strings.Cut(name, ".")
	if !hasValue || !hasName || addon == "" || variable == "" {
		return fmt.Errorf("addon variable %q: write it as addon.Name=text", name)
	}
	if *v == nil {
		*v = variables{}
	}
	if (*v)[addon] == nil {
		(*v)[addon] = map[string]any{}
	}
	(*v)[addon][variable] = value
	return nil
}

// providerKind reads a kind that providerRef and objectRef may name.
func providerKind(part string) ([]schema.GroupKind, error) {
	kind := schema.ParseGroupKind(part)
	if kind.Kind == "" || kind.Group == "" {
		return nil, fmt.Errorf("provider kind %q: write it as Kind.group", part)
	}
	return []schema.GroupKind{kind}, nil
}
