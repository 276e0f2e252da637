package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// prefix begins a declaration, in a comment of its own line.
const prefix = "//rights:"

// declaration is one line of one room.
type declaration struct {
	roles, verbs, resources []string
	// names the objects that it is about; empty: all of them.
	names []string
	// condition is one of conditions; empty: always.
	condition string
	// reason begins with the room.
	reason string
}

// roles are those that rules are written for, with their place: everywhere in the cluster, or in
// one namespace. That of seed-public is kube-public.
var roles = []string{
	"master", "master-platform", "seed", "seed-platform", "seed-public", "distributor", "distributor-catalogues", "distributor-platform",
}

// verbOrder are the verbs that can be declared, in the order in which rules have them. What makes
// rights (escalate, bind, impersonate, sign) and what is all of them (*) is not among them, nor what
// removes without looking (deletecollection). The last one makes rights too: it can be declared for
// the signers alone that an installation of the chart names.
var verbOrder = []string{"get", "list", "watch", "create", "update", "patch", "delete", "control", approve}

const (
	approve = "approve"
	signers = "signers.certificates.k8s.io"
)

// conditions are settings of the charts, as their templates ask for them.
var conditions = map[string]string{
	"standalone":      ".Values.standalone.enabled",
	"query":           ".Values.query.enabled",
	"metrics":         ".Values.metrics.secure",
	"kkp":             `(has "kkp" .Values.clusterAPI.kinds)`,
	"kkp-alone":       `(not (has "cluster-api" .Values.clusterAPI.kinds))`,
	"cluster-api":     `(has "cluster-api" .Values.clusterAPI.kinds)`,
	"agents":          ".Values.agents.enabled",
	"approve":         "(and .Values.agents.enabled .Values.agents.approve)",
	"own-certificate": "(and .Values.webhook.enabled (not .Values.webhook.certManager.enabled))",
}

// placeholders are names that an installation of a chart decides.
var placeholders = map[string]string{
	"{admission}":      `{{ include "trellis.admissionName" . | quote }}`,
	"{webhook-secret}": `{{ include "trellis.webhookSecret" . | quote }}`,
	"{lease}":          `{{ include "trellis.lease" . | quote }}`,
	"{signers}":        `{{ include "trellis.signers" . }}`,
}

// listed stand for the resources that one of the chart's values lists.
var listed = map[string]string{"{providerKinds}": ".Values.providerKinds", "{controlPlanes}": ".Values.clusterAPI.providers"}

// declarations are those of a file.
func declarations(text string) ([]declaration, error) {
	var found []declaration
	number := 0
	for line := range strings.Lines(text) {
		number++
		written, is := strings.CutPrefix(strings.TrimSpace(line), prefix)
		if !is {
			continue
		}
		one, err := parse(written)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
		found = append(found, one)
	}
	return found, nil
}

func parse(text string) (declaration, error) {
	var d declaration
	what, reason, _ := strings.Cut(text, " -- ")
	words := strings.Fields(what)
	if len(words) < 3 || strings.TrimSpace(reason) == "" {
		return d, errors.New("a right is declared as " + prefix + "<role> <verbs> <resources> [names=…] [if=…] -- <reason>")
	}
	list := func(text string) []string { return strings.Split(text, ",") }
	d.roles, d.verbs, d.resources, d.reason = list(words[0]), list(words[1]), list(words[2]), strings.TrimSpace(reason)
	for _, word := range words[3:] {
		switch key, value, _ := strings.Cut(word, "="); key {
		case "names":
			d.names = list(value)
		case "if":
			d.condition = value
		default:
			return d, fmt.Errorf("%q is neither names= nor if=", word)
		}
	}
	return d, d.check()
}

// check refuses what no role may have, and what no chart knows.
func (d declaration) check() error {
	for _, role := range d.roles {
		if !slices.Contains(roles, role) {
			return fmt.Errorf("role %q is none of %q", role, roles)
		}
		if strings.HasPrefix(role, "distributor") && d.condition != "" {
			return fmt.Errorf("role %q belongs to no chart, and has no condition", role)
		}
	}
	for _, verb := range d.verbs {
		if !slices.Contains(verbOrder, verb) {
			return fmt.Errorf("verb %q is none of %q", verb, verbOrder)
		}
	}
	if slices.Contains(d.verbs, approve) && !d.isOfSigners() {
		return fmt.Errorf("verb %q is for %s names={signers} if=%s only", approve, signers, approve)
	}
	if d.condition != "" && conditions[d.condition] == "" {
		return fmt.Errorf("condition %q is none of the charts'", d.condition)
	}
	return d.checkWords()
}

// isOfSigners holds for a right about the signers that the chart's values name.
func (d declaration) isOfSigners() bool {
	return d.condition == approve && slices.Equal(d.resources, []string{signers}) && slices.Equal(d.names, []string{"{signers}"})
}

// checkWords refuses resources and names that name nothing.
func (d declaration) checkWords() error {
	for _, word := range slices.Concat(d.resources, d.names) {
		if word == "" || strings.Contains(word, "*") {
			return fmt.Errorf("%q names nothing", word)
		}
		if known := placeholders[word]; strings.HasPrefix(word, "{") && known == "" && listed[word] == "" {
			return fmt.Errorf("nothing is known of %s", word)
		}
	}
	return nil
}
