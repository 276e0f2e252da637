package endtoend_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/test/fleet"
	"github.com/trellis-addons/trellis/test/sandbox"
)

// canaries are texts of credentials: what makes them worth something, in the forms that they could have somewhere.
type canaries []string

// add adds those of a Secret of an agent.
func (c *canaries) add(data map[string][]byte) {
	if token := string(data["token"]); token != "" {
		_, signature, _ := strings.Cut(token[strings.Index(token, ".")+1:], ".")
		*c = append(*c, signature)
	}
	for _, key := range []string{"token", "tls.key"} {
		if len(data[key]) > 0 {
			*c = append(*c, base64.StdEncoding.EncodeToString(data[key]))
		}
	}
	if lines := strings.Split(string(data["tls.key"]), "\n"); len(lines) > 2 {
		*c = append(*c, lines[1])
	}
}

// in is how many of them are in a text.
func (c canaries) in(text string) (found int) {
	for _, one := range c {
		if strings.Contains(text, one) {
			found++
		}
	}
	return found
}

// expectNoCanary holds that no token and no key is anywhere but in its Secrets: not in logs, metrics, events and objects, of which
// records of releases are sealed.
func (a *agents) expectNoCanary() {
	a.t.Helper()
	if len(a.secrets) < 8 {
		a.t.Fatalf("only %d texts are known: this test looks for the wrong ones", len(a.secrets))
	}
	reported, err := fleet.Get(a.t.Context(), a.box.Manager(cluster.Seed).MetricsURL())
	texts := map[string]string{"metrics": string(reported)}
	logs, failed := filepath.Glob(filepath.Join(a.box.Folder, "logs", "*-controller-manager*"))
	if err := errors.Join(err, failed); err != nil || len(logs) < 3 {
		a.t.Fatal(logs, err)
	}
	for _, log := range logs {
		content, err := os.ReadFile(log)
		if err != nil {
			a.t.Fatal(err)
		}
		texts[log] = string(content)
	}
	for where, c := range map[string]client.Client{"seed": a.seed, "user cluster": a.user, "master": a.box.Client(sandbox.Master)} {
		lists := []client.ObjectList{&corev1.EventList{}, &eventsv1.EventList{}, &corev1.ConfigMapList{}, &corev1.SecretList{}}
		if where != "user cluster" {
			lists = append(lists, &kubermaticv1.AddonInstallationList{}, &kubermaticv1.AddonCatalogueList{}, &kubermaticv1.AddonSetList{})
		}
		for _, list := range lists {
			if err := c.List(a.t.Context(), list); client.IgnoreNotFound(err) != nil && where != "master" {
				a.t.Fatal(err)
			}
			if secrets, is := list.(*corev1.SecretList); is {
				a.spare(secrets)
			}
			text, err := json.Marshal(list)
			if err != nil {
				a.t.Fatal(err)
			}
			texts[where+" "+fmt.Sprintf("%T", list)] = string(text)
		}
	}
	for where, text := range texts {
		if found := a.secrets.in(text); found > 0 {
			a.t.Errorf("%d of the agent's credentials are in %s", found, where)
		}
	}
}

// spare takes the Secrets out that are there for credentials: each has to have some that are known.
func (a *agents) spare(secrets *corev1.SecretList) {
	a.t.Helper()
	var others []corev1.Secret
	for _, secret := range secrets.Items {
		isStored := strings.HasPrefix(secret.Name, "addon-access-") && secret.Namespace == a.namespace
		if !isStored && (secret.Namespace != "agent" || !strings.HasPrefix(secret.Name, "agent-")) {
			others = append(others, secret)
			continue
		}
		if text, err := json.Marshal(secret); err != nil || a.secrets.in(string(text)) == 0 {
			a.t.Errorf("nothing that is looked for is in Secret %q: %v", secret.Name, err)
		}
	}
	secrets.Items = others
}
