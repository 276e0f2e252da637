// Package certmanager tries the charts with webhook certificates that cert-manager keeps: its controllers run as processes beside an API
// server that has what a chart installs, and the chart's manager serves with what they issued.
//
// The API server asks the webhooks as it does in a cluster, through the chart's Service, and holds the certificate against the Service's
// name. Here the Service leads to this machine, and the webhooks name the manager's port; nothing else of the chart is changed. The
// manager runs as the pod of its Deployment (package pod), whose volumes follow the Secrets.
package certmanager
