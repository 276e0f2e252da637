package docs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/trellis-addons/trellis/hack/docs/markdown"
)

// way is how a block is tried that does not run on its page's sandbox.
type way string

const (
	// bare runs the block as it stands on an API server on which nothing is installed, with the sandbox's helm and kubectl. Jobs of charts
	// run, pods don't.
	bare way = "on a bare API server"
	// module runs it as it stands in a Go module that is not this one, with the page's Go code.
	module way = "in a module of its own"
	// stub is as bare, and a program or a kind of somebody else is a stand-in: names, flags and what our kinds say are tried.
	stub way = "with a stand-in"
	// planned has make tell what it would do: targets, variables and the folders of their programs are there.
	planned way = "by make's plan"
)

// lesser are the ways that leave something out, for which a reason is given.
var lesser = []way{stub, planned}

// elsewhere is one block that does not run on its page's sandbox.
type elsewhere struct {
	// page and the beginning of the block's text.
	page, begins string
	way          way
	// why it is tried in a lesser way; "" of others.
	why string
	// before are commands that make what the block takes for granted, after are some that fail where it did not do what the page says.
	before, after string
}

func (e elsewhere) is(name string, block markdown.Block) bool {
	return e.page == name && strings.HasPrefix(block.Text, e.begins)
}

// blocks are all that don't run on their page's sandbox. Those of a page run in the order that they have there.
var blocks = slices.Concat(ofGuides, ofSpec)

// of is what the list has of a block.
func of(name string, block markdown.Block) []elsewhere {
	if block.Info != shown {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(blocks), func(e elsewhere) bool { return !e.is(name, block) })
}

// isTried says whether a page has blocks that are tried in one of these ways.
func isTried(name string, ways ...way) bool {
	return slices.ContainsFunc(blocks, func(e elsewhere) bool { return e.page == name && slices.Contains(ways, e.way) })
}

// scriptOf is script for the blocks of a page that are tried in these ways, in one shell.
func scriptOf(name string, page *markdown.Page, ways ...way) string {
	var made strings.Builder
	made.WriteString("set -euo pipefail\n" + words)
	for _, block := range page.Blocks {
		for _, e := range of(name, block) {
			if slices.Contains(ways, e.way) {
				fmt.Fprintf(&made, "printf '\\n--- %s:%d\\n'\n%s\n%s\n%s\n", name, block.Line, e.before, block.Text, e.after)
			}
		}
	}
	return made.String()
}

var nameOfFile = regexp.MustCompile(`^# ([\w-]+\.yaml)$`)

// files are those that a page shows: of YAML with the name in a comment at its top, and imports.txt of Go code.
func files(page *markdown.Page) map[string]string {
	shown := map[string]string{}
	for _, block := range page.Blocks {
		first, _, _ := strings.Cut(block.Text, "\n")
		switch name := nameOfFile.FindStringSubmatch(first); {
		case block.Info == "yaml" && name != nil:
			shown[name[1]] = block.Text
		case block.Info == "go":
			shown["imports.txt"] = block.Text
		}
	}
	return shown
}

// words are functions for what stands before and after blocks.
const words = `
namespaces() { local one; for one; do kubectl create namespace "$one" || kubectl get namespace "$one"; done; }
gone() { # of a namespace that nobody ends, since no controllers run
  kubectl delete namespace "$1" --ignore-not-found --wait=false
  if kubectl get namespace "$1"; then
    kubectl create namespace "$1" --dry-run=client --output json | kubectl replace --raw "/api/v1/namespaces/$1/finalize" -f -
  fi
}
kinds() {
  kubectl get --raw /apis/kubermatic.k8c.io/v1/addonsets > /dev/null && kubectl get --raw /apis/kubermatic.k8c.io/v1/seeds > /dev/null || {
    kubectl apply --server-side -f deploy/standalone/crds -f charts/trellis-seed/crds
    kubectl wait --for=condition=Established -f deploy/standalone/crds -f charts/trellis-seed/crds --timeout=1m
  }
}
authority() { kubectl config view --raw --output jsonpath='{.clusters[0].cluster.certificate-authority-data}' | base64 -d; }
packages() {
  mkdir -p "$1"
  helm package --destination "$1" --version "$2" --app-version "$2" charts/trellis-master charts/trellis-seed charts/trellis-web
}
installation() { kinds; namespaces "$1"; kubectl --namespace "$1" apply -f - <<END
{apiVersion: kubermatic.k8c.io/v1, kind: AddonInstallation, metadata: {name: "$2"}, spec: {addonRef: {name: web}, targetNamespace: web}}
END
}
refused() { if "$@"; then echo "this has to be refused: $*"; exit 1; fi; }
has() { grep --fixed-strings -e "$1" || { echo "this is missing: $1"; exit 1; }; }
flags() {
  local word known=$1; shift
  for word; do
    if [[ $word == -* && " $known " != *" ${word%%=*} "* ]]; then echo "no such flag: $word"; exit 1; fi
  done
}
standin() { # group, version, kind
  local plural; plural=$(tr '[:upper:]' '[:lower:]' <<< "$3")s
  [[ $3 != *Proxy ]] || plural=${plural%ys}ies
  kubectl apply --server-side -f - <<END
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: $plural.$1}
spec:
  group: $1
  scope: Namespaced
  names: {kind: $3, plural: $plural, singular: "$(tr '[:upper:]' '[:lower:]' <<< "$3")"}
  versions:
  - name: $2
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
END
  kubectl wait --for=condition=Established "customresourcedefinition/$plural.$1" --timeout=1m
}
catalogue() { kinds; namespaces kubermatic; kubectl apply -f - <<'END'
apiVersion: kubermatic.k8c.io/v1
kind: AddonCatalogue
metadata: {name: core, namespace: kubermatic}
spec:
  type: Core
  addons:
  - name: rbac
    versions:
    - {version: 1.0.0, template: {method: go-template}, source: {git: {remote: "https://git.example.com/rbac.git", ref: {tag: v1}}}}
END
}
object() { # group/version, kind, namespace/name, finalizer
  kubectl apply -f - <<END
{apiVersion: "$1", kind: "$2", metadata: {name: "${3#*/}", namespace: "${3%/*}", finalizers: [$4]}, spec: {}}
END
}
plan() {
  local told folder; told=$(command make --dry-run "$@"); echo "$told"
  for folder in $(grep --only-matching ' \./[a-z/]*' <<< "$told"); do test -d "$folder"; done
}
`
