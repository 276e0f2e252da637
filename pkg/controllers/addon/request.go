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
	"github.com/trellis-addons/trellis/pkg/base/loop"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// requestRecheck is the delay before refused entries, and those whose name was taken, are tried again.
const requestRecheck = 5 * time.Minute

// request creates the installations that annotation initial-installations requests, and removes their entries.
// Entries that can't be carried out stay.
//
// An installation is created before its entry is removed, so none is lost. After a crash in between, the request's
// digest shows that it was created, so none is created twice. Entries are read past caches: a cache may still show a
// removed one.
func (r *Reconciler) request(ctx context.Context, f *facts) *loop.Outcome {
	if f.cluster.Annotations[v1.AnnotationInitialInstallations] == "" {
		return nil
	}
	var refused refusals
	err := r.Finder.Annotate(ctx, f.cluster.Ref, func(annotations map[string]string) (err error) {
		refused, err = r.followEntries(ctx, f, annotations)
		return err
	})
	if apierrors.IsNotFound(err) || isTerminating(err) { // the Cluster or its namespace was deleted
		return &loop.Outcome{Kind: loop.Done}
	}
	if err != nil {
		return retry(fmt.Errorf("creating the installations of annotation %s: %w", v1.AnnotationInitialInstallations, err))
	}
	if len(refused.texts) == 0 {
		return nil
	}
	problems := strings.Join(refused.texts, "; ")
	if last, _ := r.reported.Get(f.asked); last != problems {
		r.reported.Put(f.asked, problems, repeatAfter)
		r.Recorder.Eventf(f.cluster.Object, nil, "Warning", v1.EventRequestRefused, "Request", "%s", text.Message(fmt.Sprintf(
			"annotation %s: %s; the other entries were processed; the annotation stays until you correct or remove it",
			v1.AnnotationInitialInstallations, problems)))
	}
	outcome := loop.Stall(v1.ConditionReady, v1.EventRequestRefused, problems)
	outcome.Recheck = refused.recheck
	return outcome
}

// repeatAfter is when an unchanged refusal is reported again: API servers keep events for an hour.
const repeatAfter = time.Hour

// refusals are the entries that can't be carried out.
type refusals struct {
	// texts have the entries' numbers in the remaining annotation.
	texts []string
	// recheck is the delay until the next try; 0 if only an edit helps.
	recheck time.Duration
}

// followEntries creates the installations, and leaves other entries in the annotation.
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

// setEntries rewrites the annotation if it got shorter.
func setEntries(annotations map[string]string, rest []json.RawMessage, before int) error {
	switch {
	case len(rest) == 0:
		delete(annotations, v1.AnnotationInitialInstallations)
	case len(rest) < before:
		var text strings.Builder
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false) // so that ranges stay readable
		if err := encoder.Encode(rest); err != nil {
			return err
		}
		annotations[v1.AnnotationInitialInstallations] = strings.TrimSpace(text.String())
	}
	return nil
}

// refusedError says that an installation can't be created as requested.
type refusedError struct{ name, problem string }

func (e *refusedError) Error() string {
	return fmt.Sprintf("AddonInstallation %q: %s", e.name, e.problem)
}

// install creates one installation. Errors: *refusedError, or those of a failed call.
func (r *Reconciler) install(ctx context.Context, f *facts, wanted *request) error {
	made, err := wanted.installation(f.cluster.Ref, r.offers.templateOf(wanted.AddonRef))
	if err != nil {
		return &refusedError{f.cluster.NameOf(wanted.Name), "its values can't be written as JSON"}
	}
	err = r.Client.Create(ctx, made, client.FieldOwner(fieldOwner))
	switch {
	case err == nil:
		log.FromContext(ctx).Info("created an installation that the Cluster requests", "installation", made.Name)
		return nil
	case apierrors.IsAlreadyExists(err):
		return r.checkExisting(ctx, made)
	case isTerminating(err):
		return err
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return &refusedError{made.Name, reasonOf(err)}
	}
	return fmt.Errorf("creating AddonInstallation %q: %w", made.Name, err)
}

// checkExisting accepts an installation that was created for this request before, and refuses a foreign one.
func (r *Reconciler) checkExisting(ctx context.Context, made *v1.AddonInstallation) error {
	have := &v1.AddonInstallation{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(made), have); err != nil {
		return fmt.Errorf("getting AddonInstallation %q: %w", made.Name, err)
	}
	if have.Annotations[v1.AnnotationRequest] == made.Annotations[v1.AnnotationRequest] {
		return nil
	}
	return &refusedError{made.Name, "an installation with that name exists already"}
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
