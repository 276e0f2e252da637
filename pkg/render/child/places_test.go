package child

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// placesSeed repeats one order of TestPlacesInAnyOrder.
var placesSeed = flag.Uint64("places-seed", 0, "the order of TestPlacesInAnyOrder to repeat; 0: many")

// TestPlacesInAnyOrder: tenants begin, end and give up in random orders, while children are started, fail to start,
// die while they wait, are killed while they work and are used up. At each step no more children live than allowed,
// each has a place, no tenant is given one of another tenant, and no tenant waits that could have a turn.
func TestPlacesInAnyOrder(t *testing.T) {
	first, last := uint64(1), uint64(300)
	if *placesSeed != 0 {
		first, last = *placesSeed, *placesSeed
	}
	for seed := first; seed <= last; seed++ {
		world := newWorld(seed)
		for range 300 {
			world.step()
		}
		world.finish()
		if len(world.wrong) > 0 {
			t.Fatalf("-places-seed=%d, %d children at work: %v", seed, world.children, world.wrong)
		}
	}
}

// TestATenantWithManyCallersDelaysNoOther turns red when callers get places in the order in which they came, regardless of
// the number of their tenant's (places.next, and rank in it).
func TestATenantWithManyCallersDelaysNoOther(t *testing.T) {
	for _, test := range []struct {
		why    string
		others []string
		most   int // renderings that end before
	}{
		{"two tenants, of which one has its share", []string{"a", "a", "b"}, 1},
		{"as many tenants as places", []string{"a", "b", "c"}, 4},
	} {
		made := newPlaces(3, 0)
		var asked []*ticket
		for range 10 {
			for _, tenant := range test.others {
				asked = append(asked, made.ask(tenant))
			}
		}
		mine, ended := made.ask("mine"), 0
		for ; len(mine.turn) == 0 && ended < len(asked); ended++ {
			next := slices.IndexFunc(asked, func(one *ticket) bool { return len(one.turn) > 0 })
			made.release(<-asked[next].turn)
		}
		if ended > test.most {
			t.Errorf("%s: it gets a place when %d renderings have ended, want %d at most", test.why, ended, test.most)
		}
	}
}

// world is the environment of places: the role of the pool and of its children.
type world struct {
	*rand.Rand
	places *places
	// children is the maximum number of concurrent renderings, beside the number of additional places.
	children, beside int
	// living are the processes that were started and not ended; dead are those among them that exited on their own.
	living map[*process]bool
	dead   map[*process]bool
	asking []*ticket
	work   []*place
	spares []*place
	wrong  []string
}

func newWorld(seed uint64) *world {
	made := &world{Rand: rand.New(rand.NewPCG(seed, 0)), living: map[*process]bool{}, dead: map[*process]bool{}}
	made.children = 1 + made.IntN(5)
	made.beside = made.IntN(2)
	made.places = newPlaces(made.children, made.beside)
	return made
}

func (w *world) wrongly(format string, values ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, values...))
}

// step is one random event.
func (w *world) step() {
	switch w.IntN(10) {
	case 0, 1, 2:
		w.asking = append(w.asking, w.places.ask(fmt.Sprint("tenant-", w.IntN(6))))
	case 3:
		if at := w.IntN(len(w.asking) + 1); at < len(w.asking) {
			mine := w.asking[at]
			w.asking = append(w.asking[:at:at], w.asking[at+1:]...)
			if given := w.places.withdraw(mine); given != nil {
				w.release(given)
			}
		}
	case 4:
		if at := w.places.all[w.IntN(len(w.places.all))]; at.child != nil {
			w.dead[at.child] = true // on its own, or killed by another process, in any place
		}
	case 5:
		if spare := w.places.spare(); spare != nil {
			w.spares = append(w.spares, spare)
		}
	case 6:
		if len(w.spares) > 0 {
			w.end(w.spares[0])
			w.start(w.spares[0])
			w.release(w.spares[0])
			w.spares = w.spares[1:]
		}
	case 7:
		if at := w.IntN(len(w.work) + 1); at < len(w.work) {
			done := w.work[at]
			w.work = append(w.work[:at:at], w.work[at+1:]...)
			w.render(done)
		}
	default:
		w.takeTurns()
	}
	w.check()
}

// takeTurns makes the tenants with a turn prepare their place.
func (w *world) takeTurns() {
	var left []*ticket
	for _, asked := range w.asking {
		select {
		case at := <-asked.turn:
			if at == nil {
				continue
			}
			w.work = append(w.work, at)
			if at.child == nil || w.dead[at.child] || at.child.bound && at.child.tenant != asked.tenant {
				w.end(at)
				w.start(at)
			}
			if at.child != nil {
				at.child.bound, at.child.tenant = true, asked.tenant
			}
		default:
			left = append(left, asked)
		}
	}
	w.asking = left
}

// render ends a rendering, successfully or not.
func (w *world) render(at *place) {
	if at.child != nil {
		at.child.served++
		if w.dead[at.child] || w.IntN(4) == 0 {
			w.end(at)
		}
	}
	w.release(at)
}

func (w *world) release(at *place) {
	for !w.places.release(at) {
		w.end(at)
	}
}

// start starts a child; some starts fail.
func (w *world) start(at *place) {
	if w.IntN(5) == 0 {
		return
	}
	if at.child != nil {
		w.wrongly("a child is started over another one")
	}
	at.child = &process{}
	w.living[at.child] = true
	if most := w.children + w.beside; len(w.living) > most {
		w.wrongly("%d children live, %d may", len(w.living), most)
	}
}

func (w *world) end(at *place) {
	if at.child == nil {
		return
	}
	if !w.living[at.child] {
		w.wrongly("a child is ended twice")
	}
	delete(w.living, at.child)
	at.child = nil
}

// check checks the properties that hold at any time.
func (w *world) check() {
	placed, busy := map[*process]bool{}, map[string]int{}
	for _, at := range w.places.all {
		if at.child != nil && placed[at.child] {
			w.wrongly("one child has two places")
		}
		if at.child != nil {
			placed[at.child] = true
		}
		if at.state == working {
			busy[at.tenant]++
		}
		if at.state == idle && at.child == nil || at.state == vacant && at.child != nil {
			w.wrongly("a place is %s and its child is %v", at.state, at.child)
		}
	}
	for one := range w.living {
		if !placed[one] {
			w.wrongly("a child of %q is lost", one.tenant)
		}
	}
	if len(placed) != len(w.living) {
		w.wrongly("%d children have places and %d live", len(placed), len(w.living))
	}
	w.checkTurns(busy)
}

func (w *world) checkTurns(busy map[string]int) {
	all, share := 0, max(1, w.children-1)
	for tenant, theirs := range busy {
		all += theirs
		if theirs > share {
			w.wrongly("%s has %d renderings, %d may go on", tenant, theirs, share)
		}
	}
	if all > w.children {
		w.wrongly("%d renderings go on, %d may", all, w.children)
	}
	for _, left := range w.places.waiting {
		if all < w.children && busy[left.tenant] < share {
			w.wrongly("%s waits without need", left.tenant)
		}
	}
	for _, at := range w.work {
		if at.child != nil && at.child.tenant != at.tenant {
			w.wrongly("%s works with the child of %q", at.tenant, at.child.tenant)
		}
	}
}

// finish closes the places in any state.
func (w *world) finish() {
	ended, killed := w.places.close()
	for _, at := range killed {
		w.dead[at.child] = true
	}
	for _, at := range ended {
		w.release(at)
	}
	w.takeTurns()
	for _, at := range append(w.work, w.spares...) {
		w.release(at)
	}
	if len(w.living) > 0 || len(w.asking) > 0 {
		w.wrongly("%d children live and %d wait after the end", len(w.living), len(w.asking))
	}
	for _, at := range w.places.all {
		if at.state != vacant {
			w.wrongly("a place is %s after the end", at.state)
		}
	}
}
