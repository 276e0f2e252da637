package upstream

import (
	"context"
	"net/http"
	"net/url"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

const (
	// fieldManager owns the fields that pages write.
	fieldManager = "trellis-web"
	// mostName is how many bytes of a user's name are shown and kept.
	mostName = 256
)

// Object names an object of our kinds on an API server. Without a name it is the collection.
type Object struct {
	// Resource such as addoninstallations.
	Resource, Namespace, Name string
}

func (o Object) path() []string {
	path := []string{"apis", v1.GroupVersion.Group, v1.GroupVersion.Version, "namespaces", o.Namespace, o.Resource}
	if o.Name != "" {
		path = append(path, o.Name)
	}
	return path
}

// Get reads an object, or lists a collection.
func (t *Target) Get(ctx context.Context, token string, object Object, query url.Values, into any) error {
	return t.ask(ctx, token, Request{Path: object.path(), Query: query}, into)
}

// Write is one change of an object.
type Write struct {
	Object
	// Method is POST, PUT, PATCH or DELETE.
	Method string
	// Body of the method: an object, operations of a JSON patch, or options of a deletion.
	Body any
	// DryRun has admission check the change, and changes nothing.
	DryRun bool
}

// Write changes an object, and never a collection. It returns the warnings of admission.
func (t *Target) Write(ctx context.Context, token string, write Write) (warnings []string, err error) {
	if write.Name == "" && write.Method != http.MethodPost {
		return nil, &RefusedError{Name: t.Name, Status: http.StatusNotFound, Message: "the object has no name"}
	}
	request := Request{Method: write.Method, Path: write.path(), Body: write.Body, Query: url.Values{}}
	switch write.Method {
	case http.MethodPatch:
		request.Type = string(types.JSONPatchType)
		fallthrough
	case http.MethodPost, http.MethodPut:
		request.Query.Set("fieldManager", fieldManager)
		request.Query.Set("fieldValidation", metav1.FieldValidationStrict)
	}
	if write.DryRun {
		request.Query.Set("dryRun", metav1.DryRunAll)
	}
	answer, err := t.Call(ctx, token, request)
	if err != nil {
		return nil, err
	}
	return answer.Warnings, nil
}

// WhoAmI is the name of the token's user.
func (t *Target) WhoAmI(ctx context.Context, token string) (string, error) {
	var review struct {
		Status struct {
			UserInfo struct {
				Username string `json:"username"`
			} `json:"userInfo"`
		} `json:"status"`
	}
	body := map[string]string{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	err := t.ask(ctx, token, Request{
		Method: http.MethodPost, Path: []string{"apis", "authentication.k8s.io", "v1", "selfsubjectreviews"}, Body: body, Owner: "logins",
	}, &review)
	return text.Cut(text.Line(review.Status.UserInfo.Username), mostName), err
}

// Rights are what a user may do in one namespace.
type Rights struct {
	rules []authorizationv1.ResourceRule
	// incomplete says that there may be more rights. Then all actions are offered, and the API server decides.
	incomplete bool
}

// Rights reviews what the user may do in a namespace. If they can't be reviewed, they are incomplete.
func (t *Target) Rights(ctx context.Context, token, namespace string) Rights {
	review := authorizationv1.SelfSubjectRulesReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SelfSubjectRulesReview"},
		Spec:     authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	err := t.ask(ctx, token, Request{
		Method: http.MethodPost, Path: []string{"apis", "authorization.k8s.io", "v1", "selfsubjectrulesreviews"}, Body: review,
	}, &review)
	return Rights{review.Status.ResourceRules, err != nil || review.Status.Incomplete}
}

// May says whether the user may use a verb on an object of ours.
func (r Rights) May(verb, resource, name string) bool {
	if r.incomplete {
		return true
	}
	for _, rule := range r.rules {
		if has(rule.Verbs, verb) && has(rule.APIGroups, v1.GroupVersion.Group) && has(rule.Resources, resource) &&
			(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, name)) {
			return true
		}
	}
	return false
}

func has(all []string, one string) bool {
	return slices.Contains(all, one) || slices.Contains(all, "*")
}

// AllRights may do everything, as far as pages know.
var AllRights = Rights{incomplete: true}

// Events lists events of a namespace.
func (t *Target) Events(ctx context.Context, token, namespace string, query url.Values, into any) error {
	path := []string{"apis", "events.k8s.io", "v1", "namespaces", namespace, "events"}
	return t.ask(ctx, token, Request{Path: path, Query: query}, into)
}
