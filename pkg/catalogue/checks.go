package catalogue

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// SourceKey identifies all that a check of a version depends on: its source, and the settings of its rendering.
// Versions with equal keys are checked once. Empty: the version has no source.
func SourceKey(version *v1.AddonVersion) string {
	if version.Source == nil || version.Template == nil {
		return ""
	}
	template := version.Template
	parts := []any{
		version.Source, template.Method, template.FormSpec, template.Helm, template.ClusterSecrets, version.Values, version.ValuesTemplate,
		SampleKubernetes(version),
	}
	if len(version.ValuesFrom) > 0 { // the keys of other versions stay
		parts = append(parts, version.ValuesFrom)
	}
	digest, err := Digest(parts)
	if err != nil { // versions are decoded from JSON
		return ""
	}
	return ContentKey(digest)
}

const keyLength = 16

// ContentKey is a prefix of a content's digest, by which a check finds content that it rendered before.
func ContentKey(digest string) string {
	digest = strings.TrimPrefix(digest, "sha256:")
	return digest[:min(len(digest), keyLength)]
}

var keyPattern = regexp.MustCompile(`^[0-9a-f]{16}$`)

// SourceUse is a version with a source.
type SourceUse struct{ Addon, Version, Key string }

// SourcesOf are the versions with sources of each catalogue, by its name, sorted.
func SourcesOf(merged Merged) map[string][]SourceUse {
	uses := map[string][]SourceUse{}
	for _, name := range slices.Sorted(maps.Keys(merged.Addons)) {
		addon := merged.Addons[name]
		for i := range addon.Spec.Addons[0].Versions {
			version := &addon.Spec.Addons[0].Versions[i]
			if key := SourceKey(version); key != "" {
				from := addon.Origins[version.Version].Catalogue
				uses[from] = append(uses[from], SourceUse{name, version.Version, key})
			}
		}
	}
	return uses
}

// SourceFault is a problem of a source.
type SourceFault struct {
	// Reason is one of SourceReasons.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
	// Content is the ContentKey of the content that this process rendered; empty: none. Another process may be of
	// another release, or have other limits.
	Content string `json:"-"`
}

// SourceChecks are the results of a seed's checks of sources, by their keys. A source in neither list is not checked.
type SourceChecks struct {
	// Seen changes while the seed's manager works.
	Seen string
	Good map[string]bool
	// Unrendered are those of Good that can't be rendered without an installation.
	Unrendered map[string]bool
	Bad        map[string]SourceFault
}

// Keys of ConfigMap v1.ConfigMapSourceChecks.
const (
	checksSeen = "seen"
	checksGood = "good"
	checksBad  = "bad"
	// checksUnrendered are keys of checksGood too.
	checksUnrendered = "unrendered"
)

const (
	// checksLimit is the maximum size of the ConfigMap in bytes; the API server accepts 1 MiB.
	checksLimit = 900 << 10
	// faultLimit is the maximum size of a fault's message, in bytes.
	faultLimit = 300
)

// FaultsLimit is the maximum number of faults that a seed reports; Encode omits further ones, in the order of their
// keys.
const FaultsLimit = 10_000

// NewSourceFault shortens and cleans a message for other readers.
func NewSourceFault(reason, message string) SourceFault {
	return SourceFault{Reason: reason, Message: text.Cut(text.Line(text.Cut(message, 2*faultLimit)), faultLimit)}
}

// Encode is the data of the ConfigMap. If it is too large, Encode omits messages first, and then good sources: they
// count as not checked.
func (c *SourceChecks) Encode() map[string]string {
	bad := make(map[string]SourceFault, len(c.Bad))
	for _, key := range slices.Sorted(maps.Keys(c.Bad))[:min(len(c.Bad), FaultsLimit)] {
		bad[key] = c.Bad[key]
	}
	data := map[string]string{checksSeen: c.Seen, checksBad: encodeFaults(bad)}
	good, unrendered := slices.Sorted(maps.Keys(c.Good)), slices.Sorted(maps.Keys(c.Unrendered))
	if len(data[checksBad])+(len(good)+len(unrendered))*(keyLength+1) > checksLimit {
		for key, fault := range bad {
			bad[key] = SourceFault{Reason: fault.Reason}
		}
		data[checksBad] = encodeFaults(bad)
		most := max(0, checksLimit-len(data[checksBad])) / (keyLength + 1)
		unrendered = unrendered[:min(len(unrendered), most/2)]
		good = good[:min(len(good), most-len(unrendered))]
	}
	data[checksGood] = strings.Join(good, " ")
	if len(unrendered) > 0 {
		data[checksUnrendered] = strings.Join(unrendered, " ")
	}
	return data
}

func encodeFaults(bad map[string]SourceFault) string {
	encoded, err := json.Marshal(bad)
	if err != nil { // texts always encode
		return "{}"
	}
	return string(encoded)
}

// DecodeSourceChecks reads the data of a seed, and omits all that Encode does not write.
func DecodeSourceChecks(data map[string]string) *SourceChecks {
	read := &SourceChecks{
		Seen: text.Cut(data[checksSeen], faultLimit), Good: decodeKeys(data[checksGood]), Unrendered: decodeKeys(data[checksUnrendered]),
		Bad: map[string]SourceFault{},
	}
	var bad map[string]SourceFault
	if json.Unmarshal([]byte(data[checksBad]), &bad) != nil || len(bad) > FaultsLimit {
		return read
	}
	for key, fault := range bad {
		if keyPattern.MatchString(key) && slices.Contains(SourceReasons, fault.Reason) {
			read.Bad[key] = NewSourceFault(fault.Reason, fault.Message)
		}
	}
	return read
}

func decodeKeys(list string) map[string]bool {
	keys := map[string]bool{}
	for key := range strings.FieldsSeq(list) {
		if keyPattern.MatchString(key) {
			keys[key] = true
		}
	}
	return keys
}

// FetchReasons are the reasons why a source can't be fetched, worst first; SourceReasons also has those why it can't
// be rendered.
var (
	FetchReasons  = []string{v1.ReasonArtifactNotFound, v1.ReasonArtifactRefused, v1.ReasonSourceNotServed, v1.ReasonFetchFailed}
	SourceReasons = []string{
		v1.ReasonArtifactNotFound, v1.ReasonArtifactRefused, v1.ReasonNoManifests, v1.ReasonDependenciesMissing, v1.ReasonRenderFailed,
		v1.ReasonLimitExceeded, v1.ReasonSourceNotServed, v1.ReasonFetchFailed,
	}
)

// SourceShare lists the seeds that check sources, and says which of them a seed is.
type SourceShare struct {
	Seed  string   `json:"seed"`
	Seeds []string `json:"seeds"`
}

// Encode is the value of key v1.SourceShare.
func (s SourceShare) Encode() string {
	encoded, err := json.Marshal(s)
	if err != nil { // texts always encode
		return ""
	}
	return string(encoded)
}

// DecodeSourceShare reads the value that the master wrote; the result is empty if it is invalid.
func DecodeSourceShare(data string) (share SourceShare) {
	if err := json.Unmarshal([]byte(data), &share); err != nil {
		return SourceShare{}
	}
	return share
}

// CheckerOf is the seed that checks a source; empty: there is none. If a seed is added or removed, only its own
// sources change their checker.
func CheckerOf(key string, seeds []string) (checker string) {
	var most uint64
	for _, seed := range seeds {
		hash := fnv.New64a()
		hash.Write([]byte(seed + "/" + key))
		sum := hash.Sum64()
		if checker == "" || sum > most || sum == most && seed < checker {
			checker, most = seed, sum
		}
	}
	return checker
}

// Text is a fault with its version.
func (u SourceUse) Text(fault SourceFault) string {
	said := fault.Message
	if said == "" {
		said = fault.Reason
	}
	return fmt.Sprintf("add-on %q version %q: %s", u.Addon, u.Version, said)
}
