package hostile

import (
	"slices"
	"time"
)

// Mode is one misbehaviour of an API server.
type Mode struct {
	Name string
	// Tells describes it for people.
	About string
	// Dose harms a client that trusts it.
	Dose Dose

	// answer handles an exchange, or reports that the true cluster handles it; nil handles none.
	answer func(*exchange) bool
	// change returns another body for a true answer in JSON; a nil function or result keeps it.
	change func(dose Dose, about asked, body []byte) []byte
	// floods says that the connection is also flooded.
	floods bool
}

// Truth is the behaviour of an honest API server.
var Truth = Mode{Name: "truth", About: "answers as the cluster behind it does"}

// Modes are all modes of the API server of a user cluster, in a fixed order.
func Modes() []Mode {
	return slices.Concat(discoveryModes(), listModes(), objectModes(), writeModes(), secretModes(), transportModes())
}

// ModeNamed is the mode of that name, of Modes or ModesOfSeeds; Truth if there is none.
func ModeNamed(name string) Mode {
	for _, mode := range slices.Concat(Modes(), ModesOfSeeds()) {
		if mode.Name == name {
			return mode
		}
	}
	return Truth
}

func sized(size int) Dose { return Dose{Size: size} }

func slow(wait time.Duration) Dose { return Dose{Wait: wait} }
