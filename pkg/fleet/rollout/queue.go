package rollout

// nowhere is the position of an entry that is in no queue.
const nowhere = -1

// queue has entries in order, as a binary heap that knows the position of each: adding and removing one costs O(log
// n), in any order.
type queue struct {
	entries []*entry
	less    func(a, b *entry) bool
	// at is where an entry stores its position in this queue.
	at func(*entry) *int
}

func (q *queue) push(e *entry) {
	q.entries = append(q.entries, e)
	q.place(len(q.entries)-1, e)
	q.up(len(q.entries) - 1)
}

func (q *queue) remove(e *entry) {
	i, last := *q.at(e), len(q.entries)-1
	moved := q.entries[last]
	q.entries[last] = nil
	q.entries = q.entries[:last]
	*q.at(e) = nowhere
	if i == last {
		return
	}
	q.place(i, moved)
	q.up(i)
	q.down(*q.at(moved))
}

func (q *queue) place(i int, e *entry) {
	q.entries[i] = e
	*q.at(e) = i
}

func (q *queue) swap(i, j int) {
	one, other := q.entries[i], q.entries[j]
	q.place(i, other)
	q.place(j, one)
}

func (q *queue) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !q.less(q.entries[i], q.entries[parent]) {
			return
		}
		q.swap(i, parent)
		i = parent
	}
}

func (q *queue) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q.entries); child++ {
			if q.less(q.entries[child], q.entries[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		q.swap(i, least)
		i = least
	}
}

// first returns the first few entries in order, and does not remove them. It reads at most twice as many, for any
// length of the queue: the next candidates are the children of the returned entries.
func (q *queue) first(most int) []*entry {
	return q.firstOf(most, func(*entry) bool { return true })
}

// firstOf is first for the selected entries. It also reads all others before them.
func (q *queue) firstOf(most int, isWanted func(*entry) bool) []*entry {
	var found []*entry
	var unused int // entries keep their position in the original queue
	next := queue{less: q.less, at: func(*entry) *int { return &unused }}
	if len(q.entries) > 0 {
		next.push(q.entries[0])
	}
	for len(found) < most && len(next.entries) > 0 {
		e := next.pop()
		if isWanted(e) {
			found = append(found, e)
		}
		at := *q.at(e)
		for child := 2*at + 1; child <= 2*at+2 && child < len(q.entries); child++ {
			next.push(q.entries[child])
		}
	}
	return found
}

// pop removes the first entry.
func (q *queue) pop() *entry {
	first, last := q.entries[0], len(q.entries)-1
	q.entries[0] = q.entries[last]
	q.entries = q.entries[:last]
	q.down(0)
	return first
}
