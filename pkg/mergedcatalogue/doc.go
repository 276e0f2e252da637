// Package mergedcatalogue tells the merged catalogues of a seed from whatever else stands in their namespace. Every reader on a
// seed asks it, and takes nothing that it does not believe.
//
// A merged catalogue has label role=merged, and a mark: a keyed hash over its place, content and annotations, by a key that the
// distributor brings to the seed in Secret addon-catalogue-key of the platform namespace. Who may write AddonCatalogues there, but
// reads no Secrets of the platform, can't make one, also where a policy is missing or came later than the object.
//
// The distributor brings the key when everything it wrote on the seed is marked with it. Until then, as beside a master of an older
// release, the label alone counts, and so it does when the Secret is deleted: only those who may write Secrets of the platform can
// do that. A mark is checked once for each change of an object, and for each change of the key.
//
// What is not believed is not there. That removes nothing: not found is never a deletion.
package mergedcatalogue
