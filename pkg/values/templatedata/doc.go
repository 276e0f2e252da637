// Package templatedata is the data of a user cluster for templates: KKP's TemplateData, so that manifests written for
// KKP's add-ons render without changes.
//
// The fields, their names and their methods are those of KKP v2.31 (pkg/addon/types.go and pkg/resources there). If
// KKP refuses a Cluster that lacks a field, the field is empty here: clusters that run without KKP have little more
// than a name, a namespace and a version.
//
// Platform is an addition: the platform's settings of its clusters for all add-ons. Charts and manifests find every
// key of it.
//
// Three fields are secret: Credentials, Cluster.Kubeconfig and Cluster.Address.AdminToken. New never fills them;
// WithSecrets does, for versions of Core catalogues that request them. Charts look them up (SecretObject).
//
// Templates of values also see objects of Cluster API, as maps (CAPI). These are not part of Data: they count through
// the values that are rendered from them.
//
// If KKP's behaviour differs from its documentation by mistake, the documentation counts: Features are those that are
// on, not all that the Cluster names.
package templatedata
