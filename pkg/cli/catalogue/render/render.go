// Package render is the verb that renders a version of an add-on in files of a catalogue, without a seed.
package render

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/printers"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/fetch"
	"github.com/trellis-addons/trellis/pkg/install/rendering"
	"github.com/trellis-addons/trellis/pkg/render"
	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
	"github.com/trellis-addons/trellis/pkg/values/templatedata"
)

// Example has calls for the help.
const Example = `  # The newest version that fits a cluster, with files from a folder instead of its source
  kubectl addons catalogue render catalogue.yaml web --cluster-file cluster.yaml --content ./web

  # A version from its source, with values
  kubectl addons catalogue render ./catalogue web@1.2.0 --cluster-file cluster.yaml --values web.yaml --set replicas=2`

// Local reads and renders versions on the caller's machine.
type Local interface {
	Read(ctx context.Context, version *v1.AddonVersion, look func(context.Context, fetch.Snapshot) error) error
	Objects(ctx context.Context, of rendering.Trials) (render.Result, map[string]any, error)
	Close()
}

type options struct {
	*cli.Tool
	open                          func() (Local, error)
	given                         cli.Given
	cluster, content, kkp, target string
}

// Command makes the verb. Open is called for each rendering.
func Command(open func() (Local, error)) cli.Verb {
	return func(tool *cli.Tool) *cobra.Command {
		o := &options{Tool: tool, open: open}
		command := &cobra.Command{
			Use:   "render FILE|FOLDER|- ADDON[@VERSION|@RANGE]",
			Short: "Print the objects of a version for a cluster, without a seed",
			Long: "Print the manifests that a version of an add-on renders to, for a Cluster in a file, with the renderers of a seed. It\n" +
				"calls no API server. It fetches the source of the version, unless --content names a folder with the files.\n\n" +
				"The Cluster is one of KKP, or one of Cluster API with spec.topology.version. Labels that Trellis adds, mirrors of images, and\n" +
				"objects that function lookup would find are not in the output.",
			Example: Example, Args: cobra.ExactArgs(2), Annotations: cli.Needs(),
			RunE: func(command *cobra.Command, arguments []string) error {
				return o.run(command.Context(), arguments[0], arguments[1])
			},
		}
		o.given.Flags(command)
		flags := command.Flags()
		flags.StringVar(&o.cluster, "cluster-file", "", "`FILE` with the Cluster, in YAML")
		flags.StringVar(&o.content, "content", "", "`FOLDER` with the files of the version, instead of its source")
		flags.StringVar(&o.kkp, "kkp-version", "", "version of KKP, for constraints")
		flags.StringVar(&o.target, "target-namespace", "", "namespace in the cluster; default: the catalogue's, or the name of the add-on")
		_ = command.MarkFlagRequired("cluster-file")
		return command
	}
}

func (o *options) run(ctx context.Context, path, argument string) error {
	demand, err := cli.ParseDemand(argument)
	if err != nil {
		return err
	}
	given, err := o.given.Values(o.Tool, nil)
	if err != nil {
		return err
	}
	cluster, err := readCluster(o.cluster)
	if err != nil {
		return err
	}
	files, err := o.Content(ctx, path)
	if err == nil {
		err = files.Check(ctx, "")
	}
	if err != nil {
		return cli.Invalid(err)
	}
	addon, version, err := choose(files.Addons, demand, catalogue.Platform{KKPVersion: o.kkp, K8sVersion: cluster.Kubernetes})
	if err != nil {
		return err
	}
	installation := &v1.AddonInstallation{}
	installation.Name = demand.Addon
	installation.Spec.TargetNamespace = cmp.Or(o.target, addon.TargetNamespace, demand.Addon)
	installation.Spec.Values = cli.RawValues(given)
	result, err := o.objects(ctx, rendering.Trials{
		Addon: demand.Addon, Version: version, Installation: installation,
		Data: cluster.Data, CAPI: cluster.CAPI, Kubernetes: cluster.Kubernetes,
	})
	if untried, isUntried := errors.AsType[*rendering.UntriedError](err); isUntried {
		err = untried.Err
	}
	if _, isCoded := errors.AsType[*cli.Error](err); err != nil && !isCoded {
		err = cli.Fail(cli.ExitNo, "", "version %q of add-on %q: %w", version.Version, demand.Addon, err)
	}
	if err != nil {
		return err
	}
	return o.print(result)
}

// objects renders a version with the content of its source, or of a folder.
func (o *options) objects(ctx context.Context, of rendering.Trials) (found render.Result, err error) {
	local, err := o.open()
	if err != nil {
		return found, err
	}
	defer local.Close()
	look := func(ctx context.Context, content fs.FS) (err error) {
		of.Content = content
		found, _, err = local.Objects(ctx, of)
		return err
	}
	if o.content != "" {
		root, err := os.OpenRoot(o.content)
		if err != nil {
			return found, &cli.Error{Code: cli.ExitUsage, Hint: "name a folder with --content", Err: err}
		}
		defer func() { _ = root.Close() }()
		return found, look(ctx, root.FS())
	}
	err = local.Read(ctx, of.Version, func(ctx context.Context, content fetch.Snapshot) error { return look(ctx, content.FS) })
	return found, err
}

// limits are those of a file with a Cluster.
var limits = strictyaml.Limits{Bytes: 1 << 20, Depth: 64, Pieces: 20_000}

// readCluster reads a file with a Cluster. Errors: ExitUsage.
func readCluster(file string) (templatedata.InFile, error) {
	opened, err := os.Open(file)
	if err != nil {
		return templatedata.InFile{}, &cli.Error{Code: cli.ExitUsage, Hint: "name a file with a Cluster with --cluster-file", Err: err}
	}
	defer func() { _ = opened.Close() }()
	content, err := io.ReadAll(io.LimitReader(opened, int64(limits.Bytes)+1))
	if err != nil {
		return templatedata.InFile{}, &cli.Error{Code: cli.ExitUsage, Err: err}
	}
	decoded, err := strictyaml.Decode(content, limits)
	var found templatedata.InFile
	if err == nil {
		object, _ := decoded.(map[string]any)
		found, err = templatedata.OfFile(object)
	}
	if err != nil {
		return found, cli.Fail(cli.ExitUsage, "write a Cluster with its version of Kubernetes", "--cluster-file %q: %w", file, err)
	}
	return found, nil
}

// choose is the version of a demand that fits a platform. Errors: ExitNotFound with the nearest name, ExitNo with the
// reason why none fits.
func choose(addons []v1.Addon, demand cli.Demand, platform catalogue.Platform) (*v1.Addon, *v1.AddonVersion, error) {
	at := slices.IndexFunc(addons, func(one v1.Addon) bool { return string(one.Name) == demand.Addon })
	if at < 0 {
		known := cli.NamesOf(addons, func(one *v1.Addon) string { return string(one.Name) })
		return nil, nil, cli.Nearest("add-on", demand.Addon, known)
	}
	selection, refusal := catalogue.Select(catalogue.EntryOf(addons[at]), demand.Version, "", platform, catalogue.SelectOptions{})
	switch {
	case refusal != nil:
		return nil, nil, &cli.Error{Code: cli.ExitNo, Err: refusal}
	case selection.Version.Template == nil || selection.Version.Source == nil:
		return nil, nil, cli.Fail(cli.ExitNo, "add them to the catalogue", "version %q of add-on %q has no template and no source",
			selection.Version.Version, demand.Addon)
	}
	return &addons[at], selection.Version, nil
}

// print prints all objects, those of hooks last.
func (o *options) print(result render.Result) error {
	all := slices.Clone(result.Objects)
	if result.Chart != nil {
		for _, hook := range result.Chart.Hooks {
			all = append(all, hook.Object)
		}
	}
	var made bytes.Buffer
	printer := &printers.YAMLPrinter{}
	for _, object := range all {
		if err := printer.PrintObj(&unstructured.Unstructured{Object: object.Object}, &made); err != nil {
			return err
		}
	}
	return o.Write(made.String())
}
