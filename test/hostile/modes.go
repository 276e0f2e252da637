package hostile

import (
	"slices"
	"time"
)

// Mode is one way in which an API server is not what it should be.
type Mode struct {
	Name string
	// Tells is what it does, for people.
	Tells string
	// Dose that hurts a client which believes it.
	Dose Dose

	// answer handles an exchange, or says that it is left to the true cluster; nil leaves all.
	answer func(*exchange) bool
	// change gives another body for a true answer in JSON; nil from it, or in its place, leaves it.
	change func(dose Dose, about asked, body []byte) []byte
	// floods says that the connection is flooded besides.
	floods bool
}

// Truth is what an honest API server does.
var Truth = Mode{Name: "truth", Tells: "answers as the cluster behind it does"}

// Modes are all that the API server of a user cluster can do, in a fixed order.
func Modes() []Mode {
	return slices.Concat(discoveryModes(), listModes(), objectModes(), writeModes(), secretModes(), transportModes())
}

// ModeNamed is the mode of that name, of Modes or ModesOfSeeds; Truth where there is none.
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
