package charts

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-addons/trellis/test/binaries"
	"github.com/trellis-addons/trellis/test/expect"
)

// chosen are variables of dashboards as Grafana would fill them in.
var chosen = strings.NewReplacer("$namespace", ".*", "$__rate_interval", "5m")

// queriesOf the dashboards and alerts of a chart, each once.
func queriesOf(t *testing.T, name string) (queries []string) {
	t.Helper()
	r := rendering{chart: name, why: "with numbers", values: map[string]any{"metrics": map[string]any{
		"dashboards": map[string]any{"enabled": true}, "prometheusRule": map[string]any{"enabled": true},
	}}}
	_, objects := render(t, r)
	for _, rule := range alertsOf(t, objects) {
		queries = append(queries, rule["expr"].(string))
	}
	for _, panel := range panelsOf(t, objects) {
		for _, target := range panel.Targets {
			queries = append(queries, chosen.Replace(target.Expr))
		}
	}
	return queries
}

type panel struct {
	Title   string
	Targets []struct{ Expr, LegendFormat string }
}

// panelsOf the only dashboard among objects.
func panelsOf(t *testing.T, objects []*unstructured.Unstructured) (panels []panel) {
	t.Helper()
	for _, object := range objects {
		if _, isOne := object.GetLabels()["grafana_dashboard"]; !isOne || object.GetKind() != "ConfigMap" {
			continue
		}
		texts, _, err := unstructured.NestedStringMap(object.Object, "data")
		if err != nil || len(texts) != 1 {
			t.Fatalf("ConfigMap %q: %d files, %v", object.GetName(), len(texts), err)
		}
		for _, text := range texts {
			var read struct{ Panels []panel }
			expect.NoError(t, json.Unmarshal([]byte(text), &read))
			panels = append(panels, read.Panels...)
		}
	}
	if len(panels) < 10 {
		t.Fatalf("the chart has %d panels", len(panels))
	}
	return panels
}

var (
	reasonsAskedFor = regexp.MustCompile(`reason=~?"([A-Za-z|]+)"`)
	labelOfLegend   = regexp.MustCompile(`{{([a-z]+)}}`)
)

// TestDashboardsAskForReasonsThatExist: red when a panel asks for a reason that no condition has, or names a series by a label that its
// query leaves out.
func TestDashboardsAskForReasonsThatExist(t *testing.T) {
	root, err := binaries.Root()
	expect.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "conditions.md"))
	expect.NoError(t, err)
	for _, r := range withEverySetting() {
		_, objects := render(t, r)
		for _, one := range panelsOf(t, objects) {
			for _, target := range one.Targets {
				for _, asked := range reasonsAskedFor.FindAllStringSubmatch(target.Expr, -1) {
					for reason := range strings.SplitSeq(asked[1], "|") {
						if !bytes.Contains(page, []byte("`"+reason+"`")) {
							t.Errorf("%s, panel %q: no condition has reason %s", r, one.Title, reason)
						}
					}
				}
				for _, label := range labelOfLegend.FindAllStringSubmatch(target.LegendFormat, -1) {
					if !regexp.MustCompile(`by \([^)]*\b` + label[1] + `\b`).MatchString(target.Expr) {
						t.Errorf("%s, panel %q: the legend has %s, and the query groups without it: %s", r, one.Title, label[1], target.Expr)
					}
				}
			}
		}
	}
}

// scraper reads metrics as Prometheus does, with the right that the charts hand out.
type scraper struct {
	token string
	web   *http.Client
}

func newScraper(t *testing.T, c client.Client) *scraper {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "prometheus", Namespace: namespace}}
	expect.Create(t, c, account)
	for _, chart := range []string{"trellis-master", "trellis-seed"} {
		expect.Create(t, c, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "prometheus-" + chart},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: namespace + ":" + chart + ":metrics-reader"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account.Name, Namespace: namespace}},
		})
	}
	token := expect.Token(t, c, account)
	return &scraper{token: token, web: insecureClient(t)}
}

func insecureClient(t *testing.T) *http.Client {
	t.Helper()
	web := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // it is self-signed
	t.Cleanup(web.CloseIdleConnections)
	return web
}

func (s *scraper) get(t *testing.T, address string) (string, error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	expect.NoError(t, err)
	request.Header.Set("Authorization", "Bearer "+s.token)
	response, err := s.web.Do(request)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", address, response.Status)
	}
	return string(text), err
}

// figures are what the managers told until now, by their charts.
type figures struct {
	scraper *scraper
	metrics map[string]string
	scrapes map[string][]scrape
}

// scrape all managers.
func (f *figures) scrape(t *testing.T) error {
	t.Helper()
	for chart, address := range f.metrics {
		text, err := f.scraper.get(t, "https://"+address+"/metrics")
		if err != nil {
			return err
		}
		labels := map[string]string{"namespace": namespace, "pod": chart + "-0", "job": chart, "instance": address}
		f.scrapes[chart] = append(f.scrapes[chart], scrape{At: time.Now(), Labels: labels, Text: text})
	}
	return nil
}

// expectAnswers holds once each query of both charts' dashboards and alerts has an answer of Prometheus' own engine, by what the
// managers told until then. Red when one is about a metric, a label or a value of a label that no manager tells.
func (f *figures) expectAnswers(t *testing.T) {
	t.Helper()
	expect.Eventually(t, 2*expect.Patience, func() error {
		if err := f.scrape(t); err != nil {
			return err
		}
		var lacking []error
		for chart := range f.metrics {
			for _, one := range answers(t, f.scrapes[chart], queriesOf(t, chart)) {
				if err := one.wrong(); err != nil {
					lacking = append(lacking, fmt.Errorf("%s: %w", chart, err))
				}
			}
		}
		return errors.Join(lacking...)
	})
}

// expectMoreLog has a running manager tell more, and then what it told before. Red when the log goes on as it was.
func expectMoreLog(t *testing.T, r rendering, debug string) {
	t.Helper()
	put := func(level, want string) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+debug+"/debug/log-level", strings.NewReader(level))
		expect.NoError(t, err)
		response, err := insecureClient(t).Do(request)
		expect.NoError(t, err)
		text, err := io.ReadAll(response.Body)
		if err = errors.Join(err, response.Body.Close()); err != nil || string(text) != want {
			t.Errorf("level %q of %s: %q, %v", level, r, text, err)
		}
	}
	isReported := func() bool {
		text, err := os.ReadFile(logOf(r))
		return err == nil && bytes.Contains(text, []byte("a step ended the reconciliation"))
	}
	if isReported() {
		t.Errorf("%s tells details that nobody asked for", r)
	}
	put("details", "details, verbosity 1\n")
	expect.Eventually(t, expect.Patience, func() error {
		if !isReported() {
			return fmt.Errorf("%s does not tell details", r)
		}
		return nil
	})
	put("changes", "changes, verbosity 0\n")
}
