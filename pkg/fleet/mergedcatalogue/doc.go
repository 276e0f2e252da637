// Package mergedcatalogue recognises the merged catalogues that the distributor wrote on a seed. All readers on a
// seed use it and ignore other objects.
//
// A merged catalogue has label role=merged, and a mark: a keyed hash over its place, content and annotations. The
// distributor writes the key to Secret addon-catalogue-key of the platform namespace. Users who may write
// AddonCatalogues there, but not read the platform's Secrets, can't make a mark, even without a policy.
//
// The distributor writes the key when it has marked all its objects on the seed. Without a key, for example with an
// older master or after the Secret is deleted, which requires rights on the platform's Secrets, only the label
// counts. A mark is checked once for each change of object or key.
//
// An object without a valid mark is treated as missing. That removes nothing: "not found" is never a deletion.
//
//rights:seed list,watch addoncatalogues.kubermatic.k8c.io -- merged catalogues
//rights:seed list,watch,get secrets -- the key of the marks
package mergedcatalogue
