package access

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/access/certificate"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/signer"
)

const otherSigner = "signer.example.com/agents"

// sign puts what a signer gives for a request into its status.
func (s *seed) sign(by *signer.Signer, name string) {
	s.t.Helper()
	s.give(name, s.signed(by, name))
}

func (s *seed) signed(by *signer.Signer, name string) []byte {
	s.t.Helper()
	signed, err := by.Sign(s.request(name).Spec.Request, time.Hour, s.now)
	s.must(err)
	return signed
}

func (s *seed) give(name string, signed []byte) {
	s.t.Helper()
	found := s.request(name)
	found.Status.Certificate = signed
	s.must(s.admin.Status().Update(s.t.Context(), found))
}

// next is the pass that is due next.
func (s *seed) next(after Status) {
	s.t.Helper()
	if after.Next.IsZero() {
		s.t.Fatalf("there is no next look: %+v", after)
	}
	s.now = after.Next
}

// The signer is Kubernetes' own, and the agent one of the API server's.
func TestACertificateIsAskedForApprovedSignedAndUsed(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "pair")
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
		s.keeper = s.another(Options{Approves: []string{v1.SignerAPIServer}})
		access := certificateAccess("pair")
		waiting := s.refused(access, v1.ReasonProgressing)
		calls := writes(s.made())
		if want := []string{"create Secret", "create Role", "create RoleBinding", "create CertificateSigningRequest", "approve"}; !slices.Equal(calls, want) {
			t.Errorf("its calls are %q, not %q", calls, want)
		}
		if waiting.Usable || waiting.Request == "" || !waiting.Next.After(s.now) || !strings.Contains(waiting.Problem.Message, v1.SignerAPIServer) {
			t.Errorf("%+v: %+v", waiting, waiting.Problem)
		}
		request := s.request(waiting.Request)
		if *request.Spec.ExpirationSeconds != 24*3600 || request.Labels[v1.LabelAccess] != s.holder.Owner.ID() ||
			request.Annotations[v1.AnnotationAccessOf] != "agent" || len(request.OwnerReferences) > 0 {
			t.Errorf("%+v", request)
		}
		for label, want := range map[string]string{v1.LabelAddon: "policies", v1.LabelCluster: "pair", v1.LabelClusterNamespace: "cluster-pair"} {
			if got := request.Labels[label]; got != want {
				t.Errorf("label %s is %q, not %q", label, got, want)
			}
		}
		ready := s.becomes(access)
		groups := []string{"system:addon:cluster-pair:pair:policies", "system:addon:policies"}
		if ready.Signer != v1.SignerAPIServer || !slices.Equal(ready.Groups, groups) {
			t.Errorf("its signer is %q, its groups are %q", ready.Signer, ready.Groups)
		}
		calls = slices.DeleteFunc(writes(s.made()), func(call string) bool { return call == "update Secret" })
		if len(calls) > 0 || !ready.Usable || ready.Request != "" || !strings.HasPrefix(ready.Subject, "system:addon:cluster-pair:pair:policies:") {
			t.Errorf("%+v, after %q", ready, calls)
		}
		if life := time.Until(ready.Expires); life < 23*time.Hour || life > 24*time.Hour {
			t.Errorf("it lasts %s", life)
		}
		before := s.mounted(access)
		before.works()
		if may, err := before.may("get", "", "secrets", "cluster-pair", "any"); may || err != nil {
			t.Errorf("Secrets: %t, %v", may, err)
		}
		s.settled()
		s.good(access)
		s.made()
		if again := s.good(access); !reflect.DeepEqual(again, ready) || len(s.made()) > 0 {
			t.Errorf("at rest: %+v, not %+v", again, ready)
		}
		s.memory = &Memory{}
		again := s.good(access)
		if calls := s.made(); !reflect.DeepEqual(again, ready) || !slices.Equal(calls, []string{"get Secret"}) {
			t.Errorf("after a restart: %+v, by %q", again, calls)
		}

		s.now = ready.Next
		pending := s.refused(access, v1.ReasonRenewalPending)
		if !pending.Usable || pending.Request == "" || pending.Request == request.Name || pending.Digest != ready.Digest {
			t.Errorf("%+v", pending)
		}
		s.mounted(access).works() // the pair that counts, while the next key is beside it
		renewed := s.becomes(access)
		if renewed.Digest == ready.Digest || renewed.Subject != ready.Subject {
			t.Errorf("%+v after %+v", renewed, ready)
		}
		before.works()
		s.mounted(access).works()

		s.settled()
		s.holder.RotateAt = "now" // AG09
		rotated := s.becomes(access)
		if rotated.Subject == renewed.Subject {
			t.Errorf("its user is %q as before", rotated.Subject)
		}
		before.ends(remembers, false)
		s.mounted(access).works()
	})
}

// Another type, or signer, is another credential: the former's rights go.
func TestAnotherTypeIsAnotherCredential(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "types")
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
		s.keeper = s.another(Options{Approves: []string{v1.SignerAPIServer, otherSigner}})
		s.good(hubAccess("x"))
		byToken := s.mounted(hubAccess("x"))
		byToken.works()
		s.settled()
		s.becomes(certificateAccess("x"))
		byToken.ends(remembers, true)
		byCertificate := s.mounted(certificateAccess("x"))
		byCertificate.works()
		s.settled()
		other := v1.Access{Name: "x", Type: v1.AccessByCertificate, SignerName: otherSigner}
		waiting := s.refused(other, v1.ReasonProgressing)
		s.sign(signer.New(t, otherSigner), waiting.Request)
		s.next(waiting)
		s.good(other)
		byCertificate.ends(remembers, false)
		s.settled()
		if left := s.left(); len(left) != 1 {
			t.Errorf("left are %q", left)
		}
		s.good(hubAccess("x"))
		s.mounted(hubAccess("x")).works()
	})
}

// A certificate of another signer has nothing of the API server.
func TestAnotherSignersCertificateHasNoRightsAndNoKubeconfig(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "other")
		s.keeper = s.another(Options{Approves: []string{otherSigner}})
		access := v1.Access{Name: "x", Type: v1.AccessByCertificate, SignerName: otherSigner}
		waiting := s.refused(access, v1.ReasonProgressing)
		s.sign(signer.New(t, otherSigner), waiting.Request)
		s.next(waiting)
		good := s.good(access)
		content, digest, err := s.keeper.Content(t.Context(), s.holder, access)
		if err != nil || digest != good.Digest || len(content) != 2 || len(content[KeyCertificate]) == 0 || len(content[KeyPrivate]) == 0 {
			t.Errorf("%d keys, digest %q, %v", len(content), digest, err)
		}
		if !strings.HasPrefix(good.Subject, "system:addon:cluster-other:other:") || good.Signer != otherSigner || len(s.left()) != 1 {
			t.Errorf("%+v; made are %q", good, s.left())
		}
		s.hub.Server += "/other"
		if other := s.good(access); other.Digest != good.Digest {
			t.Error("another address of the hub is another content")
		}
	})
}

// TestACertificateHasTheSubjectThatItsVersionNames fails when the signed certificate or the status has another subject,
// when a new subject keeps the certificate of the previous one, and when an add-on of a Custom catalogue gets the subject
// of another add-on: the certificate that it has stays as it is.
func TestACertificateHasTheSubjectThatItsVersionNames(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "named")
		s.keeper = s.another(Options{Approves: []string{otherSigner}})
		by := signer.New(t, otherSigner)
		access := v1.Access{Name: "x", Type: v1.AccessByCertificate, SignerName: otherSigner}
		get := func(user string, groups ...string) Status {
			s.settled()
			access.Subject = &v1.AccessSubject{User: user, Groups: groups}
			waiting := s.refused(access, v1.ReasonProgressing)
			s.sign(by, waiting.Request)
			s.next(waiting)
			return s.good(access)
		}
		first := get("$(addon):$(namespace)", "$(addon):agents", "$(addon):of-$(cluster)")
		content, _, err := s.keeper.Content(t.Context(), s.holder, access)
		s.must(err)
		block, _ := pem.Decode(content[KeyCertificate])
		signed, err := x509.ParseCertificate(block.Bytes)
		s.must(err)
		slices.Sort(signed.Subject.Organization)
		want := []string{"policies:agents", "policies:of-named"}
		if signed.Subject.CommonName != "policies:cluster-named" || !slices.Equal(signed.Subject.Organization, want) {
			t.Errorf("the certificate is for %s", signed.Subject)
		}
		if first.Subject != signed.Subject.CommonName || !slices.Equal(first.Groups, want) || first.Signer != otherSigner {
			t.Errorf("the status is %+v", first)
		}
		second := get("$(addon):other")
		if second.Subject != "policies:other" || second.Digest == first.Digest {
			t.Errorf("after another subject: %+v", second)
		}
		s.settled()
		access.Subject.User = "victim:cluster-named"
		if problem := s.refused(access, v1.ReasonRightsRefused).Problem; !strings.Contains(problem.Message, "victim") {
			t.Errorf("the refusal is %q", problem.Message)
		}
		access.Subject.User = "$(addon):other"
		if again := s.good(access); again.Digest != second.Digest {
			t.Error("a refused subject ended the certificate")
		}
		s.holder.Core = true
		if core := get("victim"); core.Subject != "victim" {
			t.Errorf("an add-on of a Core catalogue: %+v", core)
		}
	})
}

// The one who approves is told how.
func TestARequestWaitsForApproval(t *testing.T) {
	for _, test := range []struct {
		why      string
		approval v1.AccessApproval
		approves []string
	}{
		{"manual", v1.ApprovalManual, []string{v1.SignerAPIServer}},
		{"unlisted", v1.ApprovalAutomatic, []string{otherSigner}},
	} {
		t.Run(test.why, func(t *testing.T) {
			onEach(t, func(t *testing.T, release string) {
				s := newSeed(t, release, "approval-"+test.why)
				s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
				s.keeper = s.another(Options{Approves: test.approves})
				access := certificateAccess("pair")
				access.Approval = test.approval
				waiting := s.refused(access, v1.ReasonApprovalRequired)
				if !strings.Contains(waiting.Problem.Message, "kubectl certificate approve "+waiting.Request) || waiting.Problem.IsLasting || waiting.Usable {
					t.Errorf("%+v", waiting.Problem)
				}
				if seconds := s.request(waiting.Request).Spec.ExpirationSeconds; (seconds == nil) != (test.approval == v1.ApprovalManual) {
					t.Error("its lifetime is not the signer's")
				}
				s.settled()
				s.made()
				for range 3 { // AG13: during restarts it is looked at, and asked for no more
					s.memory = &Memory{}
					if again := s.refused(access, v1.ReasonApprovalRequired); again.Request != waiting.Request {
						t.Errorf("it waits for %q, not %q", again.Request, waiting.Request)
					}
				}
				if calls := writes(s.made()); len(calls) > 0 {
					t.Errorf("its calls are %q", calls)
				}
				if again := s.refused(access, v1.ReasonApprovalRequired); len(s.made()) > 0 || again.Next != waiting.Next {
					t.Errorf("it is looked at before its time")
				}
				s.decide(waiting.Request, certificatesv1.CertificateApproved, "")
				s.memory = &Memory{} // AG13: approved during a restart
				s.becomes(access)
				s.mounted(access).works()
			})
		})
	}
}

// AG13: What was denied is asked for again when somebody says so, and not before, whatever becomes of the request.
func TestWhatWasDeniedIsRequestedAgainOnDemand(t *testing.T) {
	for _, kind := range []certificatesv1.RequestConditionType{certificatesv1.CertificateDenied, certificatesv1.CertificateFailed} {
		t.Run(string(kind), func(t *testing.T) {
			onEach(t, func(t *testing.T, release string) {
				s := newSeed(t, release, "no-"+strings.ToLower(string(kind)))
				s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
				access := certificateAccess("pair")
				waiting := s.refused(access, v1.ReasonApprovalRequired)
				if kind == certificatesv1.CertificateDenied {
					s.decide(waiting.Request, kind, "not\nby <b>me</b>")
				} else {
					found := s.request(waiting.Request)
					found.Status.Conditions = append(found.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
						Type: kind, Status: "True", Reason: "x", Message: "not\nby <b>me</b>",
					})
					s.must(s.admin.Status().Update(t.Context(), found))
				}
				s.next(waiting)
				denied := s.refused(access, v1.ReasonRequestDenied)
				if !denied.Problem.IsLasting || denied.Usable || strings.Contains(denied.Problem.Message, "\n") ||
					!strings.Contains(denied.Problem.Message, v1.AnnotationReconcileAt) {
					t.Errorf("%+v", denied.Problem)
				}
				s.must(s.admin.Delete(t.Context(), s.request(waiting.Request)))
				s.settled()
				s.made()
				for range 2 {
					s.refused(access, v1.ReasonRequestDenied)
				}
				s.memory, s.now = &Memory{}, s.now.Add(100*time.Hour)
				s.refused(access, v1.ReasonRequestDenied)
				if calls := s.made(); len(calls) > 2 || len(writes(calls)) > 0 {
					t.Errorf("its calls are %q", calls)
				}
				s.holder.ReconcileAt = "now"
				again := s.refused(access, v1.ReasonApprovalRequired)
				if again.Request == waiting.Request {
					t.Error("it is the same request")
				}
				s.now = time.Now()
				s.decide(again.Request, certificatesv1.CertificateApproved, "")
				s.becomes(access)
				s.mounted(access).works()
			})
		})
	}
}

// AG13: A request that vanished is made again, with the key that was approved before.
func TestARequestThatVanishedIsRecreated(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "vanished")
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
		access := certificateAccess("pair")
		waiting := s.refused(access, v1.ReasonApprovalRequired)
		s.must(s.admin.Delete(t.Context(), s.request(waiting.Request)))
		s.next(waiting)
		s.made()
		again := s.refused(access, v1.ReasonApprovalRequired)
		if calls := writes(s.made()); again.Request != waiting.Request || !slices.Equal(calls, []string{"create CertificateSigningRequest"}) {
			t.Errorf("it waits for %q, not %q, after %q", again.Request, waiting.Request, calls)
		}
		s.decide(again.Request, certificatesv1.CertificateApproved, "")
		s.becomes(access)
	})
}

// AG12: What is signed is looked at, and what is not what was asked for is never handed out.
func TestACertificateThatLiesIsNotHandedOut(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "lies")
		s.keeper = s.another(Options{Approves: []string{otherSigner}})
		liar := signer.New(t, otherSigner)
		for _, lie := range signer.Lies() {
			liar.Lie(lie)
			access := v1.Access{Name: strings.ToLower(string(lie)), Type: v1.AccessByCertificate, SignerName: otherSigner}
			waiting := s.refused(access, v1.ReasonProgressing)
			signed := s.signed(liar, waiting.Request)
			s.give(waiting.Request, signed)
			s.next(waiting)
			refused := s.refused(access, v1.ReasonCertificateRefused)
			byClock := lie == signer.Expired || lie == signer.NotYetValid // its key stays: the clock may be wrong
			if refused.Usable || refused.Problem.IsLasting == byClock || refused.Digest != "" {
				t.Errorf("%s: %+v", lie, refused)
			}
			if content, _, err := s.keeper.Content(t.Context(), s.holder, access); content != nil || err != nil {
				t.Errorf("%s: %d keys are handed out, %v", lie, len(content), err)
			}
			if data := s.stored(access.Name).Data; len(data) != 1 && !byClock {
				t.Errorf("%s: stored are %d parts", lie, len(data))
			}
		}
		liar.Lie()
		s.holder.ReconcileAt = "now"
		access := v1.Access{Name: "huge", Type: v1.AccessByCertificate, SignerName: otherSigner}
		waiting := s.refused(access, v1.ReasonProgressing)
		s.sign(liar, waiting.Request)
		s.next(waiting)
		s.good(access)
	})
}

// RS39: A manager whose clock is a day behind does not use a new certificate. Once the clock is right it uses the certificate of the
// same request, without another approval. Red when it is refused for good.
func TestACertificateIsTakenOnceTheClockIsRight(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "behind-pair")
		s.keeper = s.another(Options{Approves: []string{otherSigner}})
		by := signer.New(t, otherSigner)
		access := v1.Access{Name: "x", Type: v1.AccessByCertificate, SignerName: otherSigner}
		right := s.now
		s.now = right.Add(-24 * time.Hour)
		waiting := s.refused(access, v1.ReasonProgressing)
		signed, err := by.Sign(s.request(waiting.Request).Spec.Request, time.Hour, right)
		s.must(err)
		s.give(waiting.Request, signed)
		s.next(waiting)
		behind := s.refused(access, v1.ReasonCertificateRefused)
		if behind.Request != waiting.Request || !strings.Contains(behind.Problem.Message, "compare the clocks") {
			t.Errorf("%+v, problem %+v", behind, behind.Problem)
		}
		s.now = right
		s.good(access)
	})
}

// AG12: A lie in the place of a renewal leaves the pair that counts.
func TestARenewalThatIsRefusedLeavesTheOldOneUntilItsEnd(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "lie-later")
		s.keeper = s.another(Options{Approves: []string{otherSigner}})
		by := signer.New(t, otherSigner)
		access := v1.Access{Name: "x", Type: v1.AccessByCertificate, SignerName: otherSigner}
		waiting := s.refused(access, v1.ReasonProgressing)
		s.sign(by, waiting.Request)
		s.next(waiting)
		good := s.good(access)
		by.Lie(signer.OtherUser)
		s.now = good.Next
		pending := s.refused(access, v1.ReasonRenewalPending)
		s.sign(by, pending.Request)
		s.next(pending)
		pending = s.refused(access, v1.ReasonRenewalPending)
		content, digest, err := s.keeper.Content(t.Context(), s.holder, access)
		if !pending.Usable || pending.Next != good.Expires || err != nil || digest != good.Digest || len(content) != 2 {
			t.Errorf("%+v, digest %q, %v", pending, digest, err)
		}
		s.now = good.Expires
		if expired := s.refused(access, v1.ReasonExpired); expired.Usable || !expired.Problem.IsLasting {
			t.Errorf("%+v", expired)
		}
	})
}

// AG12: Somebody's request of our name is told, and not used; another key is.
func TestARequestOfOurNameIsNotUsed(t *testing.T) {
	for _, test := range []struct {
		why    string
		change func(spec *certificatesv1.CertificateSigningRequestSpec)
	}{
		{"key", func(spec *certificatesv1.CertificateSigningRequestSpec) {
			key, err := certificate.NewKey()
			if err == nil {
				spec.Request, _, err = certificate.Request(key, "admin", []string{"x"})
			}
			if err != nil {
				panic(err)
			}
		}},
		{"signer", func(spec *certificatesv1.CertificateSigningRequestSpec) { spec.SignerName = otherSigner }},
		{"usage", func(spec *certificatesv1.CertificateSigningRequestSpec) {
			spec.Usages = append(spec.Usages, certificatesv1.UsageDigitalSignature)
		}},
	} {
		t.Run(test.why, func(t *testing.T) {
			onEach(t, func(t *testing.T, release string) {
				s := newSeed(t, release, "forged-"+test.why)
				s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
				s.keeper = s.another(Options{Approves: []string{v1.SignerAPIServer, otherSigner}})
				access := certificateAccess("pair")
				var forged *certificatesv1.CertificateSigningRequest
				s.fails = func(call string, isDone bool) error {
					if call != "create CertificateSigningRequest" || isDone {
						return nil
					}
					return apierrors.NewTimeoutError("later", 1)
				}
				if _, err := s.keeper.Keep(t.Context(), s.holder, []v1.Access{access}, s.memory, s.now); err == nil {
					t.Fatal("nothing failed")
				}
				s.fails = nil
				name := s.memory.of("pair").request
				v := &visit{credential: s.holder.credential(access), keeper: s.keeper, memory: s.memory.of("pair")}
				wanted, err := v.wanted(read(s.stored("pair")))
				s.must(err)
				forged = wanted.DeepCopy()
				test.change(&forged.Spec)
				s.must(s.admin.Create(t.Context(), forged))
				s.made()
				taken := s.refused(access, v1.ReasonNameTaken)
				if taken.Usable || !strings.Contains(taken.Problem.Message, name) || taken.Problem.IsLasting {
					t.Errorf("%+v", taken.Problem)
				}
				if calls := writes(s.made()); !slices.Equal(calls, []string{"update Secret"}) {
					t.Errorf("its calls are %q", calls)
				}
				if left := s.request(name); len(left.Status.Conditions) > 0 {
					t.Error("it was approved")
				}
				s.becomes(access)
				s.mounted(access).works()
				s.must(s.admin.Delete(t.Context(), forged))
			})
		})
	}
}

// AG11: No approval is asked for twice, at whichever write a process ends.
func TestAProcessMayEndAtEachWriteOfACertificate(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "ends-pair")
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
		by := signer.New(t, otherSigner)
		access := func(number int, after bool) v1.Access {
			return v1.Access{Name: fmt.Sprintf("x-%d-%t", number, after), Type: v1.AccessByCertificate, SignerName: otherSigner}
		}
		for number := 1; number <= 3; number++ {
			for _, after := range []bool{false, true} {
				one, killed := access(number, after), fmt.Errorf("killed at %d, %t", number, after)
				asked := map[string]bool{}
				s.killAt(number, after, killed)
				expect.Eventually(t, expect.Patience, func() error {
					s.now = s.now.Add(time.Minute)
					statuses, err := s.keeper.Keep(t.Context(), s.holder, []v1.Access{one}, s.memory, s.now)
					if err != nil { // the next process
						s.fails, s.memory, s.keeper = nil, &Memory{}, s.another(Options{})
						return err
					}
					if request := statuses[0].Request; request != "" && !asked[request] {
						asked[request] = true
						s.decide(request, certificatesv1.CertificateApproved, "")
						s.sign(by, request)
					}
					if !statuses[0].Usable {
						return fmt.Errorf("%+v", statuses[0].Problem)
					}
					return nil
				})
				s.fails = nil
				if len(asked) != 1 {
					t.Errorf("%v: asked for were %d", killed, len(asked))
				}
			}
		}
	})
}

// The user of a certificate is bound, and nobody else.
func TestABindingIsOfTheUserAlone(t *testing.T) {
	onEach(t, func(t *testing.T, release string) {
		s := newSeed(t, release, "user")
		s.list(v1.AgentsCustom, ruleOf(group, "policies", "get", "list"))
		waiting := s.refused(certificateAccess("pair"), v1.ReasonApprovalRequired)
		binding := &rbacv1.RoleBinding{}
		s.must(s.get("addon-agent-agent-pair", binding))
		want := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: waiting.Subject}}
		if diff := cmp.Diff(want, binding.Subjects); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		s.must(s.admin.Delete(t.Context(), s.request(waiting.Request)))
		s.must(client.IgnoreNotFound(s.admin.Delete(t.Context(), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "x"}})))
	})
}
