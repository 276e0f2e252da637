package pages

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/target"
	"github.com/trellis-addons/trellis/pkg/serve/view/preview"
	"github.com/trellis-addons/trellis/pkg/values"
	"github.com/trellis-addons/trellis/pkg/web/form"
	"github.com/trellis-addons/trellis/pkg/web/upstream"
)

const resource = "addoninstallations"

// formView is the form of an installation, new or present.
type formView struct {
	Place *place
	Seed  string
	Addon string
	// Action is the path that the form is sent to, Back that of the page before.
	Action, Back string
	// Present is the installation that is changed; nil for a new one. Shown identifies its spec, as the page shows it.
	Present *v1.AddonInstallation
	Shown   string
	// Name, Target, Version and CreateNamespace are inputs.
	Name, Target, Version       string
	CreateNamespace, AllowLower bool
	Versions                    []choice
	Detail                      *upstream.Version
	Form                        *form.Form
	// Wrong are problems of inputs, by the path of the field.
	Wrong   map[string]string
	Problem *problem
	// Theirs are the values of an installation that changed meanwhile.
	Theirs    string
	IsChanged bool
	// Asked says that the page shows what the form would do.
	Asked   bool
	Preview *previewView
	// YAML and Command do the same as the button.
	YAML, Command string
	Warnings      []string
}

// install shows the form of a new installation, previews it, and creates it.
func (s *Site) install(v *visit) (*page, error) {
	seed, here, err := s.placeOf(v)
	if err != nil {
		return nil, err
	}
	addon := v.PathValue("addon")
	listing, err := s.listing(v, here)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(listing.Addons, func(one upstream.Addon) bool { return one.Name == addon })
	if at < 0 || len(listing.Addons[at].Versions) == 0 {
		return nil, missing("cluster " + here.Name + " is offered no version of add-on " + addon)
	}
	made := &formView{
		Place: here, Seed: seed.Name, Addon: addon, Action: v.URL.Path, Back: with(atAddon(addon), "in", here.key()),
		Name: v.form.Get("name"), Target: v.form.Get("target"), Version: v.form.Get("version"),
		CreateNamespace: v.form.Get("create") == "true" || v.Method == http.MethodGet, Wrong: map[string]string{},
	}
	if made.Name == "" {
		made.Name = here.ref().NameOf(addon)
	}
	if err := made.read(s, v, here, listing.Addons[at].Versions, ""); err != nil {
		return nil, err
	}
	object := made.object(here)
	made.describe(object)
	if v.Method == http.MethodGet || !made.Form.IsValid() {
		return made.page("Install "+addon, v), nil
	}
	write := upstream.Write{
		Object: upstream.Object{Resource: resource, Namespace: here.Namespace}, Method: http.MethodPost, Body: object,
		DryRun: v.form.Get("do") != "install",
	}
	made.Warnings, err = seed.API.Write(v.Context(), v.token(), write)
	switch {
	case err != nil:
		return made.refused("Install "+addon, v, err)
	case !write.DryRun:
		return &page{to: atInstallation(seed.Name, here.Namespace, object.Name)}, nil
	}
	made.Asked = true
	made.Preview = s.preview(v, seed, object)
	return made.page("Install "+addon, v), nil
}

func atAddon(name string) string { return at("catalogue", name) }

// read fills in the versions, the form and the sent values. Requested is what a present installation requests.
func (f *formView) read(s *Site, v *visit, here *place, versions []upstream.AddonVersion, requested string) error {
	newest := versions[0].Version
	f.Versions = append(f.Versions, choice{"", "Newest that fits (now " + newest + ")", f.Version == ""})
	known := f.Version == ""
	for _, one := range versions {
		label := one.Version
		if one.Deprecated != "" {
			label += " (deprecated)"
		}
		known = known || one.Version == f.Version
		f.Versions = append(f.Versions, choice{one.Version, label, one.Version == f.Version})
	}
	concrete := cmp.Or(f.Version, newest)
	if !known && f.Version == requested { // a range, or a version that fits no more
		f.Versions = append(f.Versions, choice{requested, requested + " (as before)", true})
		concrete = cmp.Or(f.Present.Status.Target, newest)
	} else if !known {
		return wrong("version " + f.Version + " is not offered to this cluster")
	}
	detail, err := s.version(v, here, f.Addon, concrete)
	if err != nil && !isHidden(err) {
		return err
	}
	f.Detail = &detail
	switch {
	case v.Method == http.MethodPost:
		f.Form = form.Posted(detail.FormSpec, v.form)
	case f.Present != nil:
		f.Form = form.Of(detail.FormSpec, valuesText(f.Present))
	default:
		f.Form = form.Of(detail.FormSpec, "")
	}
	return nil
}

// valuesText is the YAML of an installation's values.
func valuesText(of *v1.AddonInstallation) string {
	if of.Spec.Values == nil {
		return ""
	}
	read, err := values.Decode(of.Spec.Values.Raw)
	if err != nil {
		return ""
	}
	return form.YAML(read)
}

func (p *place) ref() target.Ref {
	ref := target.Ref{Kind: target.KindClusterAPI, Namespace: p.Namespace, Name: p.Name}
	if p.isKKP() {
		ref.Kind = target.KindKKP
	}
	return ref
}

// object is the installation that the form describes.
func (f *formView) object(here *place) *v1.AddonInstallation {
	made := &v1.AddonInstallation{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "AddonInstallation"},
		ObjectMeta: metav1.ObjectMeta{Namespace: here.Namespace, Name: f.Name},
	}
	made.Spec.AddonRef = v1.AddonReference{Name: v1.AddonName(f.Addon), Version: f.Version}
	made.Spec.TargetNamespace = f.Target
	made.Spec.CreateNamespace = f.CreateNamespace && f.Target != ""
	if !here.isKKP() {
		made.Spec.ClusterName = here.Name
	}
	made.Spec.Values = rawValues(f.Form.Values)
	return made
}

func rawValues(of map[string]any) *runtime.RawExtension {
	if len(of) == 0 {
		return nil
	}
	encoded, err := json.Marshal(of)
	if err != nil {
		return nil // they came from YAML
	}
	return &runtime.RawExtension{Raw: encoded}
}

// describe makes the YAML and the command that do the same.
func (f *formView) describe(object *v1.AddonInstallation) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return // our own types always convert
	}
	f.YAML = manifest(content)
	named := f.Addon
	if f.Version != "" {
		named += "@" + f.Version
	}
	words := []string{"kubectl", "addons", "install", named, "--cluster", f.Place.Namespace + "/" + f.Place.Name, "--name", object.Name}
	if f.Present != nil {
		words = []string{"kubectl", "addons", "upgrade", object.Name, "--namespace", object.Namespace, "--version", f.Version, "--reset-values"}
		if f.AllowLower {
			words = append(words, "--allow-downgrade")
		}
	} else if object.Spec.TargetNamespace != "" {
		words = append(words, "--target-namespace", object.Spec.TargetNamespace)
		if object.Spec.CreateNamespace {
			words = append(words, "--create-namespace")
		}
	}
	f.Command = command(words...)
	if text := strings.TrimSpace(f.Form.YAML); text != "" {
		f.Command += " --values values.yaml"
	}
}

// manifest is the YAML of an object without what an API server adds.
func manifest(content map[string]any) string {
	delete(content, "status")
	if metadata, isMap := content["metadata"].(map[string]any); isMap {
		for _, field := range []string{"managedFields", "uid", "resourceVersion", "generation", "creationTimestamp"} {
			delete(metadata, field)
		}
	}
	if spec, isMap := content["spec"].(map[string]any); isMap && spec["coreAddon"] == false {
		delete(spec, "coreAddon")
	}
	text, err := yaml.Marshal(content)
	if err != nil {
		return ""
	}
	return string(text)
}

// command is a line for a shell.
func command(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = word
		if word == "" || strings.ContainsFunc(word, func(r rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./@:=,+", r)
		}) {
			quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}

// page is the form's page. Its status says whether an input has to be corrected.
func (f *formView) page(title string, v *visit) *page {
	made := &page{template: "form", title: title, data: f, status: http.StatusOK}
	if do := v.form.Get("do"); (do == "install" || do == "save") && (!f.Form.IsValid() || f.Problem != nil) {
		made.status = http.StatusUnprocessableEntity
	}
	return made
}

// refused shows a refusal of the API server with the form as it was sent: at the inputs that it names.
func (f *formView) refused(title string, v *visit, err error) (*page, error) {
	if upstream.Is(err, http.StatusUnauthorized) {
		return nil, err
	}
	f.Problem = problemOf(err)
	if refused, is := errors.AsType[*upstream.RefusedError](err); is {
		for _, one := range refused.Causes {
			f.Wrong[one.Field] = one.Message
		}
	}
	return f.page(title, v), nil
}

// previewView is what an installation would become.
type previewView struct {
	preview.Preview
	Problem *problem
	Lines   []previewLine
	Text    string
	Notes   []string
	// IsWhole shows objects that stay the same, and values, too.
	IsWhole bool
}

// previewLine is an object that the next revision has or removes.
type previewLine struct {
	preview.Object
	Title string
}

// preview asks what an installation would become. It does not wait: a pending preview is asked for again.
func (s *Site) preview(v *visit, seed *upstream.Seed, object *v1.AddonInstallation) *previewView {
	found, err := seed.Preview(v.Context(), v.token(), object)
	if err != nil {
		return &previewView{Problem: problemOf(err)}
	}
	made := &previewView{Preview: found, Text: found.Summary(), Notes: found.Notes()}
	for _, one := range found.Objects {
		title := one.Kind + " " + one.Name
		if one.Namespace != "" {
			title = one.Kind + " " + one.Namespace + "/" + one.Name
		}
		made.Lines = append(made.Lines, previewLine{one, title})
	}
	return made
}

// edit shows the form of a present installation, previews a change, and writes it.
func (s *Site) edit(v *visit) (*page, error) {
	seed, present, err := s.read(v)
	if err != nil {
		return nil, err
	}
	here, err := s.findCluster(v, seed, present.Namespace, clusterOf(present))
	if err != nil {
		return nil, err
	}
	made := &formView{
		Place: here, Seed: seed.Name, Addon: string(present.Spec.AddonRef.Name), Action: v.URL.Path,
		Back: atInstallation(seed.Name, present.Namespace, present.Name), Present: present, Shown: shownAs(present.Generation),
		Name: present.Name, Target: present.Spec.TargetNamespace, Version: present.Spec.AddonRef.Version, Wrong: map[string]string{},
		AllowLower: present.Annotations[v1.AnnotationAllowDowngrade] == "true",
	}
	if to := v.form.Get("to"); to != "" && v.Method == http.MethodGet {
		made.Version = to
	}
	if v.Method == http.MethodPost {
		made.Version, made.AllowLower = v.form.Get("version"), v.form.Get("lower") == "true"
	}
	versions, err := s.versionsFor(v, here, present)
	if err != nil {
		return nil, err
	}
	if err := made.read(s, v, here, versions, present.Spec.AddonRef.Version); err != nil {
		return nil, err
	}
	title := "Change " + present.Name
	next := made.changed()
	made.describe(next)
	if v.Method == http.MethodGet || !made.Form.IsValid() {
		return made.page(title, v), nil
	}
	if v.form.Get("shown") != made.Shown && v.form.Get("do") == "save" {
		made.IsChanged, made.Theirs, made.Problem = true, valuesText(present), changedProblem("installation")
		shown := made.page(title, v)
		shown.status = http.StatusConflict
		return shown, nil
	}
	return s.save(v, seed, made, next, title)
}

// save checks the change of a present installation, or writes it.
func (s *Site) save(v *visit, seed *upstream.Seed, made *formView, next *v1.AddonInstallation, title string) (*page, error) {
	operations, isSaving := made.operations(next), v.form.Get("do") == "save"
	if len(operations) == 0 && isSaving {
		made.Problem = problem1("Nothing changes", "the installation has this version and these values")
		return made.page(title, v), nil
	}
	made.Asked = true
	if len(operations) > 0 {
		var err error
		made.Warnings, err = seed.API.Write(v.Context(), v.token(), upstream.Write{
			Object: objectOf(made.Present), Method: http.MethodPatch, DryRun: !isSaving,
			Body: preconditioned(made.Present.Generation, operations),
		})
		if err != nil {
			return made.refused(title, v, err)
		}
	}
	if isSaving {
		return &page{to: made.Back}, nil
	}
	made.Preview = s.preview(v, seed, next)
	return made.page(title, v), nil
}

// versionsFor are the versions that the cluster of an installation is offered, or else the present one.
func (s *Site) versionsFor(v *visit, here *place, present *v1.AddonInstallation) ([]upstream.AddonVersion, error) {
	listing, err := s.listing(v, here)
	if err != nil && !isHidden(err) {
		return nil, err
	}
	for _, one := range listing.Addons {
		if one.Name == string(present.Spec.AddonRef.Name) && len(one.Versions) > 0 {
			return one.Versions, nil
		}
	}
	return []upstream.AddonVersion{{Version: cmp.Or(present.Status.Target, present.Status.Version, present.Spec.AddonRef.Version)}}, nil
}

// changed is the present installation with the changes of the form.
func (f *formView) changed() *v1.AddonInstallation {
	next := f.Present.DeepCopy()
	next.TypeMeta = metav1.TypeMeta{APIVersion: v1.GroupVersion.String(), Kind: "AddonInstallation"}
	if next.Spec.AddonRef.Version != f.Version {
		next.Spec.AddonRef.Version, next.Spec.AddonRef.Digest = f.Version, "" // the digest pins content of the version before
	}
	next.Spec.Values = rawValues(f.Form.Values)
	if f.AllowLower {
		if next.Annotations == nil {
			next.Annotations = map[string]string{}
		}
		next.Annotations[v1.AnnotationAllowDowngrade] = "true"
	} else {
		delete(next.Annotations, v1.AnnotationAllowDowngrade)
	}
	return next
}

// operations are those of a JSON patch, which can also write null values.
func (f *formView) operations(next *v1.AddonInstallation) (all []operation) {
	before := f.Present
	if old, now := before.Spec.AddonRef, next.Spec.AddonRef; old.Version != now.Version {
		all = append(all, setOrRemove("/spec/addonRef/version", now.Version, now.Version == ""))
		if old.Digest != "" {
			all = append(all, operation{"op": "remove", "path": "/spec/addonRef/digest"})
		}
	}
	if valuesText(before) != valuesText(next) {
		all = append(all, setOrRemove("/spec/values", next.Spec.Values, next.Spec.Values == nil))
	}
	if _, was := before.Annotations[v1.AnnotationAllowDowngrade]; was != f.AllowLower {
		all = append(all, annotating(before, v1.AnnotationAllowDowngrade, "true", !f.AllowLower)...)
	}
	return all
}
