package cli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
)

// Wait are flags --wait and --timeout.
type Wait struct {
	waits   bool
	timeout time.Duration
}

const defaultTimeout = 5 * time.Minute

// Flags adds the flags to a command. Until completes "wait until …".
func (w *Wait) Flags(command *cobra.Command, until string) {
	command.Flags().BoolVar(&w.waits, "wait", false, "wait until "+until+", and print each changed step")
	command.Flags().DurationVar(&w.timeout, "timeout", defaultTimeout, "longest time to wait")
}

// Check refuses a time that is none. Errors: ExitUsage.
func (w *Wait) Check() error {
	if w.timeout <= 0 {
		return Fail(ExitUsage, "write it like 5m", "--timeout %s is not above zero", w.timeout)
	}
	return nil
}

// Ready waits, if --wait is set, until an installation is Ready with the generation of the given state, and prints each
// changed step. It uses a watch. Errors: ExitTimeout with the last reason, ExitNo if the caller ends it or the installation is deleted.
func (w *Wait) Ready(ctx context.Context, t *Tool, seed *Platform, from *v1.AddonInstallation) error {
	var version string
	err := w.until(ctx, t, seed, from, goal{"Ready", func(now *v1.AddonInstallation) (bool, error) {
		if now == nil || now.DeletionTimestamp != nil && from.DeletionTimestamp == nil {
			return false, Fail(ExitNo, "", "installation %q was deleted in the meantime", from.Name)
		}
		ready := meta.FindStatusCondition(now.Status.Conditions, v1.ConditionReady)
		version = now.Status.Version
		return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration >= from.Generation &&
			now.Status.ObservedGeneration >= from.Generation, nil
	}})
	if w.waits && err == nil {
		t.Done(from, "is ready: version "+cmp.Or(version, "unknown"))
	}
	return err
}

// Gone waits until an installation no longer exists, as Ready does.
func (w *Wait) Gone(ctx context.Context, t *Tool, seed *Platform, from *v1.AddonInstallation) error {
	err := w.until(ctx, t, seed, from, goal{"gone", func(now *v1.AddonInstallation) (bool, error) { return now == nil, nil }})
	if w.waits && err == nil {
		t.Done(from, "is gone")
	}
	return err
}

// goal is what is waited for. It is asked with each state of an installation, nil once it is gone or recreated.
type goal struct {
	name      string
	isReached func(*v1.AddonInstallation) (bool, error)
}

// until follows an installation until it reaches a goal.
func (w *Wait) until(ctx context.Context, t *Tool, seed *Platform, from *v1.AddonInstallation, until goal) error {
	if !w.waits {
		return nil
	}
	limited, stop := context.WithTimeout(ctx, w.timeout)
	defer stop()
	shown, last := steps{}, ""
	shown.changed(from)
	err := seed.follow(limited, from, func(now *v1.AddonInstallation) (bool, error) {
		if now != nil {
			for _, line := range shown.changed(now) {
				t.Note("%s", line)
			}
			last = lastOf(now)
		}
		return until.isReached(now)
	})
	hint := fmt.Sprintf("Trellis continues the work: `kubectl addons list -n %s` shows it", from.Namespace)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return Fail(ExitNo, hint, "stopped waiting for installation %q", from.Name)
	case limited.Err() != nil:
		return Fail(ExitTimeout, hint, "installation %q is not %s after %s%s", from.Name, until.name, w.timeout, last)
	}
	return err
}

// lastOf is the reason and the message of Ready, for the end of an error.
func lastOf(one *v1.AddonInstallation) string {
	ready := meta.FindStatusCondition(one.Status.Conditions, v1.ConditionReady)
	if ready == nil {
		return ", and has no condition yet: is the seed's manager running?"
	}
	return fmt.Sprintf(": %s: %s", ready.Reason, ready.Message)
}

// steps are the conditions that were shown, by type.
type steps map[string]string

// changed are lines for the conditions that differ from what was shown. Ready repeats another one, unless it is alone.
func (s steps) changed(one *v1.AddonInstallation) (lines []string) {
	reasons := map[string]bool{}
	for _, condition := range one.Status.Conditions {
		if condition.Type != v1.ConditionReady {
			reasons[condition.Reason] = true
		}
	}
	for _, condition := range one.Status.Conditions {
		line := fmt.Sprintf("%s %s: %s %s", condition.Type, condition.Status, condition.Reason, condition.Message)
		if s[condition.Type] == line || condition.Type == v1.ConditionReady && reasons[condition.Reason] {
			continue
		}
		s[condition.Type] = line
		lines = append(lines, line)
	}
	return lines
}

// pauseAfterBreak is the time before a broken watch begins again.
const pauseAfterBreak = time.Second

// follow calls look with each state of an installation until look has seen enough. A watch that breaks begins again.
func (p *Platform) follow(ctx context.Context, of *v1.AddonInstallation, look func(*v1.AddonInstallation) (bool, error)) error {
	for {
		isDone, looked, err := p.followOnce(ctx, of, look)
		if isDone || looked != nil {
			return looked
		}
		if err != nil && exitCode(err) == ExitForbidden {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pauseAfterBreak):
		}
	}
}

// followOnce lists the installation and watches it. The error looked is that of look; err ended the watch.
func (p *Platform) followOnce(
	ctx context.Context, of *v1.AddonInstallation, look func(*v1.AddonInstallation) (bool, error),
) (isDone bool, looked, err error) {
	only := []client.ListOption{client.InNamespace(of.Namespace), client.MatchingFields{"metadata.name": of.Name}}
	var listed v1.AddonInstallationList
	if err := p.List(ctx, &listed, only...); err != nil {
		return false, nil, err
	}
	var now *v1.AddonInstallation
	if len(listed.Items) > 0 {
		now = sameOrNil(&listed.Items[0], of.UID)
	}
	if isDone, looked = look(now); isDone || looked != nil {
		return isDone, looked, nil
	}
	only = append(only, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: listed.ResourceVersion}})
	events, err := p.Watch(ctx, &v1.AddonInstallationList{}, only...)
	if err != nil {
		return false, nil, err
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		switch changed := event.Object.(type) {
		case *v1.AddonInstallation:
			now = sameOrNil(changed, of.UID)
			if event.Type == watch.Deleted {
				now = nil
			}
			if isDone, looked = look(now); isDone || looked != nil {
				return isDone, looked, nil
			}
		default:
			return false, nil, apierrors.FromObject(event.Object)
		}
	}
	return false, nil, ctx.Err()
}

// sameOrNil is an installation, or nil if another one has taken its name.
func sameOrNil(now *v1.AddonInstallation, uid types.UID) *v1.AddonInstallation {
	if now.UID != uid {
		return nil
	}
	return now
}
