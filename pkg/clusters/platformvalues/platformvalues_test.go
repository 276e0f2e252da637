package platformvalues_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/platformvalues"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/values/strictlist"
)

const whole = `
- clusterSelector: {}
  values:
    nodeSelector: {kubernetes.io/os: linux, pool: shared}
    tolerations: [{key: pool, operator: Equal, value: shared, effect: NoSchedule}]
    proxy: {http: "http://proxy.example.com:3128", noProxy: "10.0.0.0/8, .svc,localhost,[fd00::1]"}
    registries: {docker.io: mirror.example.com:5000/hub}
- clusterSelector: {matchLabels: {tier: production}}
  values:
    tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 60}]
    proxy: {https: "https://[fd00::1]:443/"}
    registries: {docker.io: null, quay.io/x: mirror.example.com/quay}
- cluster: small
  values: {nodeSelector: {pool: null}, tolerations: [], proxy: {http: ""}}
- cluster: team/one
  values: {proxy: {http: socks5://one.example.com}}
`

func read(t *testing.T, text string) []platformvalues.Item {
	t.Helper()
	items, err := platformvalues.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	return items
}

// certificate in PEM.
func certificate(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{SerialNumber: big.NewInt(1)}
	made, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made}))
}

// AG25: A later item counts above an earlier one, key by key; lists as a whole; null and "" take out.
func TestLaterItemsCountAboveEarlierOnesByKey(t *testing.T) {
	kkp := func(name string) target.Ref {
		return target.Ref{Kind: target.KindKKP, Namespace: "cluster-" + name, Name: name}
	}
	capi := func(namespace string) target.Ref {
		return target.Ref{Kind: target.KindClusterAPI, Namespace: namespace, Name: "one"}
	}
	const (
		shared     = `"tolerations":[{"effect":"NoSchedule","key":"pool","operator":"Equal","value":"shared"}]`
		selected   = `"nodeSelector":{"kubernetes.io/os":"linux","pool":"shared"}`
		mirror     = `"registries":{"docker.io":"mirror.example.com:5000/hub"}`
		exceptions = `"noProxy":"10.0.0.0/8, .svc,localhost,[fd00::1]"`
	)
	for _, test := range []struct {
		why  string
		of   target.Ref
		has  labels.Set
		want string
	}{
		{"the first item alone", kkp("any"), nil,
			`{` + selected + `,"proxy":{"http":"http://proxy.example.com:3128",` + exceptions + `},` + mirror + `,` + shared + `}`},
		{"a second one by label", kkp("any"), labels.Set{"tier": "production"},
			`{` + selected + `,"proxy":{"http":"http://proxy.example.com:3128","https":"https://[fd00::1]:443/",` + exceptions + `},` +
				`"registries":{"docker.io":null,"quay.io/x":"mirror.example.com/quay"},` +
				`"tolerations":[{"effect":"NoExecute","operator":"Exists","tolerationSeconds":60}]}`},
		{"a third one by name takes out", kkp("small"), nil,
			`{"nodeSelector":{"kubernetes.io/os":"linux"},"proxy":{` + exceptions + `},` + mirror + `}`},
		{"Cluster API by namespace and name", capi("team"), nil,
			`{` + selected + `,"proxy":{"http":"socks5://one.example.com",` + exceptions + `},` + mirror + `,` + shared + `}`},
		{"not by the name alone", capi("other"), nil,
			`{` + selected + `,"proxy":{"http":"http://proxy.example.com:3128",` + exceptions + `},` + mirror + `,` + shared + `}`},
	} {
		items := read(t, whole)
		for range 2 { // merging changes no item
			merged, err := platformvalues.Merged(items, test.of, test.has)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(merged)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, string(got)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.why, diff)
			}
		}
	}
}

// AG25: What says nothing is nothing, so that the hash of inputs is as without a list.
func TestWhatSaysNothingIsNothing(t *testing.T) {
	for _, text := range []string{
		"", "[]", "# nothing yet\n", "- {clusterSelector: {}, values: {}}", "- {cluster: other, values: {nodeSelector: {a: b}}}",
		"- {clusterSelector: {}, values: {nodeSelector: {a: null}, tolerations: [], proxy: {http: ''}, registries: {}}}",
		"- {clusterSelector: {matchLabels: {a: b}}, values: {nodeSelector: {a: b}}}",
	} {
		merged, err := platformvalues.Merged(read(t, text), target.Ref{Kind: target.KindKKP, Name: "small"}, nil)
		if merged != nil || err != nil {
			t.Errorf("%q: %v, %v", text, merged, err)
		}
	}
}

// AG25: An item that selects by the seed says nothing while nobody tells its name, unless the rest rules it out.
func TestTheNameOfTheSeedHasToBeKnown(t *testing.T) {
	items := read(t, "- {clusterSelector: {matchLabels: {tier: gold}}, values: {}}\n- {clusterSelector: {matchLabels: {"+v1.FactSeed+
		": north, tier: gold}}, values: {nodeSelector: {a: b}}}")
	if !platformvalues.NeedSeed(items) || platformvalues.NeedSeed(items[:1]) {
		t.Error("whether the seed's name is needed is wrong")
	}
	of := target.Ref{Kind: target.KindKKP, Name: "small"}
	var unknown *platformvalues.UnknownError
	if _, err := platformvalues.Merged(items, of, labels.Set{"tier": "gold"}); !errors.As(err, &unknown) || unknown.Item != 2 {
		t.Errorf("without it: %v", err)
	}
	for _, known := range []labels.Set{{"tier": "silver"}, {"tier": "gold", v1.FactSeed: "south"}} {
		if merged, err := platformvalues.Merged(items, of, known); merged != nil || err != nil {
			t.Errorf("%v: %v, %v", known, merged, err)
		}
	}
	if merged, err := platformvalues.Merged(items, of, labels.Set{"tier": "gold", v1.FactSeed: "north"}); len(merged) != 1 || err != nil {
		t.Errorf("%v, %v", merged, err)
	}
}

// hunter is a value that no error may have.
const hunter = "hunter2"

// AG25: What is wrong refuses the whole list, names the item and says no value.
func TestAListIsReadStrictly(t *testing.T) {
	const good = "- {clusterSelector: {}, values: {nodeSelector: {a: b}}}\n"
	item := func(values string) string { return good + "- {clusterSelector: {}, values: {" + values + "}}" }
	proxy := func(url string) string { return item(`proxy: {http: "` + url + `"}`) }
	bundle := func(text string) string { return item("proxy: {caBundle: " + fmt.Sprintf("%q", text) + "}") }
	for _, test := range []struct{ why, text, want string }{
		{"no YAML", "- {", "is not valid YAML"},
		{"a map", "values: []", "it is not a list of values for clusters"},
		{"a key twice in an item", good + "- clusterSelector: {}\n  values:\n    proxy:\n      http: http://a\n      http: http://b\n", `item 2: line 6: has key "http" twice`},
		{"values twice", good + good + "- clusterSelector: {}\n  values: {}\n  values: {}\n" + good, `item 3: line 5: has key "values" twice`},
		{"too many items", strings.Repeat(good, 65), "at most 64"},
		{"too large", good + "# " + strings.Repeat("x", 1<<20), "at most 262144 are allowed"},
		{"too large with aliases", "- &a {clusterSelector: {}, values: {nodeSelector: {a: " + strings.Repeat("x", 60<<10) + "}}}\n" + strings.Repeat("- *a\n", 5), "aliases expanded"},
		{"too deep", item("nodeSelector: " + strings.Repeat("{a: ", 13) + strings.Repeat("}", 13)), "nested deeper"},
		{"no map", good + "- " + hunter, "item 2: it is not a map"},
		{"an unknown field", good + "- {clusterSelector: {}, values: {}, value: {a: " + hunter + "}}", `item 2: unknown field "value"`},
		{"a field in capitals", good + "- {Cluster: a, values: {}}", `item 2: unknown field "Cluster"`},
		{"an unknown field of values", item("proxies: " + hunter), `item 2: values: unknown field "proxies"`},
		{"for whom", good + "- {values: {}}", "item 2: set one of cluster and clusterSelector"},
		{"for whom, twice", good + "- {cluster: a, clusterSelector: {}, values: {}}", "item 2: set one of"},
		{"no values", good + "- {cluster: a}", "item 2: values: they are missing"},
		{"no cluster", good + "- {cluster: '', values: {}}", "item 2: cluster: "},
		{"no name of a cluster", good + "- {cluster: a/b/" + hunter + ", values: {}}", "item 2: cluster: "},
		{"a number as a cluster", good + "- {cluster: 1, values: {}}", "item 2: cluster: "},
		{"a selector that is none", good + "- {clusterSelector: " + hunter + ", values: {}}", "item 2: clusterSelector: "},
		{"a selector with an unknown field", good + "- {clusterSelector: {labels: {}}, values: {}}", `item 2: clusterSelector: unknown field "labels"`},
		{"a selector of no label", good + "- {clusterSelector: {matchLabels: {'" + hunter + " b': c}}, values: {}}", "item 2: clusterSelector: "},
		{"null for all", item("registries: null"), "item 2: values.registries: it is not a map"},
		{"a label's key", item("nodeSelector: {'a b': c}"), "item 2: values.nodeSelector: "},
		{"a label's value", item("nodeSelector: {a: '" + hunter + " {{'}"), `item 2: values.nodeSelector: "a": its value is not a valid label value`},
		{"a label that is no text", item("nodeSelector: {a: true}"), `"a": it is not a string`},
		{"tolerations of no list", item("tolerations: {}"), "values.tolerations: it is not a list"},
		{"a toleration's field", item("tolerations: [{key: a, effects: x}]"), `values.tolerations: [0]: unknown field "effects"`},
		{"a toleration of nothing", item("tolerations: [{}]"), "values.tolerations: [0]: key: "},
		{"an operator", item("tolerations: [{key: a, operator: " + hunter + "}]"), "[0]: operator: "},
		{"an effect", item("tolerations: [{key: a, effect: " + hunter + "}]"), "[0]: effect: "},
		{"a value beside Exists", item("tolerations: [{key: a, operator: Exists, value: " + hunter + "}]"), "[0]: value: "},
		{"a toleration's key", item("tolerations: [{key: '" + hunter + " {{', value: b}]"), "[0]: key: "},
		{"a toleration's value", item("tolerations: [{key: a, value: '" + hunter + " {{'}]"), "[0]: value: "},
		{"seconds of no effect", item("tolerations: [{key: a, value: b, tolerationSeconds: 5}]"), "[0]: tolerationSeconds: "},
		{"seconds as text", item("tolerations: [{key: a, value: b, effect: NoExecute, tolerationSeconds: '5'}]"), "[0]: tolerationSeconds: "},
		{"too many tolerations", item("tolerations: [" + strings.Repeat("{operator: Exists},", 33) + "]"), "at most 32"},
		{"a proxy's field", item("proxy: {ftp: a}"), `item 2: values.proxy: unknown field "ftp"`},
		{"a user part", proxy("http://robot:" + hunter + "@proxy.example.com:3128"), "item 2: values.proxy: http: it has a user part"},
		{"a user without a password", proxy("https://" + hunter + "@proxy.example.com"), "it has a user part"},
		{"a user part in a path", proxy("http://proxy.example.com/robot:" + hunter + "@x"), "it has a user part"},
		{"a user part without a scheme", proxy("robot:" + hunter + "@proxy.example.com:3128"), "write it like http://"},
		{"a scheme", proxy("file:///" + hunter), "write it like http://"},
		{"no host", proxy("http://:3128"), "write it like http://"},
		{"a query", proxy("http://proxy.example.com?token=" + hunter), "other than a scheme"},
		{"a path", proxy("http://proxy.example.com/" + hunter), "other than a scheme"},
		{"marks", proxy("http://{{" + hunter + "}}"), "values.proxy: http: "},
		{"a long one", proxy("http://" + strings.Repeat("a", 1024)), "write it like http://"},
		{"noProxy as a list", item("proxy: {noProxy: [a]}"), "noProxy: it is not a string"},
		{"noProxy with a user part", item("proxy: {noProxy: 'robot:" + hunter + "@a'}"), "values.proxy: noProxy: "},
		{"noProxy over lines", item(`proxy: {noProxy: "a\nb"}`), "values.proxy: noProxy: "},
		{"no certificate", bundle(hunter), "values.proxy: caBundle: it contains no PEM certificate"},
		{"a key", bundle(certificate(t) + "-----BEGIN PRIVATE KEY-----\naaaa\n-----END PRIVATE KEY-----\n"), "data other than PEM certificates"},
		{"another block", bundle("-----BEGIN X-----\naaaa\n-----END X-----\n"), "data other than PEM certificates"},
		{"a block without a certificate", bundle("-----BEGIN CERTIFICATE-----\naaaa\n-----END CERTIFICATE-----\n"), "data other than PEM certificates"},
		{"marks beside certificates", bundle("{{ " + hunter + " }}\n" + certificate(t)), "data other than PEM certificates"},
		{"a registry", item("registries: {'docker.io': 'https://" + hunter + "'}"), `values.registries: "docker.io": key and value must`},
		{"a registry's mirror of nothing", item("registries: {docker.io: ''}"), "values.registries: "},
		{"a registry with a user part", item("registries: {'docker.io': 'robot:" + hunter + "@mirror'}"), "values.registries: "},
		{"too many registries", item("registries: {" + many(65) + "}"), "at most 64"},
		{"too many labels", item("nodeSelector: {" + many(33) + "}"), "at most 32"},
	} {
		t.Run(test.why, func(t *testing.T) {
			items, err := platformvalues.Read(test.text)
			var refusal *strictlist.Error
			if !errors.As(err, &refusal) || len(items) != 0 {
				t.Fatalf("got %v, %v", items, err)
			}
			if !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), platformvalues.ListKey) {
				t.Errorf("%q does not say %q and where", err, test.want)
			}
			if strings.Contains(err.Error(), hunter) || len(err.Error()) > 500 {
				t.Errorf("%q holds a value", err)
			}
		})
	}
}

func many(count int) string {
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(&text, "r%d.example.com: a,", i)
	}
	return text.String()
}

// AG25: Authorities of a proxy may be several, with what tools write beside them.
func TestABundleMayHaveSeveralCertificates(t *testing.T) {
	text := "# Issuer: a\n" + certificate(t) + "\n# Issuer: b\n" + certificate(t)
	read(t, fmt.Sprintf("- {clusterSelector: {}, values: {proxy: {caBundle: %q}}}", text))
}

// AG25: No text ends the process, none is half taken, and what is taken can be merged and encoded.
func FuzzRead(f *testing.F) {
	f.Add(whole)
	f.Add("- {cluster: a, values: {proxy: {http: http://u:p@x}}}")
	f.Add("- &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		items, err := platformvalues.Read(text)
		if err != nil && len(items) != 0 {
			t.Error("a list is half taken")
		}
		merged, err := platformvalues.Merged(items, target.Ref{Kind: target.KindKKP, Name: "a"}, labels.Set{v1.FactSeed: "a"})
		if err != nil {
			t.Error(err)
		}
		encoded, err := json.Marshal(merged)
		if err != nil {
			t.Error(err)
		}
		if strings.Contains(string(encoded), "{{") {
			t.Errorf("marks of templates are taken: %s", encoded)
		}
		if proxy, has := merged["proxy"].(map[string]any); has && strings.Contains(fmt.Sprint(proxy["http"], proxy["https"], proxy["noProxy"]), "@") {
			t.Errorf("a user part is taken: %s", encoded)
		}
	})
}
