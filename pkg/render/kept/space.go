package kept

const (
	// overhead is the size of an outcome in addition to its objects, digestCost of an object's digest, in bytes.
	overhead   = 512
	digestCost = 160
	// sparePart is the part of the space, and of the entries, for what is rendered sparingly: an eighth.
	sparePart = 8
)

// pkg/base/lru does not fit: the limit is in bytes, objects are dropped before digests, and running renderings stay.

// entry returns the entry of a key, marked as used. The mutex is held.
func (r *Renders) entry(key string, isSpare bool) *entry {
	if known, ok := r.entries[key]; ok {
		r.order.MoveToFront(known.element)
		known.isSpare = known.isSpare && isSpare
		return known
	}
	made := &entry{key: key, isSpare: isSpare}
	made.element = r.order.PushFront(made)
	r.entries[key] = made
	if isSpare {
		r.limitSpare()
	}
	for r.order.Len() > defaultEntries {
		if !r.forget(r.order.Back().Value.(*entry)) {
			break
		}
	}
	return made
}

// limitSpare forgets the oldest spare entries beyond their part; the newest stays. The mutex is held.
func (r *Renders) limitSpare() {
	bytes, count := 0, 0
	for element := r.order.Front(); element != nil; {
		one := element.Value.(*entry)
		element = element.Next()
		if !one.isSpare {
			continue
		}
		bytes, count = bytes+one.weight, count+1
		if bytes > r.options.Bytes/sparePart || count > defaultEntries/sparePart {
			r.forget(one)
		}
	}
}

// keep puts an outcome into an entry, and drops others: the oldest lose their objects first, then the whole entry.
// The mutex is held.
func (r *Renders) keep(kept *entry, came *outcome) {
	kept.outcome = came
	if came.err == nil {
		kept.digests = came.content.digests
	}
	r.weigh(kept)
	for element := r.order.Back(); element != nil && r.bytes > r.options.Bytes; element = element.Prev() {
		oldest := element.Value.(*entry)
		oldest.outcome = nil
		r.weigh(oldest)
	}
	for element := r.order.Back(); element != nil && r.bytes > r.options.Bytes; {
		oldest := element.Value.(*entry)
		element = element.Prev()
		r.forget(oldest)
	}
}

// weigh updates an entry's bytes. The mutex is held.
func (r *Renders) weigh(changed *entry) {
	r.bytes -= changed.weight
	changed.weight = len(changed.digests) * digestCost
	if changed.outcome != nil {
		changed.weight += overhead + changed.outcome.content.size()
	}
	r.bytes += changed.weight
}

// forget drops an entry that is not being rendered. The mutex is held.
func (r *Renders) forget(oldest *entry) bool {
	if oldest.flight != nil {
		return false
	}
	r.bytes -= oldest.weight
	r.order.Remove(oldest.element)
	delete(r.entries, oldest.key)
	return true
}
