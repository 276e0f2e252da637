package rights

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

const (
	// installationMark is the placeholder for the installation's name in names of a rule.
	installationMark = "$(installation)"
	// ownPrefix begins the names of objects of built-in kinds that an agent may write.
	ownPrefix = "addon-" + installationMark + "-"
	// longestInstallation, in bytes. Names of a catalogue are checked with an installation name of that length.
	longestInstallation = 63
	// mostCombinations is how many combinations of group, resource, name and verb the rules of an access may have: each
	// is compared, here and by API servers.
	mostCombinations = 1024
)

var (
	verbs  = []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	writes = []string{"create", "update", "patch", "delete"}
	// subresources that a custom kind may have. No API server has an endpoint for finalizers of one: authorization uses it for owners
	// that block (admission plugin OwnerReferencesPermissionEnforcement).
	subresources = []string{"status", "scale", "finalizers"}
	// resourceForm is the form of plurals of custom kinds, which are DNS labels. RBAC compares letter by letter: another
	// form would never match, or match something that the floor did not check.
	resourceForm = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
)

// Rules returns the rules of the Role of an access: its own with the installation's name filled in, then the rule for
// the outbox. None if the access is for another signer. The error says which field is beyond the floor.
func Rules(access v1.Access, installation string) ([]rbacv1.PolicyRule, error) {
	if len(installation) > longestInstallation || len(validation.IsDNS1123Subdomain(installation)) > 0 {
		return nil, fmt.Errorf("%s is not a name of an installation", quoted(installation))
	}
	if field, err := checkAccess(&access); err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	var rules []rbacv1.PolicyRule
	for _, one := range access.Rules {
		rule := rbacv1.PolicyRule{
			APIGroups: slices.Clone(one.APIGroups), Resources: slices.Clone(one.Resources), Verbs: slices.Clone(one.Verbs),
		}
		for _, name := range one.ResourceNames {
			rule.ResourceNames = append(rule.ResourceNames, fill(name, installation))
		}
		rules = append(rules, rule)
	}
	if access.Outbox {
		rules = append(rules, outboxRule(installation))
	}
	return rules, nil
}

func outboxRule(installation string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get", "update", "patch"},
		ResourceNames: []string{OutboxName(installation)},
	}
}

func fill(name, installation string) string {
	return strings.ReplaceAll(name, installationMark, installation)
}

// checkRules enforces the floor. Field is the path below the access.
func checkRules(rules []v1.AccessRule) (field string, err error) {
	combinations := 0
	for at := range rules {
		rule := &rules[at]
		if field, err := checkRule(rule); err != nil {
			return fmt.Sprintf("rules[%d].%s", at, field), err
		}
		combinations += len(rule.APIGroups) * len(rule.Resources) * len(rule.Verbs) * max(1, len(rule.ResourceNames))
		if combinations > mostCombinations {
			return fmt.Sprintf("rules[%d]", at), fmt.Errorf(
				"with it the rules have more than %d combinations of group, resource, name and verb", mostCombinations)
		}
	}
	return "", nil
}

func checkRule(rule *v1.AccessRule) (field string, err error) {
	for _, list := range []struct {
		field       string
		texts       []string
		least, most int
		check       func(string) error
	}{
		{"apiGroups", rule.APIGroups, 1, 16, checkGroup},
		{"resources", rule.Resources, 1, 32, checkResource},
		{"resourceNames", rule.ResourceNames, 0, 32, checkName},
		{"verbs", rule.Verbs, 1, len(verbs), checkVerb},
	} {
		for at, one := range list.texts {
			if err := list.check(one); err != nil {
				return fmt.Sprintf("%s[%d]", list.field, at), err
			}
		}
		if len(list.texts) < list.least || len(list.texts) > list.most {
			return list.field, fmt.Errorf("there are %d: give %d to %d", len(list.texts), list.least, list.most)
		}
	}
	for _, group := range rule.APIGroups {
		if field, err := checkBuiltIn(group, rule); err != nil {
			return field, err
		}
	}
	return "", nil
}

func checkResource(resource string) error {
	plural, sub, hasSub := strings.Cut(resource, "/")
	switch {
	case !resourceForm.MatchString(plural):
		return fmt.Errorf("%s is not the plural of a kind in lower case; wildcards are not allowed", quoted(resource))
	case hasSub && !slices.Contains(subresources, sub):
		return fmt.Errorf("%s: the only allowed subresources are status, scale and finalizers", quoted(resource))
	}
	return nil
}

func checkVerb(verb string) error {
	if !slices.Contains(verbs, verb) {
		return fmt.Errorf("%s is not one of %s", quoted(verb), strings.Join(verbs, ", "))
	}
	return nil
}

// checkName also refuses "", which RBAC uses for requests without a name: create and list of all.
func checkName(name string) error {
	if problems := validation.IsDNS1123Subdomain(fill(name, strings.Repeat("a", longestInstallation))); len(problems) > 0 {
		return fmt.Errorf("%s is not the name of an object, even with %s replaced", quoted(name), installationMark)
	}
	return nil
}

// checkBuiltIn enforces the limits of Kubernetes' own kinds. A rule applies to each of its resources in each of its
// groups, so it checks all pairs.
func checkBuiltIn(group string, rule *v1.AccessRule) (field string, err error) {
	limits, isBuiltIn := builtIn[group]
	if !isBuiltIn {
		return "", nil
	}
	isWrite := slices.ContainsFunc(rule.Verbs, func(verb string) bool { return slices.Contains(writes, verb) })
	for at, resource := range rule.Resources {
		limit, isKnown := limits[resource]
		if !isKnown {
			return fmt.Sprintf("resources[%d]", at), fmt.Errorf("agents can't get rights for %s of %s: remove the rule",
				quoted(resource), groupWords(group))
		}
		if limit == byName && isWrite {
			if field, err := checkOwnNames(rule.ResourceNames, resource); err != nil {
				return field, err
			}
		}
	}
	return "", nil
}

// checkOwnNames checks names as written in the catalogue, so that the result applies to every installation.
func checkOwnNames(names []string, resource string) (field string, err error) {
	if len(names) == 0 {
		return "resourceNames", fmt.Errorf("rights to write %s need resourceNames, each beginning with %s", resource, ownPrefix)
	}
	for at, name := range names {
		if !strings.HasPrefix(name, ownPrefix) {
			return fmt.Sprintf("resourceNames[%d]", at), fmt.Errorf(
				"%s does not begin with %s: agents may write no other %s", quoted(name), ownPrefix, resource)
		}
		if rest := name[len(ownPrefix):]; strings.Contains(rest, "-") || strings.Contains(rest, installationMark) {
			return fmt.Sprintf("resourceNames[%d]", at), fmt.Errorf(
				"%s has %q or %s after %s, so it could be the name of another installation's object: use dots instead",
				quoted(name), "-", installationMark, ownPrefix)
		}
	}
	return "", nil
}

func quoted(value string) string { return fmt.Sprintf("%q", text.Cut(value, longestQuoted)) }
