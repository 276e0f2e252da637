package sandbox

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-addons/trellis/test/binaries"
)

// publish writes what a person needs: kubeconfigs, kubectl and helm, the sources' addresses.
func (s *Sandbox) publish() error {
	for _, name := range s.names() {
		if err := os.WriteFile(s.Kubeconfig(name), s.Server(name).Kubeconfig, 0o600); err != nil {
			return fmt.Errorf("writing the kubeconfig of %q: %w", name, err)
		}
	}
	if err := s.publishContexts(); err != nil {
		return err
	}
	const completion = "kubectl_complete-addons"
	programs := map[string]string{completion: filepath.Join(s.root, "cmd", "kubectl-addons", completion)}
	for _, program := range []string{"kubectl", "helm"} {
		path, err := binaries.Find(s.cache, program, "")
		if err != nil {
			return err
		}
		programs[program] = path
	}
	for program, path := range programs {
		if err := os.Symlink(path, s.Program(program)); err != nil {
			return fmt.Errorf("linking %s: %w", program, err)
		}
	}
	if err := os.WriteFile(s.path("ca.crt"), s.Sources.CA, 0o600); err != nil {
		return fmt.Errorf("writing the sources' certificate authority: %w", err)
	}
	var env strings.Builder
	environment := slices.Concat(s.environment(), s.queryEnvironment(), s.webEnvironment())
	for _, variable := range append(environment, variablesOf(environment)) {
		fmt.Fprintf(&env, "export %s='%s'\n", variable[0], variable[1])
	}
	return os.WriteFile(s.path("env"), []byte(env.String()), 0o600)
}

// publishContexts writes one kubeconfig more, with a context for each control plane.
func (s *Sandbox) publishContexts() error {
	all := clientcmdapi.NewConfig()
	for _, name := range s.names() {
		one, err := clientcmd.Load(s.Server(name).Kubeconfig)
		if err != nil {
			return fmt.Errorf("reading the kubeconfig of %q: %w", name, err)
		}
		context := one.Contexts[one.CurrentContext]
		all.Clusters[name], all.AuthInfos[name] = one.Clusters[context.Cluster], one.AuthInfos[context.AuthInfo]
		all.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	return clientcmd.WriteToFile(*all, s.Kubeconfig("all"))
}

// environment is what .sandbox/env exports, and what the sample catalogue is filled in with.
func (s *Sandbox) environment() [][2]string {
	return [][2]string{
		{"SANDBOX_GIT_URL", s.Sources.GitURL},
		{"SANDBOX_CHARTS_URL", s.Sources.ChartsURL},
		{"SANDBOX_REGISTRY", s.Sources.Registry},
		{"SANDBOX_CA", s.path("ca.crt")},
		{"SANDBOX_CA_SECRET", CASecret},
	}
}

// variablesOf is what envsubst takes to fill in these variables, and no other text that begins with "$".
func variablesOf(environment [][2]string) [2]string {
	var names []string
	for _, variable := range environment {
		names = append(names, "$"+variable[0])
	}
	return [2]string{"SANDBOX_VARIABLES", strings.Join(names, " ")}
}

// Kubeconfig is the path of a control plane's kubeconfig, for cluster-admin.
func (s *Sandbox) Kubeconfig(name string) string { return s.path("kubeconfigs", name+".yaml") }

// Program is the path of kubectl or helm.
func (s *Sandbox) Program(name string) string { return s.path("bin", name) }

// Describe writes what is where and what to try.
func (s *Sandbox) Describe(out io.Writer) {
	shown := strings.TrimPrefix(s.Folder, s.root+"/")
	var clusters strings.Builder
	for _, cluster := range s.UserClusters() {
		fmt.Fprintf(&clusters, "  %-15s Kubernetes %s, on %s in namespace %s\n",
			cluster.Name, cluster.Release, cluster.Seed, cluster.Namespace())
	}
	platform, tries := kkpPlatform, kkpTries
	if s.clusters == ClusterAPI {
		platform, tries = capiPlatform, capiTries
	}
	fmt.Fprintf(out, "\nThe sandbox is ready.\n"+platform+places+tries, clusters.String(), s.Sources.GitURL, s.Sources.ChartsURL,
		s.Sources.Registry, shown, s.Folder)
	if s.web != nil {
		url, admin, user := s.WebURL()
		of := s.WebCluster()
		fmt.Fprintf(out, inBrowser, url, admin, user, of.Name, of.Namespace(), of.Seed)
	}
	fmt.Fprint(out, end)
}

const kkpPlatform = `
  master          catalogues and Seeds, in namespace kubermatic
  seed-1, seed-2  Clusters, and in their namespaces what is offered and installed
%[1]s`

const capiPlatform = `
  management      Cluster API, and both managers: catalogues and the Seed in namespace kubermatic,
                  Clusters and what is offered and installed in namespace team
%[1]s`

const places = `
  git             %[2]s/NAME.git: put bare repositories into %[5]s/sources/git
  charts          %[3]s: put chart archives into %[5]s/sources/charts
  OCI             %[4]s: push to it, with %[5]s/ca.crt as its authority

  %[5]s/kubeconfigs   cluster-admin, one per control plane
  %[5]s/logs          of every process
  %[5]s/bin           kubectl with kubectl addons, helm
  %[5]s/env           addresses of sources, query endpoints and metrics, for a shell

Try, in another terminal:

  export PATH=%[6]s/bin:$PATH; k=%[5]s/kubeconfigs
`

const kkpTries = `  kubectl addons available --cluster birch --kubeconfig $k/seed-1.yaml
  kubectl addons install greeter --cluster birch --target-namespace greetings --create-namespace --kubeconfig $k/seed-1.yaml
  kubectl addons status --cluster birch --watch --kubeconfig $k/seed-1.yaml
  kubectl --kubeconfig $k/master.yaml -n kubermatic get addoncatalogues
  kubectl --kubeconfig $k/birch.yaml get greetings,deployments --all-namespaces
  helm --kubeconfig $k/birch.yaml list --all-namespaces
  kubectl --kubeconfig $k/query-seed-1.yaml get --raw '/api/v1/addons?k8sVersion=1.36.0&explain=true'
  kubectl --kubeconfig $k/query-seed-1.yaml get --raw /api/v1/namespaces/cluster-birch/addons
`

const capiTries = `  kubectl addons available --cluster elm --kubeconfig $k/management.yaml
  kubectl addons list --cluster elm --kubeconfig $k/management.yaml
  kubectl --kubeconfig $k/management.yaml -n kubermatic get addoncatalogues
  kubectl --kubeconfig $k/management.yaml -n team get clusters.cluster.x-k8s.io
  kubectl --kubeconfig $k/elm.yaml -n kube-system get daemonsets,configmaps

docs/guides/cluster-api.md goes on from here: an add-on in one of the Clusters, and an upgrade of Kubernetes that waits.
`

const inBrowser = `
In a browser: %[1]s

  %[2]s  the token of an admin
  %[3]s  the token of a user of cluster %[4]s (namespace %[5]s on %[6]s)
`

const end = `
deploy/sandbox/README.md explains your own add-ons, flags of the managers, and which processes you can kill.
Stop the sandbox with Ctrl-C or "make sandbox-down".
`
