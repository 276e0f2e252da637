// Package mergedcatalogue says which objects in the catalogue namespace of a seed are merged
// catalogues that the distributor wrote. Every reader on a seed asks it, and ignores all others.
//
// A merged catalogue has label role=merged, and a mark: a keyed hash over its place, content and
// annotations. The key is in Secret addon-catalogue-key of the platform namespace, where the
// distributor writes it. A user who may write AddonCatalogues there, but reads no Secrets of the
// platform, can't make such a mark, also where a policy is missing or is younger than the object.
//
// The distributor writes the key when everything that it wrote on the seed is marked with it. Until
// then, as beside a master of an older release, the label alone counts. So it does when the Secret
// is deleted: only those who may write Secrets of the platform can do that. A mark is checked once
// for each change of an object, and for each change of the key.
//
// An object without a right mark is treated as if it did not exist. That removes nothing: "not
// found" is never a deletion.
package mergedcatalogue
