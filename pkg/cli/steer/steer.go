// Package steer has the verbs that set one field or annotation of an installation: pause, resume, reconcile, approve and
// adopt.
package steer

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/cli"
	"github.com/trellis-addons/trellis/pkg/serve/view"
)

// Pause makes the command that stops the work on an installation.
func Pause(tool *cli.Tool) *cobra.Command {
	return pausing(tool, true, &cobra.Command{
		Use: "pause NAME", Short: "Pause an installation: Trellis does nothing for it except its removal",
		Example: "  kubectl addons pause prometheus --cluster 47s2ddlfgj",
	})
}

// Resume makes the command that continues it.
func Resume(tool *cli.Tool) *cobra.Command {
	return pausing(tool, false, &cobra.Command{
		Use: "resume NAME", Short: "Resume a paused installation",
		Example: "  kubectl addons resume prometheus --cluster 47s2ddlfgj",
	})
}

func pausing(tool *cli.Tool, paused bool, command *cobra.Command) *cobra.Command {
	done, already := "resumed", "unchanged: it was not paused"
	if paused {
		done, already = "paused", "unchanged: it is paused already"
	}
	return tool.Changes(command, func(ctx context.Context, seed *cli.Platform, one *v1.AddonInstallation) error {
		if one.Spec.CoreAddon { // sets allow it
			return cli.CheckOwned(one, done)
		}
		if one.Spec.Paused == paused {
			tool.Done(one, already)
			return nil
		}
		return tool.Patch(ctx, seed, one, cli.Setting("paused", paused), done)
	})
}

// Reconcile makes the command that has an installation reconciled at once.
func Reconcile(tool *cli.Tool) *cobra.Command {
	var wait cli.Wait
	command := &cobra.Command{
		Use: "reconcile NAME", Short: "Reconcile an installation now, without caches and delays",
		Long: "Reconcile an installation now, without caches and delays, by annotation reconcile-at. It also retries a failed hook and an " +
			"upgrade that was rolled back, and applies content that changed under the same reference of the source.\n\n" +
			"If the installation is Ready already, --wait ends at once.",
		Example: "  # Try again now, after the cause of a failure is gone\n  kubectl addons reconcile prometheus --cluster 47s2ddlfgj --wait",
	}
	wait.Flags(command, "it is Ready")
	return tool.Changes(command, func(ctx context.Context, seed *cli.Platform, one *v1.AddonInstallation) error {
		if one.Spec.Paused {
			tool.Note("it is paused: `kubectl addons resume` continues the work")
		}
		now := tool.Now().UTC().Format(time.RFC3339Nano)
		if err := tool.Patch(ctx, seed, one, cli.Annotating(v1.AnnotationReconcileAt, now), "reconciliation requested"); err != nil {
			return err
		}
		return wait.Ready(ctx, tool, seed, one)
	}, wait.Check)
}

// Approve makes the command that approves the removal of objects that an installation waits for.
func Approve(tool *cli.Tool) *cobra.Command {
	command := &cobra.Command{
		Use: "approve NAME", Short: "Approve a removal of objects that waits for approval",
		Long: "Approve a removal of objects that waits for approval, by annotation prune-approved: objects that the version no longer " +
			"has, or all objects if the version now renders to nothing. The approval is valid only for the shown objects.",
		Example: "  # Show the objects whose removal waits, and ask for a confirmation\n  kubectl addons approve prometheus --cluster 47s2ddlfgj",
	}
	return annotating(tool, command, "approved", "Approve the removal of these objects?", waiting)
}

// Adopt makes the command that makes existing objects part of an installation.
func Adopt(tool *cli.Tool) *cobra.Command {
	command := &cobra.Command{
		Use: "adopt NAME", Short: "Make existing objects, or a Helm release, part of an installation",
		Long: "Make existing objects, or a Helm release, part of an installation, by annotation adopt. Objects keep their UID. Objects of " +
			"another installation are never adopted.",
		Example: "  # Objects or a Helm release that another client created\n  kubectl addons adopt prometheus --cluster 47s2ddlfgj",
	}
	return annotating(tool, command, "adopts existing objects", "Adopt existing objects?", existing)
}

// answer is the annotation that answers what an installation waits for, and what the caller confirms.
type answer struct{ key, value, fact string }

// annotating completes a command that sets an annotation after a question.
func annotating(
	tool *cli.Tool, command *cobra.Command, done, question string, find func(*v1.AddonInstallation) (answer, error),
) *cobra.Command {
	var consent cli.Consent
	consent.Flag(command)
	return tool.Changes(command, func(ctx context.Context, seed *cli.Platform, one *v1.AddonInstallation) error {
		found, err := find(one)
		if err != nil {
			return err
		}
		if one.Annotations[found.key] == found.value {
			tool.Done(one, "unchanged: the annotation is set")
			return nil
		}
		if err := consent.Ask(ctx, tool, []string{found.fact}, question); err != nil {
			return err
		}
		return tool.Patch(ctx, seed, one, cli.Annotating(found.key, found.value), done)
	}, func() error { return consent.Check(tool) })
}

// waiting is the approval of the removal that an installation waits for.
func waiting(one *v1.AddonInstallation) (answer, error) {
	if value, message, waits := view.WaitingRemoval(one); waits {
		return answer{v1.AnnotationPruneApproved, value, message}, nil
	}
	hint := "`kubectl addons list -o wide` shows what it waits for"
	if access := view.Reported(one, v1.ConditionAccessReady, v1.ReasonApprovalRequired); access != nil {
		hint = access.Message // for the admin of the seed, who approves a request of certificates
	}
	return answer{}, cli.Fail(cli.ExitNo, hint, "no removal of installation %q waits for approval", one.Name)
}

// existing is the adoption, with what the installation reports about objects of others.
func existing(one *v1.AddonInstallation) (answer, error) {
	found := answer{key: v1.AnnotationAdopt, value: "true"}
	found.fact = fmt.Sprintf("AddonInstallation %q reports no existing object now: it will adopt those that it finds later", one.Name)
	if message, reports := view.ExistingObjects(one); reports {
		found.fact = message
	}
	if one.Spec.CoreAddon { // users may annotate it
		return found, nil
	}
	return found, cli.CheckOwned(one, "annotated with adopt")
}
