package fetch

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"
)

// Identity is a digest of everything in the credentials. Content that was got with some is shown to those only who have
// the same; the digest itself stays in memory or inside of other digests.
func (c Credentials) Identity() [sha256.Size]byte {
	hasher := sha256.New()
	hosts := slices.Clone(c.Hosts)
	slices.Sort(hosts)
	parts := []string{
		c.Username, c.Password, c.BearerToken, string(c.PrivateKey), string(c.KnownHosts), string(c.DockerConfig), string(c.CA),
	}
	for _, part := range append(parts, hosts...) {
		hashPart(hasher, part)
	}
	return [sha256.Size]byte(hasher.Sum(nil))
}

// Key is a digest of the whole reference with its credentials: two references with one key get the same content in every
// respect. It is one-way, but a digest of credentials all the same: what is written to disk goes through a keyed hash.
func (r Reference) Key() [sha256.Size]byte {
	hasher := sha256.New()
	parts := []string{}
	if git := r.Git; git != nil {
		parts = append(parts, "git", git.Remote, git.Branch, git.Tag, git.Commit, git.Semver, git.Path)
	}
	if image := r.Image; image != nil {
		parts = append(parts, "image", image.Image, image.Path)
	}
	if helm := r.Helm; helm != nil {
		parts = append(parts, "helm", helm.URL, helm.Chart, helm.Version)
	}
	identity := r.Credentials.Identity()
	for _, part := range append(parts, string(identity[:])) {
		hashPart(hasher, part)
	}
	return [sha256.Size]byte(hasher.Sum(nil))
}

// hashPart writes a part with its length, so that no two lists of parts look the same.
func hashPart(hasher hash.Hash, part string) {
	var length [8]byte
	binary.BigEndian.PutUint64(length[:], uint64(len(part)))
	hasher.Write(length[:])
	hasher.Write([]byte(part))
}
