package rights

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// The limits are those of the schema, which does not check specs from git.
const (
	mostAccesses = 4
	mostRules    = 16
	longestName  = 40
	// longestSecretName is with the variable, as a version has it.
	longestSecretName = 150
	// longestSigner in bytes, as API servers have it.
	longestSigner    = 571
	shortestLifetime = time.Hour
	longestLifetime  = 720 * time.Hour
	// longestQuoted is how much of a wrong text is quoted.
	longestQuoted = 100
	// managedKubeconfig names the Secret of a hosted part, in the same namespace.
	managedKubeconfig = "managed-kubeconfig"
)

var (
	types     = []v1.AccessType{"", v1.AccessByToken, v1.AccessByCertificate}
	approvals = []v1.AccessApproval{"", v1.ApprovalAutomatic, v1.ApprovalManual}
	// signerForm is the form that API servers accept: a domain with a dot, and a name.
	signerForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+/` +
		`[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
)

// CheckVersion checks the hub access that a version requests (template.access), for catalogue.Read: its form, and that
// its rules are within the floor. Field is the path below the version.
func CheckVersion(version *v1.AddonVersion) (field string, err error) {
	if version.Template == nil {
		return "", nil
	}
	const of = "template.access"
	asked := version.Template.Access
	if len(asked) > mostAccesses {
		return of, fmt.Errorf("there are %d, at most %d are allowed", len(asked), mostAccesses)
	}
	for at := range asked {
		isSame := func(other v1.Access) bool { return other.Name == asked[at].Name }
		if slices.ContainsFunc(asked[:at], isSame) {
			return fmt.Sprintf("%s[%d].name", of, at), fmt.Errorf("another access is named %s", quoted(asked[at].Name))
		}
		secret := SecretName(installationMark, asked[at])
		if slices.ContainsFunc(asked[:at], func(other v1.Access) bool { return SecretName(installationMark, other) == secret }) {
			return fmt.Sprintf("%s[%d].secretName", of, at), fmt.Errorf("another access has Secret %s", quoted(secret))
		}
		if field, err := checkAccess(&asked[at]); err != nil {
			return fmt.Sprintf("%s[%d].%s", of, at, field), err
		}
	}
	return "", nil
}

// checkAccess checks one access. Field is the path below it.
func checkAccess(access *v1.Access) (field string, err error) {
	if field, err := checkForm(access); err != nil {
		return field, err
	}
	if field, err := checkFit(access); err != nil {
		return field, err
	}
	if _, _, err := Subject(*access, SubjectData{"a", "a", "a"}, true); err != nil {
		return "subject", err
	}
	return checkRules(access.Rules)
}

// checkForm checks each field alone.
func checkForm(access *v1.Access) (field string, err error) {
	switch {
	case len(access.Name) > longestName || len(validation.IsDNS1123Label(access.Name)) > 0:
		return "name", fmt.Errorf("%s is not a DNS label of at most %d characters", quoted(access.Name), longestName)
	case access.Name == managedKubeconfig:
		return "name", fmt.Errorf("%s is reserved for the kubeconfig of hosted parts", quoted(access.Name))
	case !slices.Contains(types, access.Type):
		return "type", fmt.Errorf("%s is neither Token nor Certificate", quoted(string(access.Type)))
	case !slices.Contains(approvals, access.Approval):
		return "approval", fmt.Errorf("%s is neither Automatic nor Manual", quoted(string(access.Approval)))
	case access.Lifetime != nil && (access.Lifetime.Duration < shortestLifetime || access.Lifetime.Duration > longestLifetime):
		return "lifetime", fmt.Errorf("it is %s: use 1h to 720h", access.Lifetime.Duration)
	case len(access.Rules) > mostRules:
		return "rules", fmt.Errorf("there are %d, at most %d are allowed", len(access.Rules), mostRules)
	}
	if err := checkSecretName(access.SecretName); err != nil {
		return "secretName", err
	}
	return "signerName", CheckSigner(access.SignerName)
}

// checkSecretName checks the name with an installation of one letter, and the length with the longest.
func checkSecretName(name string) error {
	if name == "" {
		return nil
	}
	longest := fill(name, strings.Repeat("a", longestInstallation))
	switch filled := fill(name, "a"); {
	case len(name) > longestSecretName, len(validation.IsDNS1123Subdomain(filled)) > 0, len(longest) > validation.DNS1123SubdomainMaxLength:
		return fmt.Errorf("%s is not the name of a Secret, with $(installation) as the only variable", quoted(name))
	case strings.HasSuffix(name, "-"+managedKubeconfig):
		return fmt.Errorf("%s is reserved for the kubeconfig of hosted parts", quoted(name))
	}
	return nil
}

// checkFit checks fields that depend on each other.
func checkFit(access *v1.Access) (field string, err error) {
	isCertificate := access.Type == v1.AccessByCertificate
	isForAPIServer := IsForAPIServer(*access)
	switch {
	case !isCertificate && access.SignerName != "":
		return "signerName", errors.New("it is allowed only with type Certificate: remove it")
	case !isCertificate && access.Approval != "":
		return "approval", errors.New("it is allowed only with type Certificate: remove it")
	case !isForAPIServer && len(access.Rules) > 0:
		return "rules", errNotForAPIServer
	case !isForAPIServer && access.Outbox:
		return "outbox", errNotForAPIServer
	}
	return "", nil
}

// IsForAPIServer says whether an access is for the hub's API server, as a token always is, or for another signer's use.
func IsForAPIServer(access v1.Access) bool {
	return TypeOf(access) == v1.AccessByToken || access.SignerName == "" || access.SignerName == v1.SignerAPIServer
}

// TypeOf returns the type of an access, with its default.
func TypeOf(access v1.Access) v1.AccessType { return cmp.Or(access.Type, v1.AccessByToken) }

// errNotForAPIServer refuses a field that has no effect with certificates of other signers.
var errNotForAPIServer = fmt.Errorf("remove it, or use signer %s, which is the default", v1.SignerAPIServer)

// CheckSigner refuses Kubernetes' own signers, except those for clients: their certificates are for servers or nodes, or
// have no defined purpose.
func CheckSigner(name string) error {
	domain, _, _ := strings.Cut(name, "/")
	switch {
	case name == "" || name == v1.SignerAPIServer:
		return nil
	case len(name) > longestSigner || !signerForm.MatchString(name):
		return fmt.Errorf("%s is not of the form <domain>/<name> in lower case", quoted(name))
	case domain == "kubernetes.io" || strings.HasSuffix(domain, ".kubernetes.io"):
		return fmt.Errorf("of Kubernetes' own signers only %s is allowed", v1.SignerAPIServer)
	}
	return nil
}
