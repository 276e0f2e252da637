package crash_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/ownership"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/install/pullsecret"
	"github.com/trellis-addons/trellis/test/expect"
)

// pullSecret is the name of the platform's pull Secret, and of its copies.
const pullSecret = "mirror"

// Namespaces of the add-on that pulls, behind the subject's name.
const (
	labelledNamespace = "-labelled"
	droppedNamespace  = "-dropped"
	broughtNamespace  = "-brought"
)

// Passwords of the original.
const firstPassword, secondPassword = "first-word", "second-word"

const (
	pullingDeployment = `apiVersion: apps/v1
kind: Deployment
metadata: {name: worker, namespace: '{{ .Variables.name }}PLACE'}
spec:
  replicas: 0
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec: {imagePullSecrets: [{name: ` + pullSecret + `}], containers: [{name: worker, image: 'registry.example/worker:VALUE'}]}
`
	pullingNamespace = `apiVersion: v1
kind: Namespace
metadata: {name: '{{ .Variables.name }}PLACE', labels: {` + kubermaticv1.LabelPullSecret + `: 'LABELLED'}}
`
)

// pulling is an add-on whose versions need the pull Secret in two namespaces that both have, and in one that the other has not.
func pulling() map[string]string {
	files := map[string]string{}
	for version, other := range map[string]string{"1.0.0": droppedNamespace, "2.0.0": broughtNamespace} {
		for _, place := range []string{"", other} {
			files[version+"/worker"+place+".yaml"] = strings.NewReplacer("VALUE", version, "PLACE", place).Replace(pullingDeployment)
		}
		for _, place := range []string{labelledNamespace, droppedNamespace, broughtNamespace} {
			labelled := strconv.FormatBool(place == labelledNamespace)
			files[version+"/namespace"+place+".yaml"] = strings.NewReplacer("LABELLED", labelled, "PLACE", place).Replace(pullingNamespace)
		}
	}
	return files
}

// newPulling is a platform with a pull Secret, which offers the add-on.
func newPulling(t *testing.T) *platform {
	t.Helper()
	p := newPlatform(t)
	p.pull = pullSecret
	if _, err := p.sources.Commit("pulling", pulling()); err != nil {
		t.Fatal(err)
	}
	p.publish(t, "pulling", p.templates("1.0.0", "pulling", "1.0.0"), p.templates("2.0.0", "pulling", "2.0.0"))
	p.setOriginal(t, firstPassword, kubermaticv1.UsePull)
	return p
}

func login(password string) []byte {
	return fmt.Appendf(nil, `{"auths":{"mirror.example":{"password":%q}}}`, password)
}

// setOriginal has the original be so, whatever it was.
func (p *platform) setOriginal(t testing.TB, password, use string) {
	t.Helper()
	original := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.catalogue, Name: pullSecret}, Type: corev1.SecretTypeDockerConfigJson}
	expect.Put(t, p.seed, original, func(original *corev1.Secret) {
		original.Labels = map[string]string{kubermaticv1.LabelUse: use}
		original.Data = map[string][]byte{corev1.DockerConfigJsonKey: login(password)}
	})
}

// has says whether a namespace is the subject's.
func (s *subject) has(namespace string) bool {
	return namespace == s.name || slices.Contains([]string{s.name + labelledNamespace, s.name + droppedNamespace, s.name + broughtNamespace}, namespace)
}

// copiesOwner owns the copies in the subject's user cluster.
func (s *subject) copiesOwner() ownership.Owner { return ownership.Owner{ClusterUID: s.cluster.UID} }

// copies are those on record; nil where there is no record.
func (s *subject) copies(t testing.TB) *pullsecret.Copies {
	t.Helper()
	record := &corev1.ConfigMap{}
	err := s.seed.Get(t.Context(), client.ObjectKey{Namespace: s.catalogue, Name: "addon-pull-" + s.name}, record)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	known := &pullsecret.Copies{}
	expect.NoError(t, json.Unmarshal([]byte(record.Data["copies.json"]), known))
	return known
}

// addCopies adds the record of copies: of UIDs and nonces it is said whether they are those of the living. What has the name of a
// copy and is not on record stands apart, and no clean run has it.
func (s *subject) addCopies(t testing.TB, state map[string]string, uids map[ownership.Key]types.UID) {
	t.Helper()
	known := s.copies(t)
	isRecorded := known != nil
	if !isRecorded {
		known = &pullsecret.Copies{}
	}
	recorded := map[ownership.Key]bool{}
	slices.SortFunc(known.All, func(a, b pullsecret.Copy) int { return strings.Compare(a.Namespace, b.Namespace) })
	for i := range known.All {
		one := &known.All[i]
		is, nonce := "not that of the object", "not that of the object"
		if uids[one.Key] == one.UID {
			is, recorded[one.Key] = "that of the object", true
		}
		object := s.anonymous("Secret " + one.Namespace + "/" + one.Name)
		if one.Nonce != "" && strings.Contains(state[object], one.Nonce) {
			nonce = "that of the object"
			state[object] = strings.ReplaceAll(state[object], one.Nonce, "NONCE")
		}
		one.UID, one.Nonce = types.UID(is), nonce
	}
	if isRecorded {
		state["the record of copies"] = s.anonymous(encode(t, known))
	}
	for key := range uids {
		if key.Kind == "Secret" && key.Name == pullSecret && !recorded[key] {
			state[s.anonymous("without an owner: "+key.Namespace)] = "it is not on record"
		}
	}
}

// digest is the one that is on record of a copy of the original as it is; "" where it isn't to be copied.
func (s *subject) digest(t testing.TB) string {
	t.Helper()
	records := pullsecret.NewRecords(s.seed, s.seed, pullsecret.Options{
		Namespace: s.catalogue, Name: pullSecret, Key: []byte(inputsKey),
		Read: func(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
			secret := &corev1.Secret{}
			return secret, s.seed.Get(ctx, key, secret)
		},
	})
	held, err := records.Hold(t.Context(), target.Ref{Name: s.name}, s.cluster.UID)
	expect.NoError(t, err)
	defer held.Release()
	original, err := held.Original(t.Context(), time.Now())
	expect.NoError(t, err)
	return original.Digest
}

// copied says what a subject lacks to have these copies and no other, all on record as they are, and nothing on its way: the record is
// written last.
func copied(password string, places ...string) func(testing.TB, *subject) error {
	return func(t testing.TB, one *subject) error {
		t.Helper()
		secrets := &corev1.SecretList{}
		if err := one.user.List(t.Context(), secrets); err != nil {
			return err
		}
		var found []string
		known, digest, wrong := one.copies(t), one.digest(t), []error(nil)
		if known == nil {
			return errors.New("there is no record of copies")
		}
		for installation, use := range known.Uses {
			if len(use.Previous) > 0 {
				wrong = append(wrong, fmt.Errorf("%s still needs copies in %q for its revision of before", installation, use.Previous))
			}
		}
		for _, secret := range secrets.Items {
			if secret.Name != pullSecret || !one.has(secret.Namespace) {
				continue
			}
			found = append(found, strings.TrimPrefix(secret.Namespace, one.name))
			if !bytes.Equal(secret.Data[corev1.DockerConfigJsonKey], login(password)) {
				wrong = append(wrong, fmt.Errorf("the copy in %q is another", secret.Namespace))
			}
			isKnown := func(on pullsecret.Copy) bool {
				return on.Namespace == secret.Namespace && on.UID == secret.UID && on.Content == digest
			}
			if !slices.ContainsFunc(known.All, isKnown) {
				wrong = append(wrong, fmt.Errorf("the copy in %q is not on record as it is", secret.Namespace))
			}
		}
		slices.Sort(found)
		if slices.Sort(places); !slices.Equal(found, places) || len(known.All) != len(places) {
			wrong = append(wrong, fmt.Errorf("there are copies in %q, and %d on record, want %q", found, len(known.All), places))
		}
		return errors.Join(wrong...)
	}
}
