package kept

const (
	// overhead is what an outcome costs beside its objects, digestCost one object's name and digest; both are about right.
	overhead   = 512
	digestCost = 160
)

// Not pkg/lru: renderings are bounded by bytes, lose objects before digests, and stay while they are being rendered.

// entry gives what is known of a key, and puts it first in line to stay. The mutex is held.
func (r *Renders) entry(key string) *entry {
	if known, ok := r.entries[key]; ok {
		r.order.MoveToFront(known.element)
		return known
	}
	made := &entry{key: key}
	made.element = r.order.PushFront(made)
	r.entries[key] = made
	for r.order.Len() > defaultEntries {
		if !r.forget(r.order.Back().Value.(*entry)) {
			break
		}
	}
	return made
}

// keep puts an outcome into an entry, and makes room: the oldest lose their objects first, then all. The mutex is held.
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

// weigh counts what an entry takes now. The mutex is held.
func (r *Renders) weigh(changed *entry) {
	r.bytes -= changed.weight
	changed.weight = len(changed.digests) * digestCost
	if changed.outcome != nil {
		changed.weight += overhead + changed.outcome.content.size()
	}
	r.bytes += changed.weight
}

// forget drops an entry as a whole, unless it is being rendered. The mutex is held.
func (r *Renders) forget(oldest *entry) bool {
	if oldest.flight != nil {
		return false
	}
	r.bytes -= oldest.weight
	r.order.Remove(oldest.element)
	delete(r.entries, oldest.key)
	return true
}
