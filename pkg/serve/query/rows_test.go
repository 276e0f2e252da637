package query_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/catalogue"
	"github.com/trellis-addons/trellis/pkg/serve/view"
	"github.com/trellis-addons/trellis/test/expect"
	"github.com/trellis-addons/trellis/test/given"
	kit "github.com/trellis-addons/trellis/test/world"
)

const (
	installations = "addoninstallations"
	listed        = "/api/v1/installations"
)

// pageOf is an answer of the endpoint, as its callers read it.
type pageOf struct {
	Installations []view.Row     `json:"installations"`
	Total         int            `json:"total"`
	Counts        map[string]int `json:"counts"`
	After         string         `json:"after"`
	Truncated     bool           `json:"truncated"`
}

func (p *pageOf) names() (names []string) {
	for _, row := range p.Installations {
		names = append(names, row.Namespace+"/"+row.Name)
	}
	return names
}

// installed makes an installation with a condition Ready.
func (w *world) installed(namespace, name, addon string, ready metav1.ConditionStatus, reason string) *v1.AddonInstallation {
	w.t.Helper()
	object := given.Installation(namespace, name, addon, "apps")
	expect.Create(w.t, w.seed, object)
	object.Status.Conditions = []metav1.Condition{{
		Type: v1.ConditionReady, Status: ready, Reason: reason, Message: "It is " + reason + ".", LastTransitionTime: metav1.Now(),
	}}
	expect.UpdateStatus(w.t, w.seed, object)
	return object
}

// bind gives a subject rights in a namespace; in all, if it is empty.
func (w *world) bind(namespace, name string, subject rbacv1.Subject, rule rbacv1.PolicyRule) {
	w.t.Helper()
	rule.APIGroups = []string{v1.GroupVersion.Group}
	name = w.catalogue + "-" + name
	if subject.Kind != rbacv1.ServiceAccountKind {
		subject.APIGroup = rbacv1.GroupName
	}
	about, subjects := metav1.ObjectMeta{Namespace: namespace, Name: name}, []rbacv1.Subject{subject}
	reference := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}
	if namespace != "" {
		expect.Create(w.t, w.seed, &rbacv1.Role{ObjectMeta: about, Rules: []rbacv1.PolicyRule{rule}},
			&rbacv1.RoleBinding{ObjectMeta: about, RoleRef: reference, Subjects: subjects})
		return
	}
	reference.Kind = "ClusterRole"
	expect.Create(w.t, w.seed, &rbacv1.ClusterRole{ObjectMeta: about, Rules: []rbacv1.PolicyRule{rule}},
		&rbacv1.ClusterRoleBinding{ObjectMeta: about, RoleRef: reference, Subjects: subjects})
}

func (w *world) subject(account string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: w.catalogue, Name: account}
}

func reading(verb string, resources ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{verb}, Resources: resources}
}

// eventually asks until the answer is the wanted one, each time with rights that are reviewed again.
func (w *world) eventually(path, token string, status int, holds func(response) error) {
	w.t.Helper()
	expect.Eventually(w.t, expect.Patience, func() error {
		w.clock.SetTime(w.clock.Now().Add(11 * time.Second))
		got := w.get(path, token)
		if got.status != status {
			return fmt.Errorf("got %d, want %d: %s", got.status, status, shortened(string(got.body)))
		}
		if holds == nil {
			return nil
		}
		return holds(got)
	})
}

// lists waits until a list has these installations.
func (w *world) lists(path, token string, want ...string) {
	w.t.Helper()
	w.eventually(path, token, http.StatusOK, func(got response) error {
		page := decode[pageOf](w.t, got)
		if diff := gocmp.Diff(want, page.names()); diff != "" {
			return fmt.Errorf("%s (-want +got):\n%s", path, diff)
		}
		return nil
	})
}

// Red when a row differs from that of a list, after any changes: when a removed one stays, or one that became another keeps its old row.
func TestRowsAreThoseOfAFreshList(t *testing.T) {
	w := newWorld(t)
	namespaces := []string{w.cluster("one", "v1.36.3"), w.cluster("two", "v1.36.3")}
	w.start()
	random := rand.New(rand.NewPCG(1, 2))
	live := map[client.ObjectKey]*v1.AddonInstallation{}
	for range 150 {
		key := client.ObjectKey{Namespace: namespaces[random.IntN(2)], Name: fmt.Sprintf("app-%d", random.IntN(12))}
		object := live[key]
		switch {
		case object == nil:
			live[key] = given.Installation(key.Namespace, key.Name, "web", "apps")
			expect.Create(t, w.seed, live[key])
		case random.IntN(4) == 0:
			expect.Delete(t, w.seed, object)
			delete(live, key)
		default:
			expect.ChangeStatus(t, w.seed, object, func(one *v1.AddonInstallation) {
				one.Status.Version = fmt.Sprintf("1.%d.0", random.IntN(3))
				one.Status.Conditions = []metav1.Condition{{
					Type: v1.ConditionReady, Status: []metav1.ConditionStatus{"True", "False", "Unknown"}[random.IntN(3)],
					Reason: "Any", LastTransitionTime: metav1.Now(),
				}}
			})
		}
	}
	expect.Eventually(t, expect.Patience, func() error {
		var all v1.AddonInstallationList
		expect.List(t, w.seed, &all)
		want := view.Rows(all.Items, time.Now())
		slices.SortFunc(want, func(a, b view.Row) int {
			return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
		})
		for i := range want {
			want[i].Age = 0
		}
		if diff := gocmp.Diff(want, w.rows.All()); diff != "" {
			return fmt.Errorf("the rows (-list +index):\n%s", diff)
		}
		return nil
	})
}

// Red when a caller sees installations of a namespace where it may not list them, or misses those of a binding that names it or a group.
func TestCallersSeeTheInstallationsThatTheyMayList(t *testing.T) {
	w := newWorld(t)
	one, two, three := w.cluster("seen-a", "v1.36.3"), w.cluster("seen-c", "v1.36.3"), w.cluster("seen-b", "v1.36.3")
	for _, namespace := range []string{one, two, three} {
		w.installed(namespace, "web", "web", metav1.ConditionTrue, v1.ReasonReady)
	}
	team := "team-" + w.catalogue
	expect.Create(t, w.seed, kit.Namespace(team))
	w.start()
	admin, tenant, viewer, stranger := w.account("admin"), w.account("tenant"), w.account("viewer"), w.account("stranger")
	account := serviceAccount(team, "member")
	expect.Ensure(t, w.seed, account)
	member := expect.Token(t, w.seed, account)
	list := reading("list", installations)
	w.bind("", "admin", w.subject("admin"), list)
	w.bind(one, "tenant", w.subject("tenant"), list)
	w.bind(two, "tenant", w.subject("tenant"), reading("list", catalogues)) // names it, and grants something else
	w.bind(two, "viewer", w.subject("viewer"), list)
	w.bind(three, "viewer", w.subject("viewer"), list)
	w.bind(three, "team", rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + team}, list)

	w.lists(listed+"?search=seen", admin, one+"/web", three+"/web", two+"/web")
	w.lists(listed, tenant, one+"/web")
	w.lists(listed, viewer, three+"/web", two+"/web")
	w.lists(listed, member, three+"/web")
	w.lists(listed+"?namespace="+two, viewer, two+"/web")
	for _, path := range []string{listed, listed + "?namespace=" + one, "/api/v1/clusters", "/api/v1/images", "/api/v1/watch", "/api/v1/sets"} {
		w.get(path, stranger).expectStatus(t, "a stranger at "+path, http.StatusNotFound)
	}
	forbidden, absent := w.get(listed+"?namespace="+two, tenant), w.get(listed+"?namespace=cluster-none", tenant)
	forbidden.header.Del("Date")
	absent.header.Del("Date")
	if diff := gocmp.Diff(forbidden, absent, gocmp.AllowUnexported(response{})); diff != "" || forbidden.status != http.StatusNotFound {
		t.Errorf("forbidden and absent can be told apart, or are not 404:\n%s", diff)
	}
	w.get(listed, tenant).expectStatus(t, "once more", http.StatusOK)
	before := w.counted.calls()
	for range 20 {
		w.get(listed, tenant).expectStatus(t, "again", http.StatusOK)
	}
	if calls := w.counted.calls() - before; calls != 0 {
		t.Errorf("20 requests within ten seconds made %d calls", calls)
	}
	expect.Delete(t, w.seed, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: one, Name: w.catalogue + "-tenant"}})
	w.eventually(listed, tenant, http.StatusNotFound, nil)
}

// contentOf is the digest of what a version of a merged catalogue installs.
func (w *world) contentOf(addon, version string) string {
	w.t.Helper()
	merged := &v1.AddonCatalogue{}
	expect.Get(w.t, w.seed, client.ObjectKey{Namespace: w.catalogue, Name: addon}, merged)
	entry, err := catalogue.NewEntry(merged)
	expect.NoError(w.t, err)
	_, origin := entry.Version(version)
	return origin.Content
}

// Red when pages lose or repeat rows, in any order, or counts are not those of all selected rows.
func TestPagesOfInstallations(t *testing.T) {
	w := newWorld(t)
	mine := w.cluster("mine", "v1.36.3")
	for i := range 7 {
		state, reason := metav1.ConditionTrue, v1.ReasonReady
		if i%3 == 0 {
			state, reason = metav1.ConditionFalse, "Failed"
		}
		w.installed(mine, fmt.Sprintf("app-%d", i), []string{"web", "dns"}[i%2], state, reason)
	}
	w.start()
	tenant := w.account("tenant")
	w.grant("tenant", mine, installations)
	path := listed + "?namespace=" + mine
	w.lists(path+"&addon=dns", tenant, mine+"/app-1", mine+"/app-3", mine+"/app-5")
	w.lists(path+"&search=APP-4", tenant, mine+"/app-4")
	w.lists(path+"&cluster=other", tenant)
	failing := decode[pageOf](t, w.get(path+"&state=Failing", tenant))
	want := map[string]int{"Ready": 4, "UnderWay": 0, "Failing": 3, "Unknown": 0}
	if diff := gocmp.Diff(want, failing.Counts); failing.Total != 3 || diff != "" {
		t.Errorf("%d failing (-want +got):\n%s", failing.Total, diff)
	}
	if row := failing.Installations[0]; row.Reason != "Failed" || row.Message != "It is Failed." || row.Cluster != fmt.Sprintf("mine-%d", w.number) {
		t.Errorf("the first failing row is %+v", row)
	}
	for _, sort := range []string{"name", "-name", "cluster", "addon", "-addon", "state", "created", "-created"} {
		whole := decode[pageOf](t, w.get(path+"&sort="+sort, tenant))
		if len(whole.Installations) != 7 || whole.After != "" {
			t.Errorf("sort=%s: %d rows, after %q", sort, len(whole.Installations), whole.After)
		}
		var paged []string
		for after := ""; ; {
			got := decode[pageOf](t, w.get(path+"&limit=3&sort="+sort+after, tenant))
			paged = append(paged, got.names()...)
			if got.After == "" {
				break
			}
			after = "&after=" + got.After
		}
		if diff := gocmp.Diff(whole.names(), paged); diff != "" {
			t.Errorf("sort=%s: pages of three (-whole +paged):\n%s", sort, diff)
		}
	}
	for _, wrong := range []string{
		"state=Broken", "state=", "sort=age", "sort=", "limit=0", "limit=501", "limit=x", "after=x", "after=a/b/c", "after=a/b&sort=addon",
		"search=" + strings.Repeat("x", 129), "addon=Web", "cluster=No!", "after=" + strings.Repeat("a", 520) + "/b", "namespace=x&namespace=y",
	} {
		w.get(listed+"?"+wrong, tenant).expectStatus(t, shortened(wrong), http.StatusBadRequest)
	}
}

// Red when an answer about clusters, one installation, sets or contents leaves out or adds what its page says, and when images of containers
// are known by a tag although they have a digest.
func TestAnswersAboutASeed(t *testing.T) {
	w := newWorld(t)
	w.merged("web", "", [2]string{"1.0.0", ""})
	mine := w.cluster("mine", "v1.36.3")
	w.cluster("foreign", "v1.37.1")
	object := w.installed(mine, "web", "web", metav1.ConditionFalse, v1.ReasonUnhealthy)
	expect.ChangeStatus(t, w.seed, object, func(one *v1.AddonInstallation) {
		one.Status.Version = "1.0.0"
		one.Status.Artifact = &v1.Artifact{Revision: "c0ffee", Digest: "sha256:files"}
		one.Status.LastApplied = &v1.AppliedState{Addon: "web", Version: "1.0.0", EntryDigest: "sha256:" + strings.Repeat("0", 64), ArtifactDigest: "sha256:files"}
		one.Status.Unhealthy = []v1.UnhealthyObject{{Ref: "Deployment apps/web", Reason: "Crashing", Message: "It crashes."}}
	})
	available := given.Available(client.ObjectKey{Namespace: mine, Name: "available"})
	expect.Create(t, w.seed, available)
	expect.ChangeStatus(t, w.seed, available, func(one *v1.AddonCatalogue) {
		one.Status.Conditions = []metav1.Condition{{
			Type: v1.ConditionAddonsReady, Status: metav1.ConditionTrue, Reason: v1.ReasonCoreAddonsReady, LastTransitionTime: metav1.Now(),
		}}
	})
	set := given.Set(w.catalogue, "base", "web")
	expect.Create(t, w.seed, set)
	expect.ChangeStatus(t, w.seed, set, func(one *v1.AddonSet) {
		one.Status.Groups = []v1.GroupStatus{{Name: "rest", State: v1.GroupHalted}}
		one.Status.Conditions = []metav1.Condition{{
			Type: v1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Halted", Message: "It halts.", LastTransitionTime: metav1.Now(),
		}}
	})
	w.start()
	tenant, admin := w.account("tenant"), w.account("admin")
	w.bind(mine, "tenant", w.subject("tenant"), rbacv1.PolicyRule{Verbs: []string{"get", "list"}, Resources: []string{installations}})
	w.bind("", "admin", w.subject("admin"), rbacv1.PolicyRule{
		Verbs: []string{"get", "list"}, Resources: []string{installations, catalogues, "addonsets"},
	})
	has := func(parts ...string) func(response) error {
		return func(got response) error {
			for _, part := range parts {
				if !strings.Contains(string(got.body), part) {
					return fmt.Errorf("there is no %s in %s", part, got.body)
				}
			}
			return nil
		}
	}
	w.eventually("/api/v1/clusters", tenant, http.StatusOK, has(
		`"total":1`, fmt.Sprintf(`"name":"mine-%d"`, w.number), `"k8sVersion":"1.36.3"`, `"Failing":1`,
		`"addonsReady":{"type":"AddonsReady","status":"True"`,
	))
	w.eventually("/api/v1/clusters?limit=1&namespace="+mine, admin, http.StatusOK, has(`"total":1`))
	w.eventually("/api/v1/clusters?limit=1", admin, http.StatusOK, has(`"after":"`))
	own := "/api/v1/namespaces/" + mine + "/installations/"
	w.eventually(own+"web", tenant, http.StatusOK, has(
		`"unhealthy":[{"ref":"Deployment apps/web","reason":"Crashing"`, `"conditions":[{"type":"Ready","status":"False"`, `"do":"`, `"revision":"c0ffee"`,
	))
	w.get(own+"none", tenant).expectStatus(t, "an installation that is not there", http.StatusNotFound)
	w.get("/api/v1/namespaces/cluster-none/installations/web", tenant).expectStatus(t, "a namespace that is not there", http.StatusNotFound)
	w.get(own+"No!", tenant).expectStatus(t, "a name that can't be", http.StatusBadRequest)
	w.eventually("/api/v1/sets", admin, http.StatusOK, has(`"name":"base"`, `"state":"Failing"`, `"reason":"Halted"`))
	w.eventually("/api/v1/sets/base", admin, http.StatusOK, has(`"groups":[{"name":"rest","state":"Halted"`, `"message":"It halts."`))
	w.get("/api/v1/sets/none", admin).expectStatus(t, "a set that is not there", http.StatusNotFound)
	w.get("/api/v1/sets/base", tenant).expectStatus(t, "a set of the platform", http.StatusNotFound)
	w.get("/api/v1/images", tenant).expectStatus(t, "sources of the platform", http.StatusNotFound)
	unknown := `{"kind":"Unknown","reference":"web 1.0.0","revision":"c0ffee","digest":"sha256:files","count":1,"installations":["` + mine + `/web"]}`
	w.eventually("/api/v1/images?namespace="+mine, admin, http.StatusOK, has(unknown))
	expect.ChangeStatus(t, w.seed, object, func(one *v1.AddonInstallation) { one.Status.LastApplied.EntryDigest = w.contentOf("web", "1.0.0") })
	repository := strings.Replace(unknown, `"Unknown","reference":"web 1.0.0"`, `"Repository","reference":"https://git.example.com/addons.git"`, 1)
	w.eventually("/api/v1/images?namespace="+mine, admin, http.StatusOK, has(repository))

	digest := "sha256:" + strings.Repeat("a", 64)
	expect.ChangeStatus(t, w.seed, object, func(one *v1.AddonInstallation) {
		one.Status.LastApplied.Images = []string{"nginx", "quay.io/x/y:v1", "quay.io/x/y:v2@" + digest, "no image!"}
	})
	users := `"count":1,"installations":["` + mine + `/web"]}`
	w.eventually("/api/v1/images?namespace="+mine, admin, http.StatusOK, has(
		`{"kind":"Container","reference":"docker.io/library/nginx","revision":"latest",`+users,
		`{"kind":"Container","reference":"quay.io/x/y","revision":"v1",`+users,
		`{"kind":"Container","reference":"quay.io/x/y","digest":"`+digest+`",`+users,
		`{"kind":"Container","reference":"no image!",`+users, `"total":5`,
	))
	w.get("/api/v1/images?namespace="+mine, tenant).expectStatus(t, "images of a tenant", http.StatusNotFound)
}

// streamed is a stream that a test reads.
type streamed struct {
	lines  *bufio.Scanner
	status int
}

// stream opens a stream, which ends with the test.
func (w *world) stream(path, token string) streamed {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	w.t.Cleanup(cancel)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+w.endpoint.Address()+path, http.NoBody)
	expect.NoError(w.t, err)
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := w.browser.Do(request)
	expect.NoError(w.t, err)
	w.t.Cleanup(func() { _ = answer.Body.Close() })
	return streamed{bufio.NewScanner(answer.Body), answer.StatusCode}
}

var errEnded = errors.New("the stream ended")

// next is the next event, with its data.
func (s streamed) next() (kind string, data map[string]any, err error) {
	for s.lines.Scan() {
		line := s.lines.Text()
		if value, is := strings.CutPrefix(line, "event: "); is {
			kind = value
		}
		if value, is := strings.CutPrefix(line, "data: "); is {
			err = json.Unmarshal([]byte(value), &data)
			return kind, data, err
		}
	}
	return "", nil, errEnded
}

// expectEvent reads until an event of a kind has these fields.
func (s streamed) expectEvent(t *testing.T, kind string, fields map[string]any) {
	t.Helper()
	for {
		got, data, err := s.next()
		if err != nil {
			t.Fatalf("no event %s with %v: %v", kind, fields, err)
		}
		isIt := got == kind
		for field, want := range fields {
			isIt = isIt && data[field] == want
		}
		if isIt {
			return
		}
		if got == "end" {
			t.Fatalf("the stream ended with %v, want %s with %v", data, kind, fields)
		}
	}
}

// Red when a stream misses a change, has one of another namespace, outlives its rights or its token, or the accounts of a namespace have more than four.
func TestAStreamHasTheChangesAndEndsWithItsRights(t *testing.T) {
	w := newWorld(t)
	mine, foreign := w.cluster("mine", "v1.36.3"), w.cluster("foreign", "v1.36.3")
	w.start()
	w.endpoint.CheckStreamsEach(10 * time.Millisecond)
	tenant, guest := w.account("tenant"), w.account("guest")
	w.grant("tenant", mine, installations)
	w.grant("guest", mine, installations)
	path := "/api/v1/watch?namespace=" + mine
	stream := w.stream(path, tenant)
	stream.expectEvent(t, "begin", nil)
	w.installed(foreign, "web", "web", metav1.ConditionTrue, v1.ReasonReady)
	object := w.installed(mine, "web", "web", metav1.ConditionTrue, v1.ReasonReady)
	stream.expectEvent(t, "row", map[string]any{"namespace": mine, "name": "web", "state": "Ready"})
	expect.Delete(t, w.seed, object)
	stream.expectEvent(t, "gone", map[string]any{"namespace": mine, "name": "web"})

	if head := w.ask(http.MethodHead, path, tenant, ""); head.status != http.StatusOK {
		t.Errorf("HEAD got %d", head.status)
	}
	open := []streamed{w.stream(path, guest), w.stream(path, guest), w.stream(path, guest)} // with the tenant's, four
	if fifth := w.stream(path, guest); open[2].status != http.StatusOK || fifth.status != http.StatusServiceUnavailable {
		t.Errorf("the fourth stream of a namespace's accounts got %d, the fifth %d", open[2].status, fifth.status)
	}
	expect.Delete(t, w.seed, serviceAccount(w.catalogue, "guest"))
	w.eventually(listed+"?namespace="+mine, guest, http.StatusUnauthorized, nil)
	for _, one := range open {
		one.expectEvent(t, "end", map[string]any{"reason": "Unauthenticated"})
	}
	binding := &metav1.PartialObjectMetadata{}
	binding.SetGroupVersionKind(rolesBinding)
	expect.NoError(t, w.seed.DeleteAllOf(t.Context(), binding, client.InNamespace(mine)))
	w.eventually(listed+"?namespace="+mine, tenant, http.StatusNotFound, nil)
	stream.expectEvent(t, "end", map[string]any{"reason": "Forbidden"})
}

// Red when a stream keeps the manager from its end.
func TestStreamsEndWithTheManager(t *testing.T) {
	w := newWorld(t)
	mine := w.cluster("mine", "v1.36.3")
	w.start()
	tenant := w.account("tenant")
	w.grant("tenant", mine, installations)
	stream := w.stream("/api/v1/watch?namespace="+mine, tenant)
	stream.expectEvent(t, "begin", nil)
	go w.stop()
	stream.expectEvent(t, "end", map[string]any{"reason": "Shutdown"})
}
