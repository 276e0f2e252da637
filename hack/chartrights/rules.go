package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
)

// subject is what a rule is about. Rules of the charts have one resource each, so that each right
// stands beside the reasons for it.
type subject struct{ group, resource, names string }

// rule has, for its subject, what is asked for each verb.
type rule struct {
	subject
	verbs   []string
	reasons []string
	// when are conditions, one of which is enough; none: always.
	when []string
}

// merged are the rules of a role: declarations of one subject become one rule for each condition.
func merged(declared []declaration, role string) []rule {
	asked := map[subject]map[string][]declaration{} // by verb
	for _, d := range declared {
		if !slices.Contains(d.roles, role) {
			continue
		}
		for _, resource := range d.resources {
			about := subjectOf(resource, d.names)
			if asked[about] == nil {
				asked[about] = map[string][]declaration{}
			}
			for _, verb := range d.verbs {
				asked[about][verb] = append(asked[about][verb], d)
			}
		}
	}
	var rules []rule
	for about, verbs := range asked {
		rules = append(rules, rulesOf(about, verbs)...)
	}
	slices.SortFunc(rules, func(a, b rule) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.resource, b.resource), cmp.Compare(a.names, b.names),
			slices.Compare(a.when, b.when))
	})
	return rules
}

func subjectOf(resource string, names []string) subject {
	plural, group, _ := strings.Cut(resource, ".")
	return subject{group: group, resource: plural, names: strings.Join(names, ",")}
}

// rulesOf are those of one subject, by the conditions of its verbs.
func rulesOf(about subject, verbs map[string][]declaration) []rule {
	byCondition := map[string]*rule{}
	for _, verb := range slices.SortedFunc(maps.Keys(verbs), byOrder) {
		when := whenOf(verbs[verb])
		key := strings.Join(when, ",")
		if byCondition[key] == nil {
			byCondition[key] = &rule{subject: about, when: when}
		}
		byCondition[key].verbs = append(byCondition[key].verbs, verb)
		for _, d := range verbs[verb] {
			if !slices.Contains(byCondition[key].reasons, d.reason) {
				byCondition[key].reasons = append(byCondition[key].reasons, d.reason)
			}
		}
	}
	var rules []rule
	for _, made := range byCondition {
		rules = append(rules, *made)
	}
	return rules
}

func byOrder(a, b string) int {
	return cmp.Compare(slices.Index(verbOrder, a), slices.Index(verbOrder, b))
}

// whenOf are the conditions under which one of the declarations holds; none, where one always does.
func whenOf(asked []declaration) []string {
	var when []string
	for _, d := range asked {
		if d.condition == "" {
			return nil
		}
		when = append(when, d.condition)
	}
	slices.Sort(when)
	return slices.Compact(when)
}

// text writes rules as YAML, with the charts' templates where a condition or a name needs them.
func text(rules []rule) string {
	var written strings.Builder
	for _, one := range rules {
		var tests []string
		for _, condition := range one.when {
			tests = append(tests, conditions[condition])
		}
		if len(tests) > 1 {
			tests = append([]string{"or"}, tests...)
		}
		if len(tests) > 0 {
			fmt.Fprintf(&written, "{{- if %s }}\n", strings.Join(tests, " "))
		}
		group, resource := quoted(one.group), one.resource
		if listed[one.resource] != "" {
			fmt.Fprintf(&written, "{{- range %s }}\n", listed[one.resource])
			group, resource = "{{ .group }}", "{{ .resource }}"
		}
		fmt.Fprintf(&written, "# %s\n- apiGroups: [%s]\n  resources: [%s]\n", strings.Join(one.reasons, "\n# "), group, resource)
		if one.names != "" {
			fmt.Fprintf(&written, "  resourceNames: [%s]\n", filled(one.names))
		}
		fmt.Fprintf(&written, "  verbs: [%s]\n", strings.Join(one.verbs, ", "))
		if listed[one.resource] != "" {
			written.WriteString("{{- end }}\n")
		}
		if len(tests) > 0 {
			written.WriteString("{{- end }}\n")
		}
	}
	return written.String()
}

func quoted(group string) string {
	if group == "" {
		return `""`
	}
	return group
}

// filled are names with what the chart puts in place of some.
func filled(names string) string {
	all := strings.Split(names, ",")
	for i, name := range all {
		all[i] = cmp.Or(placeholders[name], name)
	}
	return strings.Join(all, ", ")
}

// seedRights is deploy/seed/rights.yaml without its rules.
//
//go:embed seed.yaml.tmpl
var seedRights string

// publicRules are the rules of the seed's chart in namespace kube-public.
const publicRules = `{{- define "trellis.rights.public" -}}
%s{{- end }}
`

// chartRules are the rules of a chart's two roles.
const chartRules = `{{- /* Written by ` + "`make generate`" + ` from what the packages declare as their rights. */ -}}
{{- define "trellis.rights.everywhere" -}}
%s{{- end }}
{{- define "trellis.rights.platform" -}}
%s{{- end }}
`

// files are all that are written, by their path.
func files(declared []declaration) (map[string]string, error) {
	written := map[string]string{}
	for _, chart := range []string{"master", "seed"} {
		written["charts/trellis-"+chart+"/templates/_rights.tpl"] = fmt.Sprintf(chartRules,
			text(merged(declared, chart)), text(merged(declared, chart+"-platform")))
	}
	written["charts/trellis-seed/templates/_rights.tpl"] += fmt.Sprintf(publicRules, text(merged(declared, "seed-public")))
	parsed, err := template.New("seed.yaml").Funcs(template.FuncMap{
		"rules": func(role string) string { return strings.TrimSuffix(text(merged(declared, role)), "\n") },
	}).Parse(seedRights)
	if err != nil {
		return nil, err
	}
	var content strings.Builder
	if err := parsed.Execute(&content, nil); err != nil {
		return nil, err
	}
	written["deploy/seed/rights.yaml"] = content.String()
	return written, nil
}
