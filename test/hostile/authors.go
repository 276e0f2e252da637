package hostile

import (
	"fmt"
	"math/rand/v2"
	"strings"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

const (
	// longestRule is the maximum length of an expression of a health rule, in bytes, and rulesEach the maximum number
	// of rules of a version.
	longestRule, rulesEach = 1024, 16
)

// DoublingRules are expressions for health rules, by the part that they double repeatedly. The language of rules
// refuses all of them.
func DoublingRules() map[string]string {
	return map[string]string{
		"lists by +":      "[[0]]" + strings.Repeat(".map(l,l+l)", 58) + ".exists(l,7 in l)",
		"lists in lists":  "[[0]]" + strings.Repeat(".map(l,[l,l])", 54) + ".exists(l,l!=l)",
		"maps":            "[{0:0}]" + strings.Repeat(".map(m,{0:m,1:m})", 48) + ".all(m,m==m)",
		"texts":           `["x"]` + strings.Repeat(".map(t,t+t)", 40) + ".all(t,size(t)>0)",
		"the object":      "[self]" + strings.Repeat(".map(o,[o,o])", 54) + ".all(o,o==o)",
		"names in loops":  nestedNames(34),
		"what it gives":   "dyn([[0]]" + strings.Repeat(".map(l,l+l)", 50) + "[0])",
		"optional fields": "optional.of([0])" + strings.Repeat(".optMap(l,l+l)", 50) + ".hasValue()",
	}
}

// nestedNames binds in each loop a name to twice the value of the previous name.
func nestedNames(levels int) string {
	var text strings.Builder
	text.WriteString("[[0]].all(n0,")
	for level := 1; level <= levels; level++ {
		fmt.Fprintf(&text, "[[n%d,n%d]].all(n%d,", level-1, level-1, level)
	}
	fmt.Fprintf(&text, "n%d==n%d", levels, levels)
	text.WriteString(strings.Repeat(")", levels+1))
	return text.String()
}

// DearRule is a valid expression whose check costs the maximum. Each number gives another one.
func DearRule(number int) string {
	text := fmt.Sprintf("self.l%d.all(a,a.l.all(b,b.l.all(c,c.l.all(d,", number)
	const end = "true))))"
	for field := 0; ; field++ {
		more := fmt.Sprintf("d.f%d<%d&&", field, number)
		if len(text)+len(more)+len(end) > longestRule-24 { // so that 128 of them are within the limit of a catalogue
			return text + end
		}
		text += more
	}
}

// SlowRule is a valid expression whose evaluation for a ConfigMap with many keys exceeds its limit. Each number gives
// another one.
func SlowRule(number int) string {
	return fmt.Sprintf(`self.data.all(a,self.data.all(b,self.data.all(c,self.data.exists(d,a+b!=c+"%d"||d!="%d"))))`, number, number)
}

// rulesFor is the maximum number of rules about ConfigMaps for a version.
func rulesFor(expression func(number int) string) *kubermaticv1.HealthCheck {
	check := &kubermaticv1.HealthCheck{}
	for number := range rulesEach {
		check.Rules = append(check.Rules, kubermaticv1.HealthRule{APIVersion: "v1", Kind: "ConfigMap", Healthy: expression(number)})
	}
	return check
}

// ManyKeys is a manifest of one ConfigMap with so many keys.
func ManyKeys(keys int) string {
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: many-keys}\ndata:\n")
	for key := range keys {
		fmt.Fprintf(&text, "  key-%d: \"\"\n", key)
	}
	return text.String()
}

// Noise is a template of so many ConfigMaps, each of almost a megabyte that can't be compressed, and that changes
// with the value "turn". It is base64, which takes a thousandth of the time of random letters: an installation is
// rendered at once.
func Noise(objects int) string {
	return fmt.Sprintf(`{{- range $object := until %d }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: noise-{{ $object }}}
data:
  turn: {{ $.Variables.turn | default 0 | quote }}
{{- range $line := until 15 }}
  line-{{ $line }}: {{ randBytes 49152 | quote }}
{{- end }}
{{- end }}
`, objects)
}

// LongNames are add-ons with the maximum number of versions, each with a name of the maximum length: some 750 KB in
// all. Each turn gives other names.
func LongNames(prefix string, turn int, source *kubermaticv1.Source) []kubermaticv1.Addon {
	var addons []kubermaticv1.Addon
	for number := range 26 {
		addon := kubermaticv1.Addon{Name: kubermaticv1.AddonName(fmt.Sprintf("%s-%d", prefix, number))}
		for version := range 128 {
			name := fmt.Sprintf("1.%d.%d-", turn, version)
			addon.Versions = append(addon.Versions, kubermaticv1.AddonVersion{
				Version:  name + strings.Repeat("z", 124-len(name)),
				Template: &kubermaticv1.Template{Method: kubermaticv1.MethodGoTemplate}, Source: source,
			})
		}
		addons = append(addons, addon)
	}
	return addons
}

// LargeValues are values of 250 KiB in JSON. The values of two numbers have no part in common.
func LargeValues(number int) []byte {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	random := rand.New(rand.NewPCG(uint64(number), 0))
	text := make([]byte, 8000)
	var all strings.Builder
	all.WriteString("{")
	for part := range 32 {
		for at := range text {
			text[at] = letters[random.IntN(len(letters))]
		}
		if part > 0 {
			all.WriteString(",")
		}
		fmt.Fprintf(&all, "\"part-%d\":%q", part, text)
	}
	all.WriteString("}")
	return []byte(all.String())
}
