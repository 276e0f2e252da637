// Package webhook is admission: thin adapters from requests of the API server to pkg/catalogue,
// pkg/resolution and pkg/values.
//
// Catalogues checks AddonCatalogues on the master and on seeds, Installations checks
// AddonInstallations on a seed. What they refuse, the controllers would refuse too, by the same
// functions: catalogue.Read with values.CheckVersion for a catalogue, package resolution for an
// installation. Admission says it at once, to the user who makes the mistake. The same is so of a
// valuesTemplate that does not parse (values.CheckTemplate), which only the installations of that
// version would report.
//
// A webhook that is down is not asked: failurePolicy is Ignore everywhere. So nothing that must
// hold is left to webhooks. Shapes are enforced by the CRDs, rights by the
// ValidatingAdmissionPolicies of the charts, the rest by the controllers. This package refuses
//
//	a catalogue's spec that would not be merged         (catalogue.Read)
//	values that no form or limit lets through           (values)
//	template marks beside secrets of the cluster        (values.CheckMarks)
//	a range of versions that can't be read              (catalogue.ParseRange), and one of git tags
//	a valuesTemplate that does not parse                (values.CheckTemplate)
//	a target namespace that the seed keeps closed       (catalogue.Restrictions)
//	the deletion of a core installation                 (see core.go)
//
// and warns of what may be a mistake: versions taken out that installations use (usage.go), an
// add-on or version that the cluster would not get now, a deprecated version, what looks like a
// credential among plain values, keys that may be misspelt, a catalogue in a namespace that no
// controller reads.
//
// No request leads to a call to another cluster. Requests about objects that are being deleted, and
// updates that leave the spec as it is, are never refused: an object that became invalid must stay
// deletable, and its metadata writable.
//
// The port answers the API server only: a Gate (gate.go) lets requests through that come by a
// secret path. Package certificate keeps the serving certificate.
package webhook
