package catalogue_test

import (
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

// TestCompatibility compares versions as KKP and Kubernetes distributions report them with ranges as catalogues have
// them. Want is "" if the version fits, otherwise the exclusion reason.
func TestCompatibility(t *testing.T) {
	t.Parallel()
	const kkp, k8s, invalid = v1.ExcludedKKPVersion, v1.ExcludedK8sVersion, v1.ExcludedConstraintInvalid
	const onKKP, onK8s = true, false
	for _, test := range []struct {
		// constrains says which of the two versions the range is for; the other one is known and not constrained.
		constrains bool
		version    string
		span       v1.VersionRange
		want       string
		why        string
	}{
		{onKKP, "v2.31.0", ">= 2.28", "", "a KKP release"},
		{onKKP, "v2.27.9", ">= 2.28", kkp, "a KKP release before the range"},
		{onKKP, "v2.28.0", ">= 2.28", "", "the range begins with its release"},
		{onKKP, "v2.28.3", "~2.28.1", "", "a patch release"},
		{onKKP, "v2.29.0", "~2.28.1", kkp, "a tilde ends with its minor"},
		{onKKP, "v2.31.0", "2.28 - 2.30", kkp, "a hyphen range has both ends"},
		{onKKP, "v2.30.4", "2.28 - 2.30", "", "a minor as the end has its patches"},
		{onKKP, "v2.31.0-3-g2974df5", ">= 2.31", "", "commits past a release have what it has"},
		{onKKP, "v2.31.0-3-g2974df5", "= 2.31.0", "", "and are no pre-release"},
		{onKKP, "v2.31.0-3-g2974df5", "> 2.31.0", kkp, "nor more than it"},
		{onKKP, "v2.31.0-3-g2974df5b-dirty", "2.31.x", "", "with changes that are not committed"},
		{onKKP, "v2.30.1-112-gdeadbeef0", "< 2.31", "", "many commits past a release are still before the next"},
		{onKKP, "v2.32.0-alpha.0", ">= 2.31", kkp, "a pre-release needs a range that names one"},
		{onKKP, "v2.32.0-alpha.0", ">= 2.32.0-0", "", "such as this"},
		{onKKP, "v2.32.0-alpha.0-45-g1a2b3c4d", ">= 2.31", kkp, "commits past a pre-release are one too"},
		{onKKP, "v2.32.0-alpha.0-45-g1a2b3c4d", ">= 2.32.0-alpha.0", "", "and compare as it does"},
		{onKKP, "v2.30.0-beta.2", ">= 2.30.0-beta.1", "", "pre-releases have an order"},
		{onKKP, "v2.30.0-beta.2", ">= 2.30.0-rc.0", kkp, "beta is before rc"},
		{onKKP, "v2.29.0-rc.1", "< 2.29.0", kkp, "a pre-release does not slip in from below either"},
		{onKKP, "v2.29.0", ">= 2.29.0-rc.1", "", "a release is above its pre-releases"},
		{onKKP, "v2.31.0+ee", "= 2.31.0", "", "an edition is build metadata"},
		{onKKP, "2974df5b0c4e8f6d9a1b2c3d4e5f60718293a4b5", ">= 2.28", kkp, "a nightly's commit hash is no version"},
		{onKKP, "2974df5b0c4e8f6d9a1b2c3d4e5f60718293a4b5", "", "", "which matters only where there is a range"},
		{onKKP, "", ">= 2.28", kkp, "an unknown version fits no range"},
		{onKKP, "", "*", kkp, "not even one that has everything"},

		{onK8s, "v1.36.3", ">= 1.34, < 1.38", "", "an upstream release"},
		{onK8s, "1.36.3", ">= 1.34, < 1.38", "", "as a Cluster's spec writes it"},
		{onK8s, "v1.38.0", ">= 1.34, < 1.38", k8s, "the first that is beyond"},
		{onK8s, "v1.33.9", ">= 1.34, < 1.38", k8s, "the last that is before"},
		{onK8s, "v1.37.0-rc.1", ">= 1.34, < 1.38", k8s, "an upstream candidate"},
		{onK8s, "v1.37.0-rc.1", ">= 1.37.0-0", "", "where the range names one"},
		{onK8s, "v1.38.0-alpha.2", ">= 1.37.0-0 < 1.38", "", "in a range that names one, a pre-release comes before its release"},
		{onK8s, "v1.38.0-beta.0", ">= 1.38.0-alpha.0", "", "an upstream beta"},
		{onK8s, "v1.38.0-alpha.0.123+abcdef0123", ">= 1.38.0-alpha.0", "", "built between two tags of upstream"},
		{onK8s, "v1.36.3-5+0123456789abcd", "= 1.36.3", "", "built past a release of upstream"},
		{onK8s, "v1.34.1-gke.1279000", ">= 1.34.1", "", "GKE is no pre-release of its version"},
		{onK8s, "v1.34.1-gke.1279000", "1.34.x", "", "in an x range"},
		{onK8s, "v1.33.5-gke.1080000", ">= 1.34", k8s, "GKE before the range"},
		{onK8s, "v1.34.0-gke.2009000-alpha", "= 1.34.0", "", "a GKE cluster with alpha features is of a release"},
		{onK8s, "v1.35.0-rc.1-gke.5", ">= 1.35.0-rc.0", "", "a candidate by GKE"},
		{onK8s, "v1.35.0-rc.1-gke.5", ">= 1.34", k8s, "which is one"},
		{onK8s, "v1.34.1-eks-113cf36", "= 1.34.1", "", "EKS"},
		{onK8s, "v1.32.9-eks-3025e55", "^1.30", "", "EKS, with a commit that could be a number"},
		{onK8s, "v1.31.13-eks-ecaa3a6", ">= 1.32", k8s, "EKS before the range"},
		{onK8s, "v1.33.4", "~1.33", "", "AKS reports upstream's"},
		{onK8s, "v1.27.9-hotfix.20240101", "= 1.27.9", "", "an AKS hot fix"},
		{onK8s, "v1.32.7", ">= 1.33", k8s, "AKS before the range"},
		{onK8s, "v1.34.1+k3s1", "= 1.34.1", "", "k3s says its build behind a plus"},
		{onK8s, "v1.34.1+k3s2", "> 1.34.1", k8s, "a later build of k3s is no later version"},
		{onK8s, "v1.34.2-rc1+k3s1", ">= 1.34", k8s, "a candidate of k3s"},
		{onK8s, "v1.34.2-rc1+k3s1", ">= 1.34.2-0", "", "where the range names one"},
		{onK8s, "v1.30.14+k3s2", ">= 1.28 < 1.31", "", "an old k3s"},
		{onK8s, "v1.34.1+rke2r1", "1.33 - 1.34", "", "RKE2"},
		{onK8s, "v1.34.2-rc2+rke2r1", "~1.34.1", k8s, "a candidate of RKE2"},
		{onK8s, "v1.31.9+rke2r1", "!= 1.31.9", k8s, "the one version that is excluded"},
		{onK8s, "v1.26.8-rancher1-1", "<= 1.26", "", "RKE1"},
		{onK8s, "v1.33.5+e53a9ff", ">= 1.33.5", "", "OpenShift"},
		{onK8s, "v1.33.1+vmware.1-fips", "= 1.33.1", "", "Tanzu"},
		{onK8s, "v1.33.1-do.3", ">= 1.33.1", "", "DigitalOcean"},
		{onK8s, "v1.34.1-aliyun.1", ">= 1.34", "", "Alibaba"},
		{onK8s, "v1.32.2-tke.5", "1.32", "", "Tencent"},
		{onK8s, "v1.33.5-r0-33.0.6", "= 1.33.5", "", "Huawei"},
		{onK8s, "v1.33.6+IKS", "< 1.30 || >= 1.33", "", "IBM, in the second alternative"},
		{onK8s, "v1.31.6+IKS", "< 1.30 || >= 1.33", k8s, "IBM, between alternatives"},
		{onK8s, "1.36+", ">= 1.36", "", "a minor with a plus"},
		{onK8s, "", ">= 1.0", k8s, "a cluster without a version yet"},
		{onK8s, "", "", "", "gets what is not constrained"},
		{onK8s, "v1.36.3", ">= one", invalid, "a range that can't be read is never everything"},
		{onK8s, "", "1.36.3.4", invalid, "whatever the version"},
		{onK8s, "v1.36.3", ">= 1.34,", invalid, "nor is one that is half written"},
		{onKKP, "v2.31.0", "latest", invalid, "nor a word"},
	} {
		version := &v1.AddonVersion{Version: "1.0.0"}
		platform := catalogue.Platform{KKPVersion: "v2.31.0", K8sVersion: "v1.36.3"}
		switch test.constrains {
		case onKKP:
			platform.KKPVersion = test.version
			version.Constraints = &v1.Constraints{KKPVersion: test.span}
		default:
			platform.K8sVersion = test.version
			version.Constraints = &v1.Constraints{K8sVersion: test.span}
		}
		if got, message := catalogue.Fits(version, platform); got != test.want {
			t.Errorf("%s: %q in %q gives %q (%s), want %q", test.why, test.version, test.span, got, message, test.want)
		}
		platform.AllowPrereleases = true
		got, _ := catalogue.Fits(version, platform)
		if test.want == "" && got != "" {
			t.Errorf("%s: %q in %q fits, and no more with pre-releases allowed: %q", test.why, test.version, test.span, got)
		}
		if test.want == invalid && got != invalid {
			t.Errorf("%s: %q gives %q with pre-releases allowed", test.why, test.span, got)
		}
	}
}

// TestPrereleasesAllowed: with --allow-prereleases, a pre-release is compared by its precedence.
func TestPrereleasesAllowed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		version, span string
		fits          bool
		why           string
	}{
		{"v1.37.0-rc.1", ">= 1.34, < 1.38", true, "between the ends"},
		{"v1.38.0-alpha.2", ">= 1.34, < 1.38", true, "before the release that the range ends with"},
		{"v1.34.0-rc.1", ">= 1.34", false, "before the release that the range begins with"},
		{"v1.34.2-rc1+k3s1", "~1.34.1", true, "a candidate of k3s"},
		{"v1.34.2-rc2+rke2r1", "= 1.34.2", false, "a candidate is not its release"},
		{"v1.38.0-alpha.2", "<= 1.37", false, "a minor as the end has its patches and no more"},
	} {
		version := &v1.AddonVersion{Constraints: &v1.Constraints{K8sVersion: v1.VersionRange(test.span)}}
		reason, message := catalogue.Fits(version, catalogue.Platform{K8sVersion: test.version, AllowPrereleases: true})
		if (reason == "") != test.fits {
			t.Errorf("%s: %q in %q gives %q (%s)", test.why, test.version, test.span, reason, message)
		}
	}
}
