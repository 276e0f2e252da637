package set

import (
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/spf13/cobra"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/cli/endpoint"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/pkg/values/strictyaml"
)

// mostSet is how many bytes a file with an AddonSet may have.
const mostSet = 320 << 10

const previewExample = `  # What would an edit of a set do on this seed?
  kubectl addons set preview monitoring.yaml

  # The live set with another version, which is not written yet
  kubectl --context master get addonset monitoring -o yaml | sed 's/1.2.0/1.3.0/' | kubectl addons set preview -`

// preview makes the command that shows what a set would do.
func preview(tool *cli.Tool) *cobra.Command {
	return tool.Reads(&cobra.Command{
		Use: "preview FILE|-", Short: "Show what an AddonSet in a file would do on a seed, before it is written",
		Long: "Show which clusters of a seed an AddonSet in a file would change, by group: installations to install, update and remove, and\n" +
			"what would be blocked. Nothing is written. Run it once for each seed. Exit code 1: something would change.",
		Example: previewExample, Args: cobra.ExactArgs(1),
		Annotations: cli.Needs("list addoninstallations in all namespaces", "list addoncatalogues in the catalogue namespace",
			"list addonsets in the catalogue namespace"),
	}, func(ctx context.Context, seed *cli.Platform, arguments []string) (cli.Answer, error) {
		name, set, err := readFile(tool, arguments[0])
		if err != nil {
			return cli.Answer{}, err
		}
		var made view.SetPreview
		err = endpoint.Ask(ctx, seed, endpoint.Question{
			Path: "api/v1/sets/" + name + "/preview", Body: set,
			Right: "list addoninstallations.kubermatic.k8c.io in all namespaces, and addoncatalogues.kubermatic.k8c.io and " +
				"addonsets.kubermatic.k8c.io in the catalogue namespace",
		}, &made)
		if err != nil {
			return cli.Answer{}, err
		}
		answer := cli.Answer{Tables: made.Tables(), Notes: []string{made.Summary()}, IsNo: len(made.Clusters) > 0}
		if made.Truncated {
			answer.Notes = append(answer.Notes, "not all clusters are shown")
		}
		for _, one := range made.Clusters {
			answer.Names = append(answer.Names, one.Namespace+"/"+one.Name)
		}
		answer.Object, err = cli.Document("SetPreview", made)
		return answer, err
	})
}

// readFile reads the AddonSet of a file, with its name. The endpoint checks all other fields.
func readFile(tool *cli.Tool, path string) (name string, set map[string]any, err error) {
	from := tool.In
	if path != cli.Input {
		opened, err := os.Open(path)
		if err != nil {
			return "", nil, cli.Fail(cli.ExitUsage, "name a file with an AddonSet", "%w", err)
		}
		defer func() { _ = opened.Close() }()
		from = opened
	}
	content, err := io.ReadAll(io.LimitReader(from, mostSet+1))
	if err != nil {
		return "", nil, cli.Fail(cli.ExitUsage, "name a file with an AddonSet", "%q can't be read: %w", path, err)
	}
	var read v1.AddonSet
	decoded, err := strictyaml.Decode(content, strictyaml.Limits{Bytes: mostSet, Depth: mostDepth})
	set, isMap := decoded.(map[string]any)
	if err == nil && isMap {
		delete(set, "status")
		var encoded []byte
		if encoded, err = json.Marshal(set); err == nil {
			err = json.Unmarshal(encoded, &read)
		}
	}
	switch {
	case err != nil:
		return "", nil, cli.Fail(cli.ExitUsage, "correct the file", "%q is not an AddonSet: %w", path, err)
	case read.Kind != "AddonSet" || read.GroupVersionKind().Group != v1.GroupVersion.Group:
		return "", nil, cli.Fail(cli.ExitUsage, "name a file with one AddonSet", "%q is not an AddonSet", path)
	}
	return read.Name, set, cli.CheckName("AddonSet", read.Name)
}

// mostDepth is how deep the values of a file may be nested.
const mostDepth = 100
