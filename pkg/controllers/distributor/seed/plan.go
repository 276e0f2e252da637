package seed

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

type observed struct {
	catalogues, secrets map[string]observedObject
}

type observedObject struct {
	uid             types.UID
	resourceVersion string
	// stamp identifies the written object; see stampOf.
	stamp        string
	digest, mark string
	generation   int64
	// origins are the catalogues that a merged catalogue has versions of, and those in git that these were generated
	// from; secrets are those that its versions name; nil if unknown.
	origins, secrets []string
	// statusAt is the generation whose status is known to be written; -1 if unknown.
	statusAt int64
	// edited is set when other clients changed the object after we wrote it.
	edited bool
	// forValues says that a Secret is for values of sets.
	forValues bool
}

// stampOf is a hash over the parts of a merged object: its content by digest, and its annotations.
func stampOf(annotations map[string]string) string {
	sum := sha256.New()
	for _, name := range []string{
		v1.AnnotationDigest, v1.AnnotationKKPVersion, v1.AnnotationVersions, v1.AnnotationLeftVersions, v1.AnnotationMark,
		v1.AnnotationSecrets,
	} {
		sum.Write([]byte(annotations[name] + "\n"))
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// marker computes the annotations of one seed's merged objects, with the mark.
type marker struct {
	namespace, kkpVersion string
	key                   []byte
	// stored has the digests of objects that the seed stores with other content, by name and wanted digest.
	stored map[string]string
	// stamps are the last stamps by name: most objects don't change.
	stamps map[string]knownStamp
}

// knownStamp is the stamp of an object, and everything that it depends on.
type knownStamp struct {
	digest, kkpVersion, left, key, stored string
	stamp                                 string
}

// stampsKept is how many stamps are remembered, before all are dropped.
const stampsKept = 16384

// stamp is the one that a wanted object should have.
func (m *marker) stamp(name string, addon *catalogue.MergedAddon, leave catalogue.Leave) string {
	now := knownStamp{
		digest: addon.Digest, kkpVersion: m.kkpVersion, left: leave.Of(name), key: string(m.key), stored: m.stored[name+" "+addon.Digest],
	}
	known := m.stamps[name]
	now.stamp = known.stamp
	if known == now && known.stamp != "" {
		return known.stamp
	}
	if len(m.stamps) >= stampsKept {
		clear(m.stamps)
	}
	now.stamp = stampOf(m.annotations(name, addon, leave))
	m.stamps[name] = now
	return now.stamp
}

// annotations are those of a merged object, without its generation.
func (m *marker) annotations(name string, addon *catalogue.MergedAddon, leave catalogue.Leave) map[string]string {
	object := &v1.AddonCatalogue{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: name, Annotations: map[string]string{
		v1.AnnotationDigest: addon.Digest, v1.AnnotationKKPVersion: m.kkpVersion, v1.AnnotationVersions: addon.OriginsJSON(),
		v1.AnnotationSecrets: strings.Join(catalogue.SecretNames(&addon.Spec), ","),
	}}}
	if left := leave.Of(name); left != "" && addon.Spec.Type == v1.CatalogueCore {
		object.Annotations[v1.AnnotationLeftVersions] = left
	}
	object.Annotations[v1.AnnotationMark] = catalogue.Mark(m.key, object, cmp.Or(m.stored[name+" "+addon.Digest], addon.Digest))
	return object.Annotations
}

// plan has the writes for a seed, by name, each list sorted.
type plan struct {
	write, remove []string
	// status are merged catalogues of which only the status must be written.
	status []string
	// held has, by name, the catalogue because of which a merged one is not changed.
	held                      map[string]string
	writeSecret, removeSecret []string
	// removeValues are Secrets for values of sets, which are removed last.
	removeValues []string
}

func planSeed(want *Wanted, with *marker, have observed) plan {
	todo := plan{held: map[string]string{}}
	for name, found := range have.catalogues {
		by := want.holder(found)
		switch {
		case by != "":
			todo.held[name] = by
		case want.Addons[name] == nil && want.Refused[name] == nil:
			todo.remove = append(todo.remove, name)
		}
	}
	for name, addon := range want.Addons {
		switch {
		case todo.held[name] != "":
		case differs(have.catalogues, name, with.stamp(name, addon, want.Leave)):
			todo.write = append(todo.write, name)
		case have.catalogues[name].statusAt != have.catalogues[name].generation:
			todo.status = append(todo.status, name)
		}
	}
	todo.planSecrets(want, have)
	for _, list := range [][]string{todo.write, todo.remove, todo.status, todo.writeSecret, todo.removeSecret, todo.removeValues} {
		slices.Sort(list)
	}
	return todo
}

// planSecrets compares copies of Secrets.
func (p *plan) planSecrets(want *Wanted, have observed) {
	for name, secret := range want.Secrets.Copies {
		if differs(have.secrets, name, secret.Revision) {
			p.writeSecret = append(p.writeSecret, name)
		}
	}
	needed, all := p.needed(want, have)
	for name, found := range have.secrets {
		if _, ok := want.Secrets.Copies[name]; ok || want.Secrets.Held[name] {
			continue
		}
		switch {
		case found.forValues && (!want.Secrets.HoldValues || want.Secrets.Revoked[name]):
			p.removeValues = append(p.removeValues, name)
		case !found.forValues && !needed[name] && !all:
			p.removeSecret = append(p.removeSecret, name)
		}
	}
}

// needed are the Secrets of merged catalogues that stay as they are, since they are held or refused; all: these are unknown.
func (p *plan) needed(want *Wanted, have observed) (needed map[string]bool, all bool) {
	needed = map[string]bool{}
	for name, found := range have.catalogues {
		if p.held[name] == "" && want.Refused[name] == nil {
			continue
		}
		all = all || found.secrets == nil
		for _, secret := range found.secrets {
			needed[secret] = true
		}
	}
	return needed, all
}

func differs(have map[string]observedObject, name, stamp string) bool {
	found, ok := have[name]
	return !ok || found.edited || found.stamp != stamp
}

// digests are those of the merged add-ons that no other client edited.
func (o observed) digests() map[string]string {
	digests := make(map[string]string, len(o.catalogues))
	for name, found := range o.catalogues {
		if !found.edited {
			digests[name] = found.digest
		}
	}
	return digests
}
