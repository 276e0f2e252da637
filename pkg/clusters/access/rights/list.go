package rights

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// Uncovered describes the first part of the wanted rules that the listed ones do not cover; "" for none. It is the
// API server's own comparison, so * of a list covers all. The rule for the outbox is Trellis' own, and needs no list.
func Uncovered(wanted, listed []rbacv1.PolicyRule) (rule string) {
	if areTooMany(wanted) {
		return fmt.Sprintf("more than %d combinations of group, resource, name and verb", mostCombinations)
	}
	for _, one := range wanted {
		if isOutboxRule(one) {
			continue
		}
		if covered, missing := validation.Covers(listed, []rbacv1.PolicyRule{one}); !covered {
			return words(missing[0])
		}
	}
	return ""
}

// areTooMany says whether rules are more than those of any access: a Role that another client wrote may have millions of
// combinations, each of which would be compared.
func areTooMany(rules []rbacv1.PolicyRule) bool {
	total := 0
	for _, rule := range rules {
		if isOutboxRule(rule) {
			continue
		}
		combinations := 1
		for _, count := range []int{len(rule.APIGroups), len(rule.Resources), len(rule.Verbs), max(1, len(rule.ResourceNames))} {
			if combinations *= count; combinations > mostCombinations {
				return true
			}
		}
		if total += combinations; total > mostCombinations {
			return true
		}
	}
	return false
}

// isOutboxRule compares the whole rule: no rule of a version is like it, since the floor has no Secrets.
func isOutboxRule(rule rbacv1.PolicyRule) bool {
	if len(rule.ResourceNames) != 1 {
		return false
	}
	installation, isOutbox := strings.CutPrefix(rule.ResourceNames[0], outboxPrefix)
	own := outboxRule(installation)
	return isOutbox && len(rule.NonResourceURLs) == 0 && slices.Equal(rule.APIGroups, own.APIGroups) &&
		slices.Equal(rule.Resources, own.Resources) && slices.Equal(rule.Verbs, own.Verbs)
}

// words describes a rule for one verb, resource and group, and at most one name.
func words(rule rbacv1.PolicyRule) string {
	if len(rule.NonResourceURLs) > 0 {
		return fmt.Sprintf("%s %s", strings.Join(rule.Verbs, ", "), strings.Join(rule.NonResourceURLs, ", "))
	}
	said := fmt.Sprintf("%s %s of %s", strings.Join(rule.Verbs, ", "), strings.Join(rule.Resources, ", "), groupWords(rule.APIGroups[0]))
	if len(rule.ResourceNames) == 0 {
		return said
	}
	return fmt.Sprintf("%s, named %q", said, rule.ResourceNames[0])
}

func groupWords(group string) string {
	if group == "" {
		return "the core group"
	}
	return fmt.Sprintf("group %q", group)
}
