package rights

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// TestNames turns red when a name is another one than policies, roles and records know, or than API servers take.
func TestNames(t *testing.T) {
	const id = "0123456789abcdef"
	longest, access := strings.Repeat("i", 63), strings.Repeat("a", 40)
	for name, wanted := range map[string]string{
		AgentName("web", "hub"):                   "addon-agent-web-hub",
		StoredName(id, "hub"):                     "addon-access-0123456789abcdef-hub",
		SecretName("web", v1.Access{Name: "hub"}): "web-hub",
		SecretName("web", v1.Access{Name: "hub", SecretName: "$(installation)-hub-kubeconfig"}): "web-hub-kubeconfig",
		OutboxName("web"):                                             "addon-out-web",
		RequestName(id, []byte("key")):                                "addon-access-0123456789abcdef-2c70e12b7a0646f9", // echo -n key | sha256sum
		CertificateUser("cluster-a", "a", "web", "0f"):                "system:addon:cluster-a:a:web:0f",
		strings.Join(CertificateGroups("cluster-a", "a", "web"), " "): "system:addon:cluster-a:a:web system:addon:web",
	} {
		if name != wanted {
			t.Errorf("a name is %s and not %s", name, wanted)
		}
	}
	for _, name := range []string{
		AgentName(longest, access), StoredName(id, access), DefaultSecretName(longest, access), OutboxName(longest), RequestName(id, nil),
	} {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Errorf("%s: %v", name, problems)
		}
	}
	if RequestName(id, []byte("a")) == RequestName(id, []byte("b")) {
		t.Error("two keys have one request")
	}
}

// TestRenewal turns red when a credential is renewed outside of 80 to 85 % of its life, or many at once, or another
// time after a restart.
func TestRenewal(t *testing.T) {
	issued := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, life := range []time.Duration{time.Nanosecond, 10 * time.Minute, time.Hour, 24 * time.Hour, 720 * time.Hour, 100 * 365 * 24 * time.Hour} {
		var shares []float64
		for at := range 1000 {
			name := fmt.Sprintf("addon-access-%d-hub", at)
			renew := RenewAt(name, issued, issued.Add(life))
			if again := RenewAt(name, issued, issued.Add(life)); !again.Equal(renew) {
				t.Fatalf("%s is renewed at %s and at %s", name, renew, again)
			}
			shares = append(shares, float64(renew.Sub(issued))/float64(life))
		}
		if life == time.Nanosecond {
			continue // a life of no parts
		}
		if least, most := slices.Min(shares), slices.Max(shares); least < 0.8 || most > 0.85 || least > 0.801 || most < 0.849 {
			t.Errorf("of %s they are renewed at %.4f to %.4f", life, least, most)
		}
	}
	for _, expires := range []time.Time{issued, issued.Add(-time.Hour), {}} {
		if renew := RenewAt("a", issued, expires); !renew.Equal(issued) {
			t.Errorf("without a life it is renewed at %s", renew)
		}
	}
}
