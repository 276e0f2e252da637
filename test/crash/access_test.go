package crash_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/access"
	"github.com/trellis-addons/trellis/pkg/clusters/access/rights"
	"github.com/trellis-addons/trellis/pkg/controllers/addoninstallation"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/given"
)

// accessName is the name of the credential that agents' versions ask for.
const accessName = "hub"

// Add-ons whose version 1.0.0 asks for a credential, and version 2.0.0 for none.
const (
	tokenAddon       = "agent"
	certificateAddon = "certified"
)

const (
	// lifetime of credentials, and a later time, at which they are renewed and have not ended.
	lifetime  = 24 * time.Hour
	atRenewal = 22 * time.Hour
	// refusedWithin is how long a former credential may be good: API servers remember a token for ten seconds.
	refusedWithin = 20 * time.Second
)

// agentSettings name the Secret of the credential.
const agentSettings = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {hub: 'HUB'}
`

// newAgents is a platform that lists reading of ConfigMaps for agents, and offers such. Requests for certificates are approved as if by
// hand.
func newAgents(t *testing.T) *platform {
	t.Helper()
	p := newPlatform(t)
	config := fleet.Shared().Cluster(seedName).Config
	p.hub = access.Hub{Server: config.Host, CA: config.CAData}
	list := given.AgentRights("agents-of-"+p.catalogue, rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"},
	})
	expect.Create(t, p.seed, list)
	t.Cleanup(func() { _ = p.seed.Delete(context.WithoutCancel(t.Context()), list) })
	worker := strings.ReplaceAll(probeDeployment, "VALUE", "1.0.0")
	if _, err := p.sources.Commit("agents", map[string]string{
		"1.0.0/settings.yaml": strings.ReplaceAll(agentSettings, "HUB", "{{ .HubKubeConfigSecret }}"),
		"1.0.0/dropped.yaml":  probeDropped, "1.0.0/worker.yaml": worker,
		"2.0.0/settings.yaml": strings.ReplaceAll(agentSettings, "HUB", "none"), "2.0.0/worker.yaml": worker,
	}); err != nil {
		t.Fatal(err)
	}
	token := kubermaticv1.Access{
		Name: accessName, Lifetime: &metav1.Duration{Duration: lifetime},
		Rules: []kubermaticv1.AccessRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}},
	}
	certificate := token
	certificate.Type, certificate.Approval = kubermaticv1.AccessByCertificate, kubermaticv1.ApprovalManual
	for name, asked := range map[string]kubermaticv1.Access{tokenAddon: token, certificateAddon: certificate} {
		with := p.templates("1.0.0", "agents", "1.0.0")
		with.Template.Access = []kubermaticv1.Access{asked}
		p.publish(t, name, with, p.templates("2.0.0", "agents", "2.0.0"))
	}
	p.approve(t)
	return p
}

// later is a keeper whose time is later.
type later struct {
	addoninstallation.Access
	by time.Duration
}

func (l later) Keep(
	ctx context.Context, holder access.Holder, asked []kubermaticv1.Access, memory *access.Memory, now time.Time,
) ([]access.Status, error) {
	statuses, err := l.Access.Keep(ctx, holder, asked, memory, now.Add(l.by))
	for at := range statuses {
		if next := statuses[at].Next; !next.IsZero() {
			statuses[at].Next = next.Add(-l.by)
		}
	}
	return statuses, err
}

// requests for certificates that were ever made, by the ID of who they are for.
type requests struct {
	mutex sync.Mutex
	made  map[string]map[types.UID]bool
}

func (r *requests) note(request *certificatesv1.CertificateSigningRequest) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	id := request.Labels[kubermaticv1.LabelAccess]
	if r.made == nil {
		r.made = map[string]map[types.UID]bool{}
	}
	if r.made[id] == nil {
		r.made[id] = map[types.UID]bool{}
	}
	r.made[id][request.UID] = true
}

func (r *requests) countOf(id string) int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.made[id])
}

// approve has each request for a certificate approved as it comes, until the end of the test, and noted, also one that is deleted at once.
func (p *platform) approve(t *testing.T) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(fleet.Shared().Cluster(seedName).Config)
	expect.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	t.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if err := p.approveWatched(ctx, clients); err != nil && ctx.Err() == nil {
				t.Errorf("approving requests: %v", err)
				return
			}
		}
	}()
}

// approveWatched approves until the API server ends the watch.
func (p *platform) approveWatched(ctx context.Context, clients kubernetes.Interface) error {
	all := clients.CertificatesV1().CertificateSigningRequests()
	watched, err := all.Watch(ctx, metav1.ListOptions{LabelSelector: kubermaticv1.LabelAccess})
	if err != nil {
		return err
	}
	defer watched.Stop()
	for event := range watched.ResultChan() {
		request, isRequest := event.Object.(*certificatesv1.CertificateSigningRequest)
		if !isRequest {
			continue
		}
		p.requests.note(request)
		if len(request.Status.Conditions) > 0 {
			continue
		}
		request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "ByHand",
		}}
		_, err := all.UpdateApproval(ctx, request.Name, request, metav1.UpdateOptions{})
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

// storedCredential is the credential that the seed keeps.
type storedCredential struct {
	uid  types.UID
	data map[string][]byte
	// state is what the Secret says of it.
	state struct {
		Type, Serial, Sum string
		Account           types.UID
		Issued, Expires   time.Time
		Refusal           any
	}
}

// stored gives nil where nothing is.
func (s *subject) stored(t testing.TB) *storedCredential {
	t.Helper()
	secret := &corev1.Secret{}
	name := client.ObjectKey{Namespace: s.namespace(), Name: rights.StoredName(s.owner().ID(), accessName)}
	err := s.seed.Get(t.Context(), name, secret)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	found := &storedCredential{uid: secret.UID, data: secret.Data}
	if state := secret.Data["state.json"]; len(state) > 0 { // a token's Secret is made empty
		expect.NoError(t, json.Unmarshal(state, &found.state))
	}
	return found
}

// nonce of the user that certificates are for.
func (c *storedCredential) nonce() string {
	sum := sha256.Sum256([]byte(c.uid))
	return hex.EncodeToString(sum[:8])
}

// parts of a credential.
var parts = []string{access.KeyToken, access.KeyCertificate, access.KeyPrivate}

// isIn says whether an agent's Secret has the very credential that is stored, and the hub.
func (c *storedCredential) isIn(secret *corev1.Secret) bool {
	return c.state.Serial != "" && len(secret.Data[access.KeyKubeconfig]) > 0 &&
		!slices.ContainsFunc(parts, func(key string) bool { return !bytes.Equal(c.data[key], secret.Data[key]) })
}

// agentsSecret is the one in the user cluster; nil where there is none.
func (s *subject) agentsSecret(t testing.TB) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	err := s.user.Get(t.Context(), client.ObjectKey{Namespace: s.name, Name: rights.DefaultSecretName(s.name, accessName)}, secret)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return secret
}

// tryAs calls the seed as an agent does, by what is in its Secret: the kubeconfig names the rest as files beside it.
func (s *subject) tryAs(t testing.TB, files map[string][]byte) error {
	t.Helper()
	kubeconfig, err := clientcmd.Load(files[access.KeyKubeconfig])
	expect.NoError(t, err)
	for _, cluster := range kubeconfig.Clusters {
		cluster.CertificateAuthorityData, cluster.CertificateAuthority = files[cluster.CertificateAuthority], ""
	}
	for _, user := range kubeconfig.AuthInfos {
		user.Token, user.TokenFile = string(files[user.TokenFile]), ""
		user.ClientCertificateData, user.ClientCertificate = files[user.ClientCertificate], ""
		user.ClientKeyData, user.ClientKey = files[user.ClientKey], ""
	}
	config, err := clientcmd.NewDefaultClientConfig(*kubeconfig, nil).ClientConfig()
	expect.NoError(t, err)
	clients, err := kubernetes.NewForConfig(config)
	expect.NoError(t, err)
	_, err = clients.CoreV1().ConfigMaps(s.namespace()).List(t.Context(), metav1.ListOptions{})
	return err
}

// previousAgent is what an agent had when a story began.
type previousAgent struct {
	files  map[string][]byte
	serial string
	secret types.UID
	// made are the UIDs of what the seed had for it.
	made map[string]types.UID
	// refusedFrom is when the story was told but for the refusal of what it had.
	refusedFrom time.Time
}

// noted notes what the agent has before something is done.
func noted(change func(testing.TB, *subject)) func(testing.TB, *subject) {
	return func(t testing.TB, one *subject) {
		t.Helper()
		before := one.stored(t)
		one.agent = previousAgent{
			files: one.agentsSecret(t).Data, serial: before.state.Serial, secret: before.uid, made: map[string]types.UID{},
		}
		for _, object := range one.madeForAgents(t) {
			one.agent.made[object.GetKind()+" "+object.GetName()] = object.GetUID()
		}
		change(t, one)
	}
}

// madeForAgents is what the seed has for the subject's agents.
func (s *subject) madeForAgents(t testing.TB) (all []unstructured.Unstructured) {
	t.Helper()
	for _, kind := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"), corev1.SchemeGroupVersion.WithKind("Secret"),
		rbacv1.SchemeGroupVersion.WithKind("Role"), rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		expect.List(t, s.seed, list, client.InNamespace(s.namespace()), client.HasLabels{kubermaticv1.LabelAccess})
		all = append(all, list.Items...)
	}
	return all
}

// newestRecord is nil where there is none.
func (s *subject) newestRecord(t testing.TB) *revision.Record {
	t.Helper()
	record, err := revision.NewRecords(s.seed, s.seed, revision.NewSeal([]byte(inputsKey))).Load(t.Context(), s.namespace(), s.owner())
	expect.NoError(t, err)
	return record
}

// hasAccess says what a subject lacks to have one credential.
func hasAccess(t testing.TB, one *subject) error {
	t.Helper()
	_, err := one.credential(t)
	return err
}

// credential is the one that a subject has: stored, in the user cluster, on record there, shown, and good for what its rules allow. The
// error says what it lacks.
func (s *subject) credential(t testing.TB) (*storedCredential, error) {
	t.Helper()
	stored, secret := s.stored(t), s.agentsSecret(t)
	if stored == nil || secret == nil || !stored.isIn(secret) {
		return nil, errors.New("what is stored is not what the agent has")
	}
	if record := s.newestRecord(t); record == nil || len(record.ManagedSecrets) != 1 || record.ManagedSecrets[0].UID != secret.UID {
		return nil, errors.New("the agent's Secret is not on record")
	}
	installation := s.installation()
	if err := s.seed.Get(t.Context(), client.ObjectKeyFromObject(installation), installation); err != nil {
		return nil, err
	}
	if shown := stored.shown(installation.Status.Access); len(shown) != 1 || !strings.HasSuffix(shown[0], "the end of the stored one") {
		return nil, fmt.Errorf("the status shows %q", shown)
	}
	if err := s.tryAs(t, secret.Data); err != nil {
		return nil, fmt.Errorf("the agent is answered with: %w", err)
	}
	return stored, nil
}

// renewed says what a subject lacks to have another credential, while the former one is good until its end.
func renewed(t testing.TB, one *subject) error {
	t.Helper()
	stored, err := one.credential(t)
	if err != nil {
		return err
	}
	if stored.state.Serial == one.agent.serial || stored.uid != one.agent.secret {
		return errors.New("the credential is the former one, or the Secret another one")
	}
	if err := one.tryAs(t, one.agent.files); err != nil {
		return fmt.Errorf("the former credential has not ended and is answered with: %w", err)
	}
	return nil
}

// rotated says what a subject lacks to have another credential, and the former one refused.
func rotated(t testing.TB, one *subject) error {
	t.Helper()
	stored, err := one.credential(t)
	if err != nil {
		return err
	}
	if stored.state.Serial == one.agent.serial || stored.uid == one.agent.secret {
		return errors.New("the credential is the former one")
	}
	return one.notRefused(t)
}

// revoked says what a subject lacks to have nothing of the hub anywhere, and the former credential refused.
func revoked(t testing.TB, one *subject) error {
	t.Helper()
	if left := len(one.madeForAgents(t)); left > 0 {
		return fmt.Errorf("the seed has %d objects for agents", left)
	}
	if one.agentsSecret(t) != nil {
		return errors.New("the agent's Secret is still there")
	}
	if record := one.newestRecord(t); record.HasAccess() {
		return fmt.Errorf("there are on record %v, %v, %v", record.Access, record.PreviousAccess, record.ManagedSecrets)
	}
	return one.notRefused(t)
}

// notRefused says that what the agent had is still good. It ends the test where that lasts.
func (s *subject) notRefused(t testing.TB) error {
	t.Helper()
	err := s.tryAs(t, s.agent.files)
	if apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		return nil
	}
	if s.agent.refusedFrom.IsZero() {
		s.agent.refusedFrom = time.Now()
	}
	if time.Since(s.agent.refusedFrom) > refusedWithin {
		t.Fatalf("%s after everything else, the former credential is answered with: %v", refusedWithin, err)
	}
	return errors.New("the former credential is good")
}

// withoutCredential is an object of the user cluster with words in place of a credential.
func (s *subject) withoutCredential(t testing.TB, object unstructured.Unstructured) unstructured.Unstructured {
	t.Helper()
	if object.GetKind() != "Secret" || object.GetNamespace() != s.name || object.GetName() != rights.DefaultSecretName(s.name, accessName) {
		return object
	}
	reported := *object.DeepCopy()
	if annotations := reported.GetAnnotations(); annotations[kubermaticv1.AnnotationDigest] != "" {
		annotations[kubermaticv1.AnnotationDigest] = "some"
		reported.SetAnnotations(annotations)
	}
	data, _, _ := unstructured.NestedStringMap(reported.Object, "data")
	stored := s.stored(t)
	for key, encoded := range data {
		part, err := base64.StdEncoding.DecodeString(encoded)
		expect.NoError(t, err)
		switch {
		case !slices.Contains(parts, key):
			data[key] = string(part)
		case stored != nil && bytes.Equal(stored.data[key], part):
			data[key] = "as it is stored"
		default:
			data[key] = "another than is stored"
		}
	}
	expect.NoError(t, unstructured.SetNestedStringMap(reported.Object, data, "data"))
	return reported
}

// addAgents adds what the seed has for agents, and whether it stood there when the story began, and how often somebody was asked to
// approve.
func (s *subject) addAgents(t testing.TB, state map[string]string) {
	t.Helper()
	stored, accounts := s.stored(t), map[types.UID]bool{}
	for _, object := range s.madeForAgents(t) { // accounts come first
		accounts[object.GetUID()] = object.GetKind() == "ServiceAccount"
		if object.GetKind() == "Secret" {
			reported := map[string]any{}
			data, _, _ := unstructured.NestedMap(object.Object, "data")
			for key := range data {
				reported[key] = "some"
			}
			if stored != nil && stored.state.Type != "" {
				one := stored.state
				reported["state.json"] = map[string]any{
					"type": one.Type, "isIssued": one.Serial != "", "isOfAccount": accounts[one.Account], "refusal": one.Refusal,
				}
			}
			object.Object["data"] = reported
		}
		text := essence(t, object)
		if stored != nil {
			text = strings.ReplaceAll(text, stored.nonce(), "NONCE")
		}
		name := object.GetKind() + " " + object.GetName()
		if s.agent.made[name] == object.GetUID() {
			text += "\nas it stood before"
		}
		state[s.anonymous("seed "+name)] = s.anonymous(text)
	}
	if count := s.requests.countOf(s.owner().ID()); count > 0 {
		state[askedForApproval] = fmt.Sprint(count)
	}
}

// askedForApproval is the part of the state that says how often; it stays.
const askedForApproval = "requests for certificates"

// shown are the credentials in a status, with words for what differs from issue to issue. Nil: nothing is stored.
func (c *storedCredential) shown(all []kubermaticv1.AccessState) (shown []string) {
	for _, one := range all {
		end, subject := "another end than the stored one", one.Subject
		if c != nil {
			subject = strings.ReplaceAll(subject, c.nonce(), "NONCE")
			if one.Expires != nil && one.Expires.Equal(&metav1.Time{Time: c.state.Expires}) {
				end = "the end of the stored one"
			}
		}
		shown = append(shown, fmt.Sprintf("%s in %s for %q, request %q, %s", one.Name, one.Secret, subject, one.Request, end))
	}
	return shown
}
