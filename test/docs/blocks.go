package docs

// pages that are named more than once.
const (
	readme     = "README.md"
	airGap     = "docs/guides/air-gap.md"
	clusterAPI = "docs/guides/cluster-api.md"
	moving     = "docs/guides/moving.md"
	standalone = "deploy/standalone/README.md"
	web        = "docs/guides/web.md"
)

const startedHere = "this test starts the sandbox by the function that the target's program calls"

// ofGuides are the blocks of README, guides and deploy.
var ofGuides = []elsewhere{
	{
		page: readme, begins: "make demo", way: planned, why: "they take many minutes, and this test is one of them",
		before: `make() { plan "$@"; }`, after: "unset -f make",
	},
	{
		page: "CONTRIBUTING.md", begins: "make check", way: planned, why: "it runs tests, and this test is one of them",
		before: `make() { plan "$@"; }`, after: "unset -f make",
	},
	{page: "docs/guides/quick-start.md", begins: "make sandbox", way: planned, why: startedHere, before: `make() { plan "$@"; }`},
	{
		page: clusterAPI, begins: "make sandbox", way: planned, why: startedHere,
		before: `make() { plan "$@" | has "-clusters cluster-api"; }`,
	},
	{
		page: readme, begins: "make release", way: planned, why: "it builds all images: hack/release makes one in its tests, and installs it",
		before: `make() { local told; told=$(plan "$@"); has "-version '0.1.0-rc.1' -push 'registry.example.com/trellis'" <<< "$told"; }`,
		after: `known=$(go run ./hack/release -help 2>&1)
for flag in $(command make --dry-run release | grep --only-matching ' -[a-z][a-z]*'); do has "$flag " <<< "$known"; done`,
	},
	{
		page: readme, begins: "go get", way: module,
		before: `go mod init example.com/reader
go mod edit -replace "github.com/trellis-addons/trellis/apis=$CHECKOUT/apis"`,
		after: `{ echo package main; cat imports.txt; echo 'var _ = kubermaticv1.AddToScheme'; echo 'func main() {}'; } > main.go
go build -o reader .`,
	},

	{
		page: readme, begins: "helm install trellis-master", way: bare, before: "packages bin/release/0.1.0-rc.1 0.1.0-rc.1",
		after: "helm list --namespace kubermatic --deployed --short | has trellis-seed",
	},
	{
		page: standalone, begins: "kubectl apply --server-side", way: bare,
		after: `kubectl wait --for=condition=Established -f deploy/standalone/crds --timeout=1m
kubectl get clusters.kubermatic.k8c.io,seeds.kubermatic.k8c.io --all-namespaces`,
	},
	{
		page: standalone, begins: "helm upgrade --install trellis-master", way: bare, before: "packages bin/release/0.1.0-rc.1 0.1.0-rc.1",
		after: `for one in master seed; do
  kubectl --namespace kubermatic get deployment "trellis-$one" --output yaml | has --standalone
done`,
	},
	{
		page: standalone, begins: "kubectl -n kubermatic create secret", way: bare,
		before: `namespaces kubermatic; cp "$KUBECONFIG" north.yaml`,
	},
	{
		page: standalone, begins: "kubectl apply -f - <<END\napiVersion: kubermatic.k8c.io/v1\nkind: Cluster", way: bare,
		before: `namespaces cluster-amber; cp "$KUBECONFIG" amber.yaml`,
	},

	{
		page: airGap, begins: "kubectl create namespace kubermatic", way: bare,
		before: "gone kubermatic; packages . 0.1.0; PASSWORD=not-a-secret",
		after: `kubectl --namespace kubermatic get deployment/trellis-seed serviceaccount/trellis-seed --output yaml > deployed
for one in registry.internal.example.com/trellis/seed-controller-manager: --image-pull-secret=platform-pull 'name: trellis-images' \
  --source-mirror=quay.io/team=registry.internal.example.com/quay/team --image-mirror=docker.io=registry.internal.example.com/hub; do
  has "$one" < deployed
done
kubectl --namespace kubermatic get deployment/trellis-master serviceaccount/trellis-master --output yaml > deployed
for one in registry.internal.example.com/trellis/master-controller-manager: 'name: trellis-images' \
  --source-mirror=quay.io/team=registry.internal.example.com/quay/team; do
  has "$one" < deployed
done`,
	},
	{page: airGap, begins: "kubectl --namespace kubermatic create secret generic internal-registry", way: bare, before: "authority > ca.crt"},
	{page: airGap, begins: "kubectl --namespace kubermatic create secret docker-registry platform-pull", way: bare},
	{
		page: web, begins: "kubectl create namespace kubermatic", way: bare,
		before: "gone kubermatic; packages . 0.1.0; CLIENT_SECRET=not-a-secret",
		after: `kubectl --namespace kubermatic get configmap trellis-web --output jsonpath='{.data.config\.yaml}' > configured
for one in 'publicURL: https://addons.example.com' 'issuer: https://login.example.com' 'name: europe' \
    'secretFile: /etc/trellis-web/oidc/secret'; do
  has "$one" < configured
done
kubectl --namespace kubermatic get ingress,networkpolicy,poddisruptionbudget --output name | has ingress.networking.k8s.io/trellis-web
test "$(kubectl --namespace kubermatic get secret trellis-web-keys --output jsonpath='{.data.1}' | base64 -d | wc -c)" = 64`,
	},
	{
		page: web, begins: "kubectl --namespace cluster-abc create serviceaccount portal", way: bare, before: "namespaces cluster-abc",
	},
	{
		page: "docs/guides/upgrade.md", begins: "helm upgrade trellis-seed", way: bare,
		before: `packages . 9.9.9
for one in seed master; do
  mv "trellis-$one-9.9.9.tgz" "trellis-$one-VERSION.tgz"
  helm install "trellis-$one" "charts/trellis-$one" --namespace kubermatic --create-namespace --set replicas=3
done`,
		after: `for one in seed master; do
  kubectl --namespace kubermatic get deployment "trellis-$one" --output yaml > deployed
  has "replicas: 3" < deployed; has 9.9.9 < deployed
done`,
	},

	{
		page: clusterAPI, begins: "kubectl apply --server-side -f deploy/standalone/crds", way: bare,
		after: "kubectl --namespace kubermatic get deployment trellis-seed --output yaml | has --hold-upgrades=true",
	},
	{
		page: clusterAPI, begins: "kubectl --namespace team patch", way: bare,
		before: `namespaces team; kubectl apply -f - <<'END'
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: fir, namespace: team}
spec:
  topology:
    classRef: {name: fleet}
    version: v1.37.2
    workers:
      machineDeployments:
      - {class: default, name: workers, metadata: {annotations: {topology.cluster.x-k8s.io/hold-upgrade-sequence: trellis, kept: ""}}}
END`,
		after: `kubectl --namespace team get clusters.cluster.x-k8s.io fir --output jsonpath='{.spec.topology.workers}' > workers
has kept < workers; refused grep hold-upgrade-sequence workers`,
	},
	{
		page: clusterAPI, begins: "helm upgrade trellis-seed", way: bare,
		before: `helm() {
  command helm "$@"
  [ "$1" != upgrade ] || command helm get manifest trellis-seed --namespace kubermatic > upgraded
}`,
		after: `unset -f helm; has --cluster-kinds=cluster-api < upgraded; has --hold-upgrades=false < upgraded
refused kubectl --namespace kubermatic get deployment trellis-seed`,
	},
	{
		page: clusterAPI, begins: "clusterctl move", way: stub, why: "clusterctl moves between two management clusters, with their providers",
		before: `installation team elm.cni; cp "$KUBECONFIG" other.yaml
clusterctl() { flags "--namespace --to-kubeconfig" "$@"; kubectl --kubeconfig "$5" get namespace "$3"; }`,
		after: "kubectl --namespace team get addoninstallation elm.cni --output yaml | has 'addons.kubermatic.k8c.io/adopt: \"true\"'",
	},

	{
		page: "docs/guides/trouble.md", begins: "kubectl -n kubermatic get lease", way: bare,
		before: `namespaces kubermatic
for one in master seed; do
  helm template "trellis-$one" "charts/trellis-$one" --namespace kubermatic > rendered
  has "trellis-$one.addons.kubermatic.k8c.io" < rendered
  kubectl apply -f - <<END
{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: trellis-$one.addons.kubermatic.k8c.io, namespace: kubermatic}}
END
done`,
	},
	{
		page: "docs/guides/backup.md", begins: "velero backup create", way: stub,
		why: "Velero takes pods and a bucket: test/upgrade restores what this selects",
		before: `kinds; namespaces kubermatic cluster-a cluster-b
velero() {
  flags "--include-namespaces --include-cluster-scoped-resources --from-backup --exclude-resources" "$@"
  case "$1" in
    backup) kubectl get namespaces ${5//,/ }; kubectl get "$7" --output name ;;
    restore) kubectl get "$6" --all-namespaces ;;
  esac
}`,
	},
	{
		page: moving, begins: "kubectl --namespace clusters delete clusterresourceset", way: bare,
		before: `installation clusters calico; kubectl apply -f - <<'END'
apiVersion: addons.cluster.x-k8s.io/v1beta2
kind: ClusterResourceSet
metadata: {name: calico, namespace: clusters}
spec: {clusterSelector: {matchLabels: {network: calico}}, resources: [{kind: ConfigMap, name: calico}]}
END`,
		after: `refused kubectl --namespace clusters get clusterresourceset calico
kubectl --namespace clusters get addoninstallation calico --output yaml | has "adopt-managers: manager"`,
	},
	{
		page: moving, begins: "label=helmreleaseproxy", way: stub,
		why: "the add-on provider is not built here: its kinds have names, labels and finalizers alone",
		before: `namespaces clusters caaph-system
kubectl --namespace caaph-system create deployment caaph-controller-manager --image registry.example.com/caaph
for kind in HelmChartProxy HelmReleaseProxy; do standin addons.cluster.x-k8s.io v1alpha1 $kind; done
object addons.cluster.x-k8s.io/v1alpha1 HelmChartProxy clusters/calico helmchartproxy.addons.cluster.x-k8s.io
for one in prod-1-x2b7d prod-2-m9k4s; do
  object addons.cluster.x-k8s.io/v1alpha1 HelmReleaseProxy clusters/calico-$one helmreleaseproxy.addons.cluster.x-k8s.io
  kubectl --namespace clusters label helmreleaseproxy calico-$one helmreleaseproxy.addons.cluster.x-k8s.io/helmchartproxy-name=calico
done
object addons.cluster.x-k8s.io/v1alpha1 HelmReleaseProxy clusters/other helmreleaseproxy.addons.cluster.x-k8s.io
for kind in Mutating Validating; do
  kubectl create --filename - <<END
{apiVersion: admissionregistration.k8s.io/v1, kind: ${kind}WebhookConfiguration, metadata: {name: caaph-${kind,,}-webhook-configuration}}
END
done`,
		after: `kubectl --namespace clusters get helmreleaseproxy other --output jsonpath='{.metadata.finalizers}' | has helmreleaseproxy
for one in helmchartproxy/calico helmreleaseproxy/calico-prod-1-x2b7d helmreleaseproxy/calico-prod-2-m9k4s; do
  refused kubectl --namespace clusters get $one
done`,
	},
	{
		page: moving, begins: "flux suspend helmrelease", way: stub, why: "Flux is not built here: its kinds have names alone",
		before: `namespaces flux-system podinfo
standin helm.toolkit.fluxcd.io v2 HelmRelease; standin kustomize.toolkit.fluxcd.io v1 Kustomization
object helm.toolkit.fluxcd.io/v2 HelmRelease podinfo/podinfo ""
object kustomize.toolkit.fluxcd.io/v1 Kustomization flux-system/podinfo ""
flux() {
  flags "--namespace" "$@"; test "$1" = suspend
  kubectl patch "$2" "$3" "${@:4}" --type merge --patch '{"spec": {"suspend": true}}'
}`,
		after: "refused kubectl --namespace podinfo get helmrelease podinfo; refused kubectl --namespace flux-system get kustomization podinfo",
	},
}
