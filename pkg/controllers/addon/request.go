package addon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/loop"
	"github.com/trellis-addons/trellis/pkg/target"
	"github.com/trellis-addons/trellis/pkg/text"
)

const (
	// requestRecheck is when entries are tried again that the API server refused, or whose name was taken.
	requestRecheck = 5 * time.Minute
	// pointRequested is between making installations and taking their entries off the Cluster.
	pointRequested = "request-made"
)

// request makes the installations that annotation initial-installations asks for, and takes their entries off. Entries that
// can't be followed stay on.
//
// An installation is made before its entry goes, so none is lost. A process that dies in between finds the entry again,
// and what it made by the request's digest, so none is made twice. Entries are read past caches: one that was taken off
// does not come back because the cache still shows it.
func (r *Reconciler) request(ctx context.Context, f *facts) loop.Outcome {
	if f.cluster.Annotations[v1.AnnotationInitialInstallations] == "" {
		return nil
	}
	var refused refusals
	err := r.Finder.Annotate(ctx, f.cluster.Ref, func(annotations map[string]string) (err error) {
		refused, err = r.fulfil(ctx, f, annotations)
		return err
	})
	if apierrors.IsNotFound(err) || isGoing(err) { // The Cluster or its namespace went meanwhile.
		return loop.Done{}
	}
	if err != nil {
		return retry(fmt.Errorf("following annotation %s: %w", v1.AnnotationInitialInstallations, err))
	}
	if len(refused.texts) == 0 {
		return nil
	}
	problems := strings.Join(refused.texts, "; ")
	if r.refused.isNews(f.asked, problems, time.Now()) {
		r.Recorder.Eventf(f.cluster.Object, nil, "Warning", v1.EventRequestRefused, "Request", "%s", text.Message(fmt.Sprintf(
			"annotation %s: %s; the rest was followed, this stays on: mend it or take it off", v1.AnnotationInitialInstallations, problems)))
	}
	return loop.Stalled{Condition: v1.ConditionReady, Reason: v1.EventRequestRefused, Message: problems, Recheck: refused.recheck}
}

// retold is when a refusal that stays is told again. API servers keep events for an hour.
const retold = time.Hour

// refusalsTold are what was told last of clusters whose requests are refused. A pass has many causes, our own writes
// among them, and a refusal is no news in each.
type refusalsTold struct {
	mutex sync.Mutex
	last  map[target.Ref]refusalTold
}

type refusalTold struct {
	text string
	at   time.Time
}

func (t *refusalsTold) isNews(asked target.Ref, text string, now time.Time) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if last := t.last[asked]; last.text == text && now.Sub(last.at) < retold {
		return false
	}
	if t.last == nil {
		t.last = map[target.Ref]refusalTold{}
	}
	t.last[asked] = refusalTold{text, now}
	return true
}

// forget drops what was told of a cluster unless a pass over it ended with a refusal.
func (t *refusalsTold) forget(asked target.Ref, outcome loop.Outcome) {
	if stalled, ok := outcome.(loop.Stalled); ok && stalled.Reason == v1.EventRequestRefused {
		return
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	delete(t.last, asked)
}

// refusals are the entries that can't be followed.
type refusals struct {
	// texts number the entries as they are in what stays of the annotation.
	texts []string
	// recheck is when it is worth a try again; 0 where only an edit helps.
	recheck time.Duration
}

// fulfil follows the entries and leaves those in the annotation that can't be followed.
func (r *Reconciler) fulfil(ctx context.Context, f *facts, annotations map[string]string) (refusals, error) {
	text := annotations[v1.AnnotationInitialInstallations]
	if text == "" {
		return refusals{}, nil
	}
	entries, unreadable := readRequests(text)
	if unreadable != "" {
		return refusals{texts: []string{unreadable}}, nil
	}
	var refused refusals
	var kept []json.RawMessage
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
		kept = append(kept, entry.raw)
		refused.texts = append(refused.texts, fmt.Sprintf("entry %d: %s", len(kept), problem))
	}
	if len(kept) < len(entries) {
		r.Options.FaultPoint(pointRequested)
	}
	return refused, keep(annotations, kept, len(entries))
}

// keep rewrites the annotation where it got shorter; one that is kept whole stays as written.
func keep(annotations map[string]string, kept []json.RawMessage, before int) error {
	switch {
	case len(kept) == 0:
		delete(annotations, v1.AnnotationInitialInstallations)
	case len(kept) < before:
		var text strings.Builder
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false) // ranges stay readable
		if err := encoder.Encode(kept); err != nil {
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
	made, err := wanted.installation(f.cluster.Namespace, f.cluster.UID)
	if err != nil {
		return &refusedError{wanted.Name, "its values can't be written as JSON"}
	}
	err = r.Client.Create(ctx, made, client.FieldOwner(fieldOwner))
	switch {
	case err == nil:
		log.FromContext(ctx).Info("made an installation that the Cluster asks for", "installation", wanted.Name)
		return nil
	case apierrors.IsAlreadyExists(err):
		return r.seeWhoseItIs(ctx, made)
	case isGoing(err):
		return err
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return &refusedError{wanted.Name, reasonOf(err)}
	}
	return fmt.Errorf("making AddonInstallation %q: %w", wanted.Name, err)
}

// seeWhoseItIs tells what was made for this request before from what somebody else made.
func (r *Reconciler) seeWhoseItIs(ctx context.Context, made *v1.AddonInstallation) error {
	have := &v1.AddonInstallation{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(made), have); err != nil {
		return fmt.Errorf("getting AddonInstallation %q: %w", made.Name, err)
	}
	if have.Annotations[v1.AnnotationRequest] == made.Annotations[v1.AnnotationRequest] {
		return nil
	}
	return &refusedError{made.Name, "there is one of that name already"}
}

// reasonOf puts a refusal of the API server into words. Its own may quote values, so only the fields are named.
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
