package migrate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/values"
)

// Limits of what is read of each kind: objects, and objects in one answer.
const (
	mostObjects = 500
	pageSize    = 10
)

// kind is a kind of objects of another tool.
type kind struct {
	tool          tool
	version, kind string
	// read reads an object into its item. False: the object is not about the cluster.
	read func(*plan, fields, *item) bool
}

var (
	onSeed = []kind{
		{kkpAddon, v1.GroupVersion.String(), "Addon", (*plan).readAddon},
		{provider, "addons.cluster.x-k8s.io/v1alpha1", "HelmReleaseProxy", (*plan).readProxy},
	}
	inCluster = []kind{
		{application, "apps." + v1.GroupVersion.String(), "ApplicationInstallation", (*plan).readApplication},
		{flux, "helm.toolkit.fluxcd.io/v2", "HelmRelease", (*plan).readFlux},
	}
)

// fields are those of an object of another tool, any of which may be missing or of another type.
type fields map[string]any

func (f fields) text(path ...string) string {
	found, _, _ := unstructured.NestedString(f, path...)
	return found
}

// find finds everything that other tools installed. A Helm release belongs to the object that created it, if there is one.
func (p *plan) find(ctx context.Context) error {
	for _, one := range onSeed {
		if one.tool == kkpAddon && !p.of.IsKKP() {
			continue
		}
		if err := p.read(ctx, p.seed, one, client.InNamespace(p.of.Namespace)); err != nil {
			return err
		}
	}
	if p.user == "" {
		p.notes = append(p.notes, "the user cluster was not read: --user-kubeconfig names its kubeconfig")
		return nil
	}
	user, err := p.UserCluster(ctx, p.user)
	if err != nil {
		return err
	}
	p.readFrom = user.Server
	for _, one := range inCluster {
		if err := p.read(ctx, user, one); err != nil {
			return err
		}
	}
	return p.releases(ctx, user)
}

// read reads all objects of a kind, if the API server has it.
func (p *plan) read(ctx context.Context, from *cli.Platform, of kind, options ...client.ListOption) error {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(of.version)
	list.SetKind(of.kind + "List")
	listing := cli.Listing{Into: list, Most: mostObjects, Options: append(options, client.Limit(pageSize))}
	isCut, err := cli.Each(ctx, from, listing, func(one *unstructured.Unstructured) error {
		found := &item{tool: of.tool, name: one.GetName(), from: fmt.Sprintf("%s %s/%s", of.tool, one.GetNamespace(), one.GetName())}
		if of.read(p, one.Object, found) {
			p.items = append(p.items, found)
		}
		return nil
	})
	switch {
	case meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading objects of kind %s: %w", of.kind, err)
	case isCut:
		p.notes = append(p.notes, fmt.Sprintf("only the first %d objects of kind %s were read", mostObjects, of.kind))
	}
	return nil
}

func (p *plan) readAddon(of fields, one *item) bool {
	one.addon = of.text("spec", "name")
	one.take(of, "spec", "variables")
	return true
}

func (p *plan) readApplication(of fields, one *item) bool {
	one.addon, one.version = of.text("spec", "applicationRef", "name"), of.text("spec", "applicationRef", "version")
	one.namespace, one.release = of.text("spec", "namespace", "name"), of.text("status", "helmRelease", "name")
	one.take(of, "spec", "values")
	one.takeText(of.text("spec", "valuesBlock"))
	if one.release == "" {
		one.release = of.text("metadata", "namespace") + "-" + one.name // as KKP will name it
		one.fails("KKP has not installed it")
	}
	one.name = one.release
	return true
}

func (p *plan) readFlux(of fields, one *item) bool {
	one.addon = of.text("spec", "chart", "spec", "chart")
	one.namespace = cmp.Or(of.text("spec", "targetNamespace"), of.text("metadata", "namespace"))
	one.release = cmp.Or(of.text("spec", "releaseName"), strings.TrimPrefix(of.text("spec", "targetNamespace")+"-"+one.name, "-"))
	history, _, _ := unstructured.NestedSlice(of, "status", "history")
	if len(history) > 0 {
		last, _ := history[0].(map[string]any)
		newest := fields(last)
		one.addon, one.version = newest.text("chartName"), newest.text("chartVersion")
		one.namespace, one.release = newest.text("namespace"), newest.text("name")
	}
	one.name = one.release
	one.take(of, "spec", "values")
	if others, _, _ := unstructured.NestedSlice(of, "spec", "valuesFrom"); len(others) > 0 {
		one.fails("spec.valuesFrom is not carried over: use spec.valuesFrom of an installation with a Secret or ConfigMap on the seed")
	} else if len(history) == 0 {
		one.fails("Flux has not installed it")
	}
	return true
}

func (p *plan) readProxy(of fields, one *item) bool {
	one.addon, one.version = of.text("spec", "chartName"), of.text("spec", "version")
	one.namespace, one.release = of.text("spec", "namespace"), of.text("spec", "releaseName")
	one.name = one.release
	one.takeText(of.text("spec", "values"))
	if one.release == "" {
		one.fails("it has no release yet")
	}
	return of.text("spec", "clusterRef", "name") == p.of.Name
}

// take takes the values of a field.
func (i *item) take(of fields, path ...string) {
	if found, isSet, _ := unstructured.NestedFieldNoCopy(of, path...); isSet {
		encoded, err := json.Marshal(found)
		i.decode(encoded, err)
	}
}

// takeText takes values in YAML, if there are any.
func (i *item) takeText(content string) {
	if content != "" {
		i.decode([]byte(content), nil)
	}
}

func (i *item) decode(content []byte, err error) {
	if len(content) > values.MaxBytes {
		err = errors.New("they are too large")
	}
	if err == nil {
		i.values, err = values.Decode(content)
	}
	if err == nil {
		_, _, err = values.Merge([]values.Layer{{Origin: "it", Values: i.values}})
	}
	if err != nil {
		i.fails("its values can't be read: %v", err)
	}
}
