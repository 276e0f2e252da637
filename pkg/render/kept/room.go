package kept

const (
	// overhead is the cost of an outcome beside its objects, digestCost of an object's digest.
	overhead   = 512
	digestCost = 160
)

// Not pkg/lru: bounded by bytes, objects go before digests, and running renderings stay.

// entry is what is known of a key, marked as used. The mutex is held.
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

// keep puts an outcome into an entry, and makes room: the oldest lose their objects first, then
// all. The mutex is held.
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

// weigh counts an entry's bytes. The mutex is held.
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
