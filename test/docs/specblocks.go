package docs

// pages of the specification that are named more than once.
const (
	catalogues    = "docs/spec/addoncatalogue.md"
	installations = "docs/spec/addoninstallation.md"
	sets          = "docs/spec/addonset.md"
	core          = "docs/spec/core-addons.md"
	operation     = "docs/spec/operation.md"
	roles         = "docs/spec/roles.md"
)

// ofSpec are the blocks of the specification.
var ofSpec = []elsewhere{
	{
		page: catalogues, begins: "kubectl -n kubermatic create secret generic my-registry", way: bare,
		before: "namespaces kubermatic; PASSWORD=not-a-secret",
	},
	{
		page: installations, begins: "kubectl -n cluster-47s2ddlfgj patch addon", way: bare,
		before: `namespaces cluster-47s2ddlfgj; kubectl apply --server-side -f "$CHECKOUT/pkg/clusters/cluster/testdata/kkp/addons.yaml"
kubectl wait --for=condition=Established customresourcedefinition/addons.kubermatic.k8c.io --timeout=1m
object kubermatic.k8c.io/v1 Addon cluster-47s2ddlfgj/canal cleanup-manifests`,
		after: "refused kubectl -n cluster-47s2ddlfgj get addon canal",
	},
	{page: installations, begins: "kubectl -n cluster-47s2ddlfgj annotate", way: bare, before: "installation cluster-47s2ddlfgj canal"},

	{
		page: sets, begins: "revision=", way: bare,
		before: `kinds; namespaces kubermatic; kubectl apply -f - <<'END'
apiVersion: kubermatic.k8c.io/v1
kind: AddonSet
metadata: {name: monitoring, namespace: kubermatic}
spec: {clusterSelector: {}, addons: [{name: web, addonRef: {name: web}, targetNamespace: web}]}
END
kubectl -n kubermatic patch addonset monitoring --subresource status --type merge --patch \
  '{"status": {"revision": "abc", "removal": {"word": "def", "count": 7}}}'`,
		after: `kubectl -n kubermatic get addonset monitoring --output yaml | has "approve: abc/early"`,
	},
	{
		page: sets, begins: "kubectl -n kubermatic get addonset monitoring -o jsonpath='{.status.removal}'", way: bare,
		after: `kubectl -n kubermatic get addonset monitoring --output yaml | has "removal-approved: def"`,
	},
	{
		page: sets, begins: "kubectl -n kubermatic annotate addonset monitoring addons.kubermatic.k8c.io/confirm-deletion", way: bare,
		after: "refused kubectl -n kubermatic get addonset monitoring",
	},
	{
		page: "docs/spec/admission.md", begins: "kubectl -n kubermatic annotate addoncatalogue core", way: bare, before: "catalogue",
		after: "refused kubectl -n kubermatic get addoncatalogue core",
	},
	{
		page: "docs/spec/clusters.md", begins: "kubectl annotate clusters.kubermatic.k8c.io", way: bare,
		before: `kinds; uid=$(kubectl get namespace kube-system -o jsonpath={.metadata.uid}); kubectl apply -f - <<'END'
{apiVersion: kubermatic.k8c.io/v1, kind: Cluster, metadata: {name: 47s2ddlfgj}, spec: {version: 1.37.0, humanReadableName: some}}
END`,
	},
	{
		page: core, begins: "helm upgrade --install trellis-master", way: bare,
		after: "kubectl --namespace kubermatic get addoncatalogue kkp-core",
	},
	{page: core, begins: "kubectl -n kubermatic annotate addoncatalogue core", way: bare, before: "catalogue"},
	{
		page: "docs/spec/helm.md", begins: "kubectl -n cluster-birch get secrets", way: bare,
		before: `namespaces cluster-birch
kubectl -n cluster-birch create secret generic record --type addons.kubermatic.k8c.io/release.v1
kubectl -n cluster-birch label secret record addons.kubermatic.k8c.io/installation-name=front
kubectl() { command kubectl "$@" | tee got; }`,
		after: "unset -f kubectl; has front < got",
	},

	{
		page: operation, begins: "kubectl apply -f deploy/seed/rights.yaml", way: bare, before: "namespaces kubermatic",
	},
	{
		page: operation, begins: "kubectl -n kubermatic annotate seed", way: bare,
		before: `kinds; uid=$(kubectl get namespace kube-system -o jsonpath={.metadata.uid}); kubectl apply -f - <<'END'
{apiVersion: kubermatic.k8c.io/v1, kind: Seed, metadata: {name: north, namespace: kubermatic}, spec: {kubeconfig: {name: kubeconfig-north}}}
END`,
	},
	{
		page: operation, begins: "kubectl create namespace kubermatic --dry-run", way: bare, before: "packages bin/release/0.1.0-rc.1 0.1.0-rc.1",
		after: `kubectl --namespace kubermatic get deployments trellis-seed trellis-master
kubectl --namespace kubermatic get jobs --output name > jobs; refused grep trellis- jobs`,
	},
	{
		page: operation, begins: "helm template trellis-master bin/release/0.1.0-rc.1/trellis-master-0.1.0-rc.1.tgz --namespace", way: bare,
		after: `for one in seed master; do refused kubectl --namespace kubermatic get deployment "trellis-$one"; done
kubectl get crds addoncatalogues.kubermatic.k8c.io addonsets.kubermatic.k8c.io addoninstallations.kubermatic.k8c.io`,
	},
	{
		page: operation, begins: "kubectl get addoninstallations --all-namespaces", way: bare,
		before: `for one in cluster-a cluster-b; do
  installation $one web
  kubectl --namespace $one patch addoninstallation web --type merge --patch '{"metadata":{"finalizers":["kubermatic.k8c.io/left"]}}'
done`,
		after: `kubectl get addoninstallations --all-namespaces --output yaml > left
refused grep kubermatic.k8c.io/left left`,
	},
	{
		page: operation, begins: "kubectl -n kubermatic patch secret trellis-inputs-key", way: bare,
		before: `kubectl -n kubermatic create secret generic trellis-inputs-key --from-literal key=k --from-literal records=sealed
helm install trellis-seed charts/trellis-seed --namespace kubermatic`,
		after: `kubectl -n kubermatic get secret trellis-inputs-key --output yaml > key; has "key: " < key; refused grep records: key`,
	},
	{
		page: operation, begins: "kubectl -n kubermatic port-forward POD 6060", way: stub,
		why: "no pod runs: cmd/internal/manager asks the addresses in its tests",
		before: `curl() { test "$1 $2 $3" = "-X PUT -d" && served "$5"; }
go() { test "$1 $2" = "tool pprof" && served "${3%%\?*}"; }
served() { grep --recursive --fixed-strings "/${1#http://*/}\"" "$CHECKOUT/cmd/internal/manager"; }
kubectl() { test "$3 $4 $5" = "port-forward POD 6060"; }`,
		after: "wait $!; unset -f curl go kubectl",
	},
	{
		page: "docs/spec/query.md", begins: "kubectl -n kubermatic get secret trellis-seed-query-tls", way: stub,
		why: "no pod runs: the page goes on at the endpoint of a sandbox's seed",
		before: `helm install trellis-seed charts/trellis-seed --namespace kubermatic --create-namespace
kubectl -n kubermatic create secret generic trellis-seed-query-tls --from-literal ca.crt="$(authority)"
kubectl get serviceaccount default || kubectl create serviceaccount default
kubectl() {
  case "$3" in
    port-forward) command kubectl -n kubermatic get "$4" --output jsonpath='{.spec.ports[*].port}' | has "${5#*:}" ;;
    --certificate-authority)
      flags "--server --certificate-authority --token" "$@"; test "$2" = https://localhost:8443; has CERTIFICATE < "$4" ;;
    *) command kubectl "$@" ;;
  esac
}`,
		after: "wait $!; ask version; unset -f kubectl",
	},
	{
		page: "docs/spec/release.md", begins: "clusterctl init", way: stub, why: "test/clusterctl takes a release with clusterctl itself",
		before: `clusterctl() { flags "--addon" "$@"; test "$1" = init; }`,
	},

	{
		page: roles, begins: "kubectl -n cluster-abc create rolebinding team-a --", way: bare,
		before: `namespaces cluster-abc; helm install trellis-seed charts/trellis-seed --namespace kubermatic --create-namespace`,
		after:  "kubectl get clusterrole kubermatic:trellis-seed:cluster-user",
	},
	{
		page: roles, begins: "kubectl -n cluster-abc create rolebinding team-a-values", way: bare, before: "namespaces cluster-abc",
		after: "kubectl get clusterrole kubermatic:trellis-seed:values-writer",
	},
	{page: roles, begins: "helm template trellis-seed", way: bare},
}
