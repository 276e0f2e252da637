// Package webhook is admission: thin adapters from requests of the API server to pkg/fleet/addonset, pkg/catalogue,
// pkg/install/resolution and pkg/values.
//
// Catalogues checks AddonCatalogues and Sets checks AddonSets on master and seeds, Installations checks
// AddonInstallations on a seed. They refuse what the controllers would refuse, by the same functions: catalogue.Read
// with values.CheckVersion, addonset.Validate, and package resolution. Admission only reports it earlier. It also
// refuses an invalid valuesTemplate of a catalogue (values.CheckTemplate), which otherwise only the installations of
// that version report.
//
// With failurePolicy Ignore, a webhook that is down is skipped, so none enforces a rule: the CRDs enforce shapes, the
// charts' ValidatingAdmissionPolicies rights, and the controllers the rest. This package refuses
//
//	a catalogue's spec that would not be merged         (catalogue.Read)
//	values that no form or limit allows                 (values)
//	template marks together with secrets of the cluster (values.CheckMarks)
//	a range of versions, or of git tags, that is invalid (catalogue.ParseRange)
//	a valuesTemplate that does not parse                (values.ParseTemplate)
//	a target namespace that the seed keeps closed       (catalogue.Restrictions)
//	an AddonSet that would not be copied to the seeds   (addonset.Validate)
//	an AddonSet beyond the maximal number of a platform (sets.go)
//	the deletion of a core installation                 (installations.go)
//
// and warns about possible mistakes: withdrawn versions that installations use (catalogues.go), an add-on or version
// that the cluster would not get now, a deprecated version, plain values that look like credentials, keys that may be
// misspelt, a catalogue or set in a namespace that no controller reads, a second set of type Core, a group of a set
// that selects no cluster, an edit that removes a set's installations from clusters (lost.go), and the same mistakes
// in items of sets, as far as the master's catalogues show.
//
// No request causes a call to another cluster. Objects that are being deleted, and updates without a change of the
// spec, are never refused: an invalid object must stay deletable, and its metadata writable.
//
// The port answers only the API server: a Gate (registration.go) checks for a secret path. Package certificate
// maintains the serving certificate.
//
//rights:master,seed get,patch validatingwebhookconfigurations.admissionregistration.k8s.io names={admission} if=own-certificate -- the CA of the webhooks' certificate
//rights:seed list,watch namespaces -- whether one is being deleted
package webhook
