package addon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/text"
)

// requestRecheck is when to try refused entries again, and those whose name was taken.
const requestRecheck = 5 * time.Minute

// request makes the installations that annotation initial-installations asks for, and removes their
// entries. Entries that can't be followed stay.
//
// An installation is made before its entry is removed, so none is lost. After a crash in between,
// the request's digest shows that it was made, so none is made twice. Entries are read past caches:
// a cache may still show a removed one.
func (r *Reconciler) request(ctx context.Context, f *facts) loop.Outcome {
	if f.cluster.Annotations[v1.AnnotationInitialInstallations] == "" {
		return nil
	}
	var refused refusals
	err := r.Finder.Annotate(ctx, f.cluster.Ref, func(annotations map[string]string) (err error) {
		refused, err = r.followEntries(ctx, f, annotations)
		return err
	})
	if apierrors.IsNotFound(err) || isTerminating(err) { // the Cluster or its namespace is gone
		return loop.Done{}
	}
	if err != nil {
		return retry(fmt.Errorf("following annotation %s: %w", v1.AnnotationInitialInstallations, err))
	}
	if len(refused.texts) == 0 {
		return nil
	}
	problems := strings.Join(refused.texts, "; ")
	if last, _ := r.reported.Get(f.asked); last != problems {
		r.reported.Put(f.asked, problems, repeatAfter)
		r.Recorder.Eventf(f.cluster.Object, nil, "Warning", v1.EventRequestRefused, "Request", "%s", text.Message(fmt.Sprintf(
			"annotation %s: %s; the rest was followed, this stays on: mend it or take it off", v1.AnnotationInitialInstallations, problems)))
	}
	return loop.Stalled{Condition: v1.ConditionReady, Reason: v1.EventRequestRefused, Message: problems, Recheck: refused.recheck}
}

// repeatAfter is when a refusal that stays is reported again: API servers keep events for an hour.
const repeatAfter = time.Hour

// refusals are the entries that can't be followed.
type refusals struct {
	// texts have the entries' numbers in what stays of the annotation.
	texts []string
	// recheck is when to try again; 0 where only an edit helps.
	recheck time.Duration
}

// followEntries makes the installations, and leaves other entries in the annotation.
func (r *Reconciler) followEntries(ctx context.Context, f *facts, annotations map[string]string) (refusals, error) {
	text := annotations[v1.AnnotationInitialInstallations]
	if text == "" {
		return refusals{}, nil
	}
	entries, unreadable := readRequests(text)
	if unreadable != "" {
		return refusals{texts: []string{unreadable}}, nil
	}
	var refused refusals
	var rest []json.RawMessage
	for _, entry := range entries {
		problem := entry.problem
		if problem == "" {
			err := r.install(ctx, f, &entry.request)
			refusal, isRefusal := errors.AsType[*refusedError](err)
			if err != nil && !isRefusal {
				return refusals{}, err
			}
			if !isRefusal {
				continue
			}
			problem, refused.recheck = refusal.Error(), requestRecheck
		}
		rest = append(rest, entry.raw)
		refused.texts = append(refused.texts, fmt.Sprintf("entry %d: %s", len(rest), problem))
	}
	return refused, setEntries(annotations, rest, len(entries))
}

// setEntries rewrites the annotation where it got shorter.
func setEntries(annotations map[string]string, rest []json.RawMessage, before int) error {
	switch {
	case len(rest) == 0:
		delete(annotations, v1.AnnotationInitialInstallations)
	case len(rest) < before:
		var text strings.Builder
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false) // ranges stay readable
		if err := encoder.Encode(rest); err != nil {
			return err
		}
		annotations[v1.AnnotationInitialInstallations] = strings.TrimSpace(text.String())
	}
	return nil
}

// refusedError says that an installation can't be made as it is asked for.
type refusedError struct{ name, problem string }

func (e *refusedError) Error() string {
	return fmt.Sprintf("AddonInstallation %q: %s", e.name, e.problem)
}

// install makes one installation. Errors: *refusedError, or a call that failed.
func (r *Reconciler) install(ctx context.Context, f *facts, wanted *request) error {
	made, err := wanted.installation(f.cluster.Ref, r.offers.templateOf(wanted.AddonRef))
	if err != nil {
		return &refusedError{f.cluster.NameOf(wanted.Name), "its values can't be written as JSON"}
	}
	err = r.Client.Create(ctx, made, client.FieldOwner(fieldOwner))
	switch {
	case err == nil:
		log.FromContext(ctx).Info("made an installation that the Cluster asks for", "installation", made.Name)
		return nil
	case apierrors.IsAlreadyExists(err):
		return r.checkExisting(ctx, made)
	case isTerminating(err):
		return err
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return &refusedError{made.Name, reasonOf(err)}
	}
	return fmt.Errorf("making AddonInstallation %q: %w", made.Name, err)
}

// checkExisting accepts what was made for this request before, and refuses what others made.
func (r *Reconciler) checkExisting(ctx context.Context, made *v1.AddonInstallation) error {
	have := &v1.AddonInstallation{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(made), have); err != nil {
		return fmt.Errorf("getting AddonInstallation %q: %w", made.Name, err)
	}
	if have.Annotations[v1.AnnotationRequest] == made.Annotations[v1.AnnotationRequest] {
		return nil
	}
	return &refusedError{made.Name, "there is one of that name already"}
}

// reasonOf describes an API server's refusal. Its text may quote values: only fields are named.
func reasonOf(err error) string {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return "the API server refuses it"
	}
	reason := fmt.Sprintf("the API server refuses it (%s)", answer.Status().Reason)
	details := answer.Status().Details
	if details == nil {
		return reason
	}
	var fields []string
	for _, cause := range details.Causes {
		if cause.Field != "" {
			fields = append(fields, cause.Field)
		}
	}
	if len(fields) == 0 {
		return reason
	}
	return reason + " because of " + text.Names(fields, mostNamed)
}
