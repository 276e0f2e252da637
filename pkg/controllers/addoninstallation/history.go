package addoninstallation

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/clusters/remote"
	"github.com/trellis-addons/trellis/pkg/install/revision"
	"github.com/trellis-addons/trellis/pkg/serve/view/preview"
)

// History has the revisions on record of an installation, each with what differs from the one before, and the values in force. Two records
// are in memory at a time.
func (p *Previewer) History(ctx context.Context, installation *kubermaticv1.AddonInstallation) (preview.History, error) {
	within, end := limitedTo(remote.Within(ctx, "one history", remote.PassTotals), previewTime)
	defer end()
	f := p.reconciler.factsWith(installation, newMemory(installation))
	defer p.reconciler.clusters.forget(client.ObjectKeyFromObject(installation))
	if err := p.reconciler.locate(within, f); err != nil {
		return preview.History{}, fmt.Errorf("finding the cluster: %w", err)
	}
	found := preview.History{Revisions: []preview.Revision{}, Values: []preview.Value{}}
	newer, err := p.records.LoadFirst(within, installation.Namespace, f.run.Owner)
	if err != nil || newer == nil {
		return found, err
	}
	found.AddValues(newer.Values, newer.Origins, f.shows(nil, newer))
	for range revision.Kept {
		if newer == nil {
			break
		}
		older, err := p.records.LoadRevision(within, installation.Namespace, f.run.Owner, newer.Revision-1)
		if err != nil {
			return found, err
		}
		one, err := f.revision(newer, older)
		if err != nil {
			return found, err
		}
		found.Revisions, newer = append(found.Revisions, one), older
	}
	return found, nil
}

// revision shows a revision, and what differs from the one before, if that is on record. Before the first there was nothing.
func (f *facts) revision(record, before *revision.Record) (preview.Revision, error) {
	shown := preview.Revision{
		Revision: record.Revision, State: string(record.State), Addon: record.Addon, Version: record.Version, Time: record.Time,
	}
	if record.Rollback != nil {
		shown.RollbackTo = record.Rollback.To
	}
	if before == nil && record.Revision > 1 {
		return shown, nil
	}
	was, is := preview.Side{}, preview.Side{Values: record.Values}
	var err error
	if is.Objects, err = ofRecord(record); err == nil && before != nil {
		was.Values = before.Values
		was.Objects, err = ofRecord(before)
	}
	if err != nil {
		return shown, err
	}
	shown.AddDifferences(was, is, f.shows(slices.Concat(was.Objects, is.Objects), record, before))
	return shown, nil
}
