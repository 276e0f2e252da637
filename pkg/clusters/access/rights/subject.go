package rights

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

const (
	mostGroups = 8
	// longestSubject is the limit for the user and for each group, in bytes.
	longestSubject = 256
	// ofAddon begins the texts that add-ons of Custom catalogues may have.
	ofAddon = "$(addon):"
)

var (
	// subjectForm leaves out blanks and control characters, and what a shell or a distinguished name reads as syntax.
	subjectForm = regexp.MustCompile(`^[-A-Za-z0-9:._/@]+$`)
	// builtInSubjects begin users and groups that API servers or kubeadm give rights to.
	builtInSubjects = []string{"system:", "kubeadm:"}
)

// SubjectData replaces the variables in the subject of a certificate.
type SubjectData struct{ Addon, Cluster, Namespace string }

func (d SubjectData) fill(name string) string {
	return strings.NewReplacer("$(addon)", d.Addon, "$(cluster)", d.Cluster, "$(namespace)", d.Namespace).Replace(name)
}

// Subject is the subject that an access asks for; an empty user if it asks for none. The certificate is for another
// server than the hub, which may trust the same authority: so it never has a user or group with built-in rights. An
// add-on of a Custom catalogue can't name the subject of another add-on.
func Subject(access v1.Access, data SubjectData, isCore bool) (user string, groups []string, err error) {
	asked := access.Subject
	if asked == nil {
		return "", nil, nil
	}
	if IsForAPIServer(access) {
		return "", nil, fmt.Errorf("set a signerName other than %s, which issues certificates only for the user that Trellis "+
			"grants rights to", v1.SignerAPIServer)
	}
	if len(asked.Groups) > mostGroups {
		return "", nil, fmt.Errorf("there are %d groups, at most %d are allowed", len(asked.Groups), mostGroups)
	}
	for _, name := range append([]string{asked.User}, asked.Groups...) {
		if !isCore && !strings.HasPrefix(name, ofAddon) {
			return "", nil, fmt.Errorf("%s does not begin with %s, which add-ons of Custom catalogues require", quoted(name), ofAddon)
		}
		filled := data.fill(name)
		if err := checkSubject(filled); err != nil {
			return "", nil, err
		}
		groups = append(groups, filled)
	}
	return groups[0], groups[1:], nil
}

func checkSubject(name string) error {
	isBuiltIn := func(prefix string) bool { return strings.HasPrefix(strings.ToLower(name), prefix) }
	switch {
	case name == "":
		return errors.New("a user or group is empty")
	case len(name) > longestSubject:
		return fmt.Errorf("%s has %d bytes, at most %d are allowed", quoted(name), len(name), longestSubject)
	case !subjectForm.MatchString(name):
		return fmt.Errorf("%s has characters other than letters, digits and :._/@-, or an unknown variable", quoted(name))
	case slices.ContainsFunc(builtInSubjects, isBuiltIn):
		return fmt.Errorf("%s begins with %s, which is reserved for users and groups with built-in rights", quoted(name),
			strings.Join(builtInSubjects, " or "))
	}
	return nil
}
