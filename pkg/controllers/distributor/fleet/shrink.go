package fleet

import (
	"encoding/json"

	v1 "github.com/trellis-addons/trellis/apis/kubermatic/v1"
	"github.com/trellis-addons/trellis/pkg/text"
)

// statusBytes is the most that a status has, as JSON.
const statusBytes = 64 << 10

// shrink makes a status small enough: messages first, then what says least.
func shrink(status *v1.AddonSetStatus) {
	for _, less := range []func(*v1.AddonSetStatus){
		func(s *v1.AddonSetStatus) { cutMessages(s, 160) },
		func(s *v1.AddonSetStatus) { s.Clusters = s.Clusters[:min(len(s.Clusters), 25)] },
		func(s *v1.AddonSetStatus) { cutMessages(s, 48) },
		func(s *v1.AddonSetStatus) { s.Pending = s.Pending[:min(len(s.Pending), 25)] },
		func(s *v1.AddonSetStatus) {
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
	for size(status) > statusBytes && len(status.Seeds) > 0 {
		status.Seeds = status.Seeds[:len(status.Seeds)*3/4]
	}
}

func cutMessages(status *v1.AddonSetStatus, most int) {
	for i := range status.Clusters {
		status.Clusters[i].Message = text.Cut(status.Clusters[i].Message, most)
	}
	for i := range status.Seeds {
		status.Seeds[i].Message = text.Cut(status.Seeds[i].Message, most)
	}
}

func size(status *v1.AddonSetStatus) int {
	encoded, err := json.Marshal(status)
	if err != nil { // it is made of texts and numbers
		return 0
	}
	return len(encoded)
}
