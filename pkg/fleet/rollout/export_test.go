package rollout

// CountComparisons begins to count the comparisons of two clusters.
func (t *Tally) CountComparisons() *int {
	made := new(int)
	counted := func(q *queue) {
		less := q.less
		q.less = func(a, b *entry) bool {
			*made++
			return less(a, b)
		}
	}
	counted(&t.troubled)
	for i := range t.groups {
		counted(&t.groups[i].behind)
		counted(&t.groups[i].again)
	}
	return made
}
