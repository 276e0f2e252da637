// Package templatedata is what a template sees of a user cluster: KKP's TemplateData, so that
// manifests written for KKP's add-ons render as they are.
//
// The fields, their names and their methods are those of KKP v2.31 (pkg/addon/types.go and
// pkg/resources there). Where KKP refuses a Cluster that lacks something, here the field is empty:
// clusters that run without KKP have little more than a name, a namespace and a version.
//
// Platform is ours: what the platform says of its clusters to all add-ons. Charts and manifests find every key of it.
//
// Three fields are secret: Credentials, Cluster.Kubeconfig and Cluster.Address.AdminToken. New
// never fills them; WithSecrets does, for versions of Core catalogues that ask for them. Charts look
// them up (SecretObject).
//
// Templates of values see objects of Cluster API besides, as maps (CAPI). What they see is no part of
// Data: it counts through the values that it makes.
//
// Where KKP has a habit that is a mistake, the words of its documentation count: Features are those
// that are on, not all that the Cluster names.
package templatedata
