package removal

import (
	"context"

	"github.com/trellis-addons/trellis/pkg/calls"
	"github.com/trellis-addons/trellis/pkg/ownership"
)

// Inherited is the entry of a namespace that another installation made, which is gone: the last one that asked for the
// namespace removes it, as it would one of its own. Nil where somebody else made it, or its maker exists; nameOf is as in
// RolloutOptions. What made a namespace is told by its field managers: none of ours applies one that was there before.
func Inherited(
	ctx context.Context, target calls.Target, owner ownership.Owner, name string, nameOf func(id string) string,
) (*ownership.Entry, error) {
	if name == "" || nameOf == nil {
		return nil, nil
	}
	key := ownership.Key{Kind: ownership.NamespaceGK.Kind, Name: name}
	where, served, err := (&calls.Kinds{Mapper: target.Mapper}).FindAny(key, "v1")
	if err != nil || !served {
		return nil, err
	}
	live, err := calls.ClientOf(target, where, "").Read(ctx, key)
	if err != nil || live == nil {
		return nil, err
	}
	if !ownership.Of(live, ownership.Question{Owner: owner, NameOf: nameOf}).IsOrphaned() {
		return nil, nil
	}
	return &ownership.Entry{Key: key, Version: "v1", UID: live.UID, Created: true}, nil
}
