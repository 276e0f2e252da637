package catalogue_test

import (
	"testing"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
)

func TestPlatformVersion(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ why, text, want string }{
		{"KKP release", "v2.31.0", "2.31.0"},
		{"KKP patch release", "v2.28.3", "2.28.3"},
		{"commits past a KKP release", "v2.31.0-3-g2974df5", "2.31.0"},
		{"commits past a KKP release, uncommitted changes", "v2.31.0-3-g2974df5b-dirty", "2.31.0"},
		{"KKP pre-release", "v2.32.0-alpha.0", "2.32.0-alpha.0"},
		{"commits past a KKP pre-release", "v2.32.0-alpha.0-45-g1a2b3c4d", "2.32.0-alpha.0"},
		{"KKP beta", "v2.30.0-beta.2", "2.30.0-beta.2"},
		{"KKP release candidate", "v2.29.0-rc.1", "2.29.0-rc.1"},
		{"KKP of an edition", "v2.31.0+ee", "2.31.0"},
		{"upstream", "v1.36.3", "1.36.3"},
		{"upstream without v", "1.37.1", "1.37.1"},
		{"upstream, spaces", " v1.36.3\n", "1.36.3"},
		{"upstream alpha", "v1.38.0-alpha.2", "1.38.0-alpha.2"},
		{"upstream beta", "v1.38.0-beta.0", "1.38.0-beta.0"},
		{"upstream rc", "v1.37.0-rc.1", "1.37.0-rc.1"},
		{"upstream built between tags", "v1.38.0-alpha.0.123+abcdef0123", "1.38.0-alpha.0.123"},
		{"upstream built past a release", "v1.36.3-5+0123456789abcd", "1.36.3"},
		{"upstream with changes", "v1.36.3-dirty", "1.36.3"},
		{"GKE", "v1.34.1-gke.1279000", "1.34.1"},
		{"GKE, short build", "v1.33.5-gke.100", "1.33.5"},
		{"GKE alpha cluster's suffix is the vendor's", "v1.34.0-gke.2009000-alpha", "1.34.0"},
		{"EKS", "v1.34.1-eks-113cf36", "1.34.1"},
		{"EKS, numeric commit", "v1.32.9-eks-3025e55", "1.32.9"},
		{"AKS reports upstream versions", "v1.33.4", "1.33.4"},
		{"AKS hot fix", "v1.27.9-hotfix.20240101", "1.27.9"},
		{"k3s", "v1.34.1+k3s1", "1.34.1"},
		{"k3s release candidate", "v1.34.2-rc1+k3s1", "1.34.2-rc1"},
		{"RKE2", "v1.34.1+rke2r1", "1.34.1"},
		{"RKE2 release candidate", "v1.34.2-rc2+rke2r1", "1.34.2-rc2"},
		{"RKE1", "v1.26.8-rancher1-1", "1.26.8"},
		{"OpenShift", "v1.33.5+e53a9ff", "1.33.5"},
		{"Tanzu", "v1.33.1+vmware.1-fips", "1.33.1"},
		{"DigitalOcean", "v1.33.1-do.3", "1.33.1"},
		{"Alibaba", "v1.34.1-aliyun.1", "1.34.1"},
		{"Tencent", "v1.32.2-tke.5", "1.32.2"},
		{"Huawei", "v1.33.5-r0-33.0.6", "1.33.5"},
		{"Oracle reports upstream", "v1.34.1", "1.34.1"},
		{"IBM", "v1.33.6+IKS", "1.33.6"},
		{"Linode", "v1.33.4+lke2", "1.33.4"},
		{"Mirantis", "v1.30.14-mirantis-1", "1.30.14"},
		{"Talos reports upstream", "v1.34.2", "1.34.2"},
		{"Charmed", "v1.34.1+ck2", "1.34.1"},
		{"pre-release with a vendor's suffix", "v1.35.0-rc.1-gke.5", "1.35.0-rc.1"},
		{"pre-release in capitals", "v1.35.0-RC1", "1.35.0-RC1"},
		{"major and minor only", "v1.36", "1.36.0"},
		{"nothing", "", ""},
		{"nightly's commit hash", "2974df5b0c4e8f6d9a1b2c3d4e5f60718293a4b5", ""},
		{"digits only", "1234567", ""},
		{"a word", "latest", ""},
		{"four numbers", "1.36.3.4", ""},
		{"a huge number", "1.99999999999999999999999.0", ""},
		{"a plus sign in the minor", "1.36+", "1.36.0"},
	} {
		got := ""
		if version, ok := catalogue.PlatformVersion(test.text); ok {
			got = version.String()
		}
		if got != test.want {
			t.Errorf("%s: PlatformVersion(%q) = %q, want %q", test.why, test.text, got, test.want)
		}
	}
}

func TestFits(t *testing.T) {
	t.Parallel()
	const kkp, k8s, invalid = v1.ExcludedKKPVersion, v1.ExcludedK8sVersion, v1.ExcludedConstraintInvalid
	for _, test := range []struct {
		why                string
		kkpRange, k8sRange v1.VersionRange
		platform           catalogue.Platform
		want               string
	}{
		{"no constraints", "", "", catalogue.Platform{KKPVersion: "v2.31.0", K8sVersion: "v1.36.3"}, ""},
		{"no constraints, nothing known", "", "", catalogue.Platform{}, ""},
		{"both in range", ">= 2.28", ">= 1.34, < 1.38", catalogue.Platform{KKPVersion: "v2.31.0", K8sVersion: "v1.36.3"}, ""},
		{"KKP too old", ">= 2.28", "", catalogue.Platform{KKPVersion: "v2.27.9", K8sVersion: "v1.36.3"}, kkp},
		{"KKP told first", ">= 2.28", ">= 1.37", catalogue.Platform{KKPVersion: "v2.27.9", K8sVersion: "v1.36.3"}, kkp},
		{"KKP between releases", ">= 2.31", "", catalogue.Platform{KKPVersion: "v2.31.0-3-g2974df5"}, ""},
		{"KKP exactly, between releases", "2.31.0", "", catalogue.Platform{KKPVersion: "v2.31.0-3-g2974df5"}, ""},
		{"KKP pre-release and a plain range", ">= 2.31", "", catalogue.Platform{KKPVersion: "v2.32.0-alpha.0"}, kkp},
		{"KKP pre-release named", ">= 2.32.0-alpha.0", "", catalogue.Platform{KKPVersion: "v2.32.0-alpha.0"}, ""},
		{"KKP pre-release allowed", ">= 2.31", "",
			catalogue.Platform{KKPVersion: "v2.32.0-alpha.0", AllowPrereleases: true}, ""},
		{"KKP pre-release comes before its release", ">= 2.32", "",
			catalogue.Platform{KKPVersion: "v2.32.0-alpha.0", AllowPrereleases: true}, kkp},
		{"KKP unknown", ">= 2.28", "", catalogue.Platform{K8sVersion: "v1.36.3"}, kkp},
		{"KKP unreadable", ">= 2.28", "", catalogue.Platform{KKPVersion: "2974df5b", K8sVersion: "v1.36.3"}, kkp},
		{"unknown KKP, unconstrained", "", ">= 1.34", catalogue.Platform{K8sVersion: "v1.36.3"}, ""},
		{"Kubernetes too old", "", ">= 1.34", catalogue.Platform{K8sVersion: "v1.33.9"}, k8s},
		{"Kubernetes too new", "", "< 1.38", catalogue.Platform{K8sVersion: "v1.38.0"}, k8s},
		{"Kubernetes unknown", "", ">= 1.0", catalogue.Platform{KKPVersion: "v2.31.0"}, k8s},
		{"any version still has to be known", "", "*", catalogue.Platform{}, k8s},
		{"minor means its patches", "", "1.36", catalogue.Platform{K8sVersion: "v1.36.3"}, ""},
		{"up to a minor means with its patches", "", "<= 1.36", catalogue.Platform{K8sVersion: "v1.36.9"}, ""},
		{"above a minor means without its patches", "", "> 1.36", catalogue.Platform{K8sVersion: "v1.36.9"}, k8s},
		{"x", "", "1.36.x", catalogue.Platform{K8sVersion: "v1.36.0"}, ""},
		{"tilde", "", "~1.36.2", catalogue.Platform{K8sVersion: "v1.36.1"}, k8s},
		{"caret", "", "^1.34", catalogue.Platform{K8sVersion: "v1.37.1"}, ""},
		{"hyphen", "", "1.34 - 1.36", catalogue.Platform{K8sVersion: "v1.36.3"}, ""},
		{"hyphen ends", "", "1.34 - 1.36", catalogue.Platform{K8sVersion: "v1.37.0"}, k8s},
		{"alternatives", "", "< 1.30 || >= 1.36", catalogue.Platform{K8sVersion: "v1.36.3"}, ""},
		{"alternatives leave a gap", "", "< 1.30 || >= 1.36", catalogue.Platform{K8sVersion: "v1.33.0"}, k8s},
		{"spaces for commas", "", ">=1.34 <1.37", catalogue.Platform{K8sVersion: "v1.37.1"}, k8s},
		{"not one", "", "!= 1.36.2", catalogue.Platform{K8sVersion: "v1.36.2"}, k8s},
		{"GKE in a plain range", "", ">= 1.34.1", catalogue.Platform{K8sVersion: "v1.34.1-gke.1279000"}, ""},
		{"EKS in a plain range", "", ">= 1.34.1", catalogue.Platform{K8sVersion: "v1.34.1-eks-113cf36"}, ""},
		{"k3s in an exact range", "", "= 1.34.1", catalogue.Platform{K8sVersion: "v1.34.1+k3s1"}, ""},
		{"RKE2 candidate in a plain range", "", ">= 1.34", catalogue.Platform{K8sVersion: "v1.34.2-rc2+rke2r1"}, k8s},
		{"RKE2 candidate allowed", "", ">= 1.34",
			catalogue.Platform{K8sVersion: "v1.34.2-rc2+rke2r1", AllowPrereleases: true}, ""},
		{"candidate in a range that names one", "", ">= 1.37.0-0", catalogue.Platform{K8sVersion: "v1.37.0-rc.1"}, ""},
		{"named in the other alternative only", "", ">= 1.37.0-0 || < 1.30", catalogue.Platform{K8sVersion: "v1.29.0-rc.1"}, k8s},
		{"KKP range broken", "not a range", "", catalogue.Platform{KKPVersion: "v2.31.0"}, invalid},
		{"Kubernetes range broken", "", ">= one", catalogue.Platform{K8sVersion: "v1.36.3"}, invalid},
		{"broken range, version unknown", "", ">=", catalogue.Platform{}, invalid},
		{"blank is not everything", "", " ", catalogue.Platform{K8sVersion: "v1.36.3"}, invalid},
		{"empty alternative is not everything", "", ">= 1.99 ||", catalogue.Platform{K8sVersion: "v1.36.3"}, invalid},
		{"four numbers", "", ">= 1.2.3.4", catalogue.Platform{K8sVersion: "v1.36.3"}, invalid},
	} {
		version := &v1.AddonVersion{Version: "1.0.0"}
		if test.kkpRange != "" || test.k8sRange != "" {
			version.Constraints = &v1.Constraints{KKPVersion: test.kkpRange, K8sVersion: test.k8sRange}
		}
		reason, message := catalogue.Fits(version, test.platform)
		if reason != test.want {
			t.Errorf("%s: reason %q (%s), want %q", test.why, reason, message, test.want)
		}
		if (reason == "") != (message == "") {
			t.Errorf("%s: reason %q and message %q don't go together", test.why, reason, message)
		}
	}
}

func FuzzPlatformVersion(f *testing.F) {
	for _, seed := range []string{"v2.31.0-3-g2974df5", "v1.34.1-gke.100", "v1.34.2-rc1+k3s1", "", "-", "v", "1.+"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		version, ok := catalogue.PlatformVersion(text)
		if !ok {
			return
		}
		again, ok := catalogue.PlatformVersion(version.String())
		if !ok || !again.Equal(version) {
			t.Errorf("%q reads as %s, which reads as %v", text, version, again)
		}
	})
}

func FuzzRange(f *testing.F) {
	for _, seed := range []string{">= 1.34, < 1.38", "1.x", "~1.2", "1.2 - 1.4", "<1 || >=2", "", "||", "x.x.x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		version := &v1.AddonVersion{Constraints: &v1.Constraints{K8sVersion: v1.VersionRange(text)}}
		reason, message := catalogue.Fits(version, catalogue.Platform{K8sVersion: "v1.36.3"})
		if (reason == "") != (message == "") {
			t.Errorf("range %q: reason %q and message %q don't go together", text, reason, message)
		}
	})
}

// TestWhatFitsKubernetes fails when a version that no longer fits KKP is reported as one that no longer fits
// Kubernetes: all clusters of a fleet would leave it at once.
func TestWhatFitsKubernetes(t *testing.T) {
	t.Parallel()
	bounded := func(name string, kkp, k8s v1.VersionRange) v1.AddonVersion {
		return v1.AddonVersion{Version: name, Constraints: &v1.Constraints{KKPVersion: kkp, K8sVersion: k8s}}
	}
	entry, err := catalogue.NewEntry(&v1.AddonCatalogue{Spec: v1.AddonCatalogueSpec{Type: v1.CatalogueCustom, Addons: []v1.Addon{{
		Name: "web", Versions: []v1.AddonVersion{bounded("1.0.0", "< 2.31", ""), bounded("2.0.0", "< 2.31", "< 1.37"), bounded("3.0.0", "", "< 1.37")},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	platform := catalogue.Platform{KKPVersion: "v2.31.0", K8sVersion: "v1.37.0"}
	for version, want := range map[string]bool{"1.0.0": true, "2.0.0": false, "3.0.0": false, "4.0.0": true} {
		if got := entry.FitsKubernetes(version, platform); got != want {
			t.Errorf("%s: %v, want %v", version, got, want)
		}
	}
}
