package catalogue

import v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"

// Fits evaluates one version, as Available and Select do.
func Fits(version *v1.AddonVersion, platform Platform) (reason, message string) {
	return newPlatformCheck(platform).fits(readConstraints(version))
}

// VersionDigest is the digest that Read computes for a version.
func VersionDigest(version *v1.AddonVersion) (string, error) {
	digest, _, err := measure(version)
	return digest, err
}
