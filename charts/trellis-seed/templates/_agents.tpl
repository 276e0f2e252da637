{{- /* Refuses values with which agents could get nothing. */ -}}
{{- define "trellis.checkAgents" -}}
{{- if .Values.agents.enabled }}
{{- if not .Values.agents.hub.server }}
{{- fail "agents.enabled needs agents.hub.server: the https URL where agents reach this seed's API server" }}
{{- end }}
{{- range .Values.extraVolumes }}
{{- if eq .name "hub-ca" }}
{{- fail "extraVolumes has \"hub-ca\", which is the name of a volume of the chart: use another" }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The signers that the manager approves requests for, with commas. */ -}}
{{- define "trellis.signers" -}}
{{- range $i, $signer := .Values.agents.approve }}{{ if $i }}, {{ end }}{{ $signer | quote }}{{ end }}
{{- end }}

{{- /* Groups that no agent gets anything of, with all below them, as pkg/clusters/access/rights has them. Test TestTheFloorIsTheSameInCodeAndChart
  tells where one of both lacks some. */ -}}
{{- define "trellis.deniedToAgents" -}}
{{ list
"k8s.io" "x-k8s.io" "kubernetes.io" "k8c.io" "fluxcd.io" "argoproj.io" "cattle.io" "k14s.io" "carvel.dev" "crossplane.io"
"upbound.io" "kro.run" "oam.dev" "projectsveltos.io" "pulumi.com" "kyverno.io" "gatekeeper.sh" "coreos.com" "openshift.io"
"operatorframework.io" "tekton.dev" "knative.dev" "keda.sh" "kruise.io" "volcano.sh" "kubeflow.org" "ray.io" "opentelemetry.io"
"dapr.io" "kanister.io" "elastic.co" "cnpg.io" "strimzi.io" "rabbitmq.com" "integreatly.org" "actions.github.com" "summerwind.dev"
"kubevirt.io" "harvesterhci.io" "metal3.io" "tinkerbell.org" "vmware.com" "clastix.io" "k0smotron.io"
"gardener.cloud" "sapcloud.io" "loft.sh" "k3k.io" "etcd.io" "aenix.io" "k8s.aws" "cloud.google.com" "azure.com" "cert-manager.io"
"external-secrets.io" "bitnami.com" "hashicorp.com" "isindir.github.com" "mittwald.de" "cilium.io" "projectcalico.org" "tigera.io"
"antrea.io" "ovn.org" "kubeovn.io" "cncf.io" "submariner.io" "istio.io" "linkerd.io" "envoyproxy.io" "traefik.io" "containo.us"
"projectcontour.io" "getambassador.io" "konghq.com" "nginx.org" "haproxy.org" "metallb.io" "velero.io" "k8up.io" "appscode.com"
"kubestash.com" "kasten.io" "trilio.io" "libopenstorage.org" "longhorn.io" "rook.io" | toJson }}
{{- end }}
