package sandbox

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-addons/trellis/pkg/web/config"
	"github.com/trellis-addons/trellis/test/fleet"
)

// Users of the web view. The admin may do everything on master and seeds, the other one has role cluster-user for one cluster.
const (
	webAdmin = "web-admin"
	webUser  = "web-user"
)

// webView is the web view, a plain process: users log in with tokens that the API servers of the platform know.
type webView struct {
	program *Manager
	tokens  map[string]string
	url     string
}

func newWebView() *webView {
	return &webView{tokens: map[string]string{webAdmin: rand.Text(), webUser: rand.Text()}}
}

// webTokens are those of its users, by name; none without it.
func (s *Sandbox) webTokens() map[string]string {
	if s.web == nil {
		return nil
	}
	return s.web.tokens
}

// WebURL is the address of the web view, and the tokens are those of an admin, and of a user of the cluster that WebCluster names.
func (s *Sandbox) WebURL() (url, admin, user string) {
	return s.web.url, s.web.tokens[webAdmin], s.web.tokens[webUser]
}

// WebCluster is the one whose user logs in to the web view.
func (s *Sandbox) WebCluster() UserCluster {
	clusters := s.UserClusters()
	if at := slices.IndexFunc(clusters, func(one UserCluster) bool { return one.Name == "birch" }); at >= 0 {
		return clusters[at]
	}
	return clusters[0]
}

// webEnvironment is what .sandbox/env says of the web view.
func (s *Sandbox) webEnvironment() [][2]string {
	if s.web == nil {
		return nil
	}
	url, admin, user := s.WebURL()
	return [][2]string{{"SANDBOX_WEB_URL", url}, {"SANDBOX_WEB_ADMIN_TOKEN", admin}, {"SANDBOX_WEB_USER_TOKEN", user}}
}

// findWebPort gives the web view a port that stays over its restarts.
func (s *Sandbox) findWebPort() error {
	if s.web == nil {
		return nil
	}
	port, err := s.ports.Free("web")
	if err != nil {
		return fmt.Errorf("finding a port for the web view: %w", err)
	}
	s.web.url = fmt.Sprintf("http://127.0.0.1:%d", port)
	return nil
}

// startWeb gives its users their rights, and starts the web view.
func (s *Sandbox) startWeb(ctx context.Context) error {
	for _, where := range s.platform() {
		if err := s.create(ctx, where, clusterAdmin(webAdmin)); err != nil {
			return err
		}
	}
	of := s.WebCluster()
	if err := s.create(ctx, of.Seed, clusterUser(webUser, of.Namespace())); err != nil {
		return err
	}
	if err := s.configureWeb(); err != nil {
		return fmt.Errorf("configuring the web view: %w", err)
	}
	s.web.program = &Manager{
		Name: "trellis-web", sandbox: s, ready: "/healthz",
		// One port has probes and metrics.
		serving: func(probes, _ string) []string { return []string{"--metrics-bind-address", probes} },
		run: func(_ context.Context, arguments []string) (*fleet.Process, error) {
			here := []string{"--config", s.path("web", "config.yaml"), "--bind-address", s.web.url[len("http://"):]}
			return s.Fleet.Run(fleet.Command{Name: "trellis-web", Path: s.path("bin", "trellis-web"), Arguments: append(here, arguments...)})
		},
	}
	return s.web.program.Start(ctx)
}

// configureWeb writes the configuration of the web view, and the key of its cookies.
func (s *Sandbox) configureWeb() error {
	made := config.Config{PublicURL: s.web.url, KeysFolder: s.path("web", "keys"), Login: config.Login{Kind: config.LoginToken}}
	server := func(name string) config.Server {
		to := s.Server(name).Config
		return config.Server{Server: to.Host, CA: string(to.CAData)}
	}
	made.Master = &config.Master{Server: server(Master), Namespace: Namespace}
	for _, seed := range s.seeds() {
		authority, err := os.ReadFile(s.queryAuthority(seed))
		if err != nil {
			return err
		}
		made.Seeds = append(made.Seeds, config.Seed{Name: seed, Server: server(seed), Query: s.QueryURL(seed), QueryCA: string(authority)})
	}
	text, err := yaml.Marshal(made)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(made.KeysFolder, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(s.path("web", "keys", "1"), []byte(rand.Text()+rand.Text()), 0o600); err != nil {
		return err
	}
	return os.WriteFile(s.path("web", "config.yaml"), text, 0o600)
}

// clusterAdmin lets a user do everything.
func clusterAdmin(user string) client.Object {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}

// clusterUser gives a user the chart's role for the users of a cluster, in the cluster's namespace.
func clusterUser(user, namespace string) client.Object {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user, Namespace: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: Namespace + ":trellis-seed:cluster-user"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
}
