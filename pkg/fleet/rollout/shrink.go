package rollout

import (
	"encoding/json"

	kubermaticv1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/base/text"
)

// statusBytes is the maximal size of a status as JSON: 64 KiB, minus the fields that are set afterwards.
const statusBytes = 60 << 10

// Shrink makes a status of an AddonSet small enough, on the master and on seeds: it cuts messages first, then the
// least important rows. Texts of clusters and seeds are foreign, and may be six times as long in JSON.
func Shrink(status *kubermaticv1.AddonSetStatus) {
	for _, less := range []func(*kubermaticv1.AddonSetStatus){
		func(s *kubermaticv1.AddonSetStatus) { cutMessages(s, 160) },
		func(s *kubermaticv1.AddonSetStatus) { s.Clusters = s.Clusters[:min(len(s.Clusters), 25)] },
		func(s *kubermaticv1.AddonSetStatus) { cutMessages(s, 48) },
		func(s *kubermaticv1.AddonSetStatus) { s.Pending = s.Pending[:min(len(s.Pending), 25)] },
		func(s *kubermaticv1.AddonSetStatus) {
			for i := range s.Seeds {
				s.Seeds[i].Counts, s.Seeds[i].Message, s.Seeds[i].Revision = nil, "", ""
			}
		},
	} {
		if size(status) <= statusBytes {
			return
		}
		less(status)
	}
	for size(status) > statusBytes && len(status.Seeds)+len(status.Clusters)+len(status.Pending) > 0 {
		status.Seeds = status.Seeds[:len(status.Seeds)*3/4]
		status.Clusters = status.Clusters[:len(status.Clusters)*3/4]
		status.Pending = status.Pending[:len(status.Pending)*3/4]
	}
}

func cutMessages(status *kubermaticv1.AddonSetStatus, most int) {
	for i := range status.Clusters {
		status.Clusters[i].Message = text.Cut(status.Clusters[i].Message, most)
	}
	for i := range status.Seeds {
		status.Seeds[i].Message = text.Cut(status.Seeds[i].Message, most)
	}
}

func size(status *kubermaticv1.AddonSetStatus) int {
	encoded, err := json.Marshal(status)
	if err != nil { // not possible: it has only texts and numbers
		return 0
	}
	return len(encoded)
}
