package ownership_test

// ownershipCases are the rows of TestWhoseAnObjectIs: every combination that some rule tells from
// its neighbours. Where rules differ from each other on purpose, the comment above the rows says
// why.
var ownershipCases = []struct{ why, object, records, whose, rules string }{
	// Our field manager, or our record with a UID, says that an object is ours; a label says so
	// only beside a record. What is written needs less than what is deleted: an intent and a label
	// let a rollout go on after a crash, but a Namespace or CustomResourceDefinition, which others
	// use as soon as it exists, goes by UID or field manager only; and an entry with a UID never
	// names another object for deletion.
	{"an object of nobody's", "", "",
		"a stranger's", "no place for hooks: no hook"},
	{"somebody applied it", "stranger", "",
		"a stranger's", "no place for hooks: no hook"},
	{"our manager applied it", "applied:us label:us", "",
		"ours: applied, labelled", "made, no place for hooks: the add-on's own"},
	{"our manager applied it, and its label is gone", "applied:us", "",
		"ours: applied", "made, no place for hooks: the add-on's own"},
	{"an intent became it", "applied:us label:us", "planned",
		"ours: planned, applied, labelled", "delete, made, no place for hooks: the add-on's own"},
	{"somebody reset its managers after our intent", "label:us", "planned",
		"ours: planned, labelled", "delete, no place for hooks: no hook"},
	{"a label without a record proves nothing", "label:us", "",
		"a stranger's: labelled", "no place for hooks: no hook"},
	{"a namespace needs more than a label to go", "label:us", "namespace planned",
		"ours: planned, labelled", "no place for hooks: no hook"},
	{"a namespace that our intent made", "applied:us label:us", "namespace planned",
		"ours: planned, applied, labelled", "delete, made, no place for hooks: the add-on's own"},
	{"an intent of ours, and somebody was faster", "stranger", "planned",
		"a stranger's: planned", "no place for hooks: no hook"},
	{"the very object on record, whatever is on it", "stranger", "recorded",
		"ours: recorded", "delete, no place for hooks: no hook"},
	{"the very object on record, which another labelled", "applied:us label:b", "recorded",
		"ours (b): recorded, applied, other labelled", "delete, made, no place for hooks: another installation's"},
	{"another stands where ours was", "stranger", "replaced",
		"a stranger's: replaced", "no place for hooks: no hook"},
	{"we made another where ours was, before that was on record", "applied:us label:us", "replaced",
		"ours: replaced, applied, labelled", "made, no place for hooks: the add-on's own"},
	{"a label where ours was", "label:us", "replaced",
		"ours: replaced, labelled", "no place for hooks: no hook"},
	{"an object without a UID is no record's", "stranger nouid", "planned",
		"a stranger's: planned", "no place for hooks: no hook"},
	{"it was there before we took it over", "applied:us label:us adopted", "planned",
		"ours: planned, applied, labelled, adopted", "delete, no place for hooks: the add-on's own"},

	// What another installation has that exists is never adopted (ADR 24). A manager is believed
	// before a label, since anybody can write a label, and one that created (a hook) as one that
	// applied: hooks have no other. No intent and no label of ours take it from a field manager of
	// another.
	{"an installation that exists applied it", "applied:b label:b", "",
		"another's (b): other applied, other labelled", "no place for hooks: another installation's"},
	{"an installation that exists applied it, and we planned it", "applied:b label:b", "planned",
		"another's (b): planned, other applied, other labelled", "no place for hooks: another installation's"},
	{"its label alone names one that exists", "label:b", "",
		"another's (b): other labelled", "no place for hooks: another installation's"},
	{"its manager goes before a label", "applied:c label:b", "",
		"another's (c): other applied, other labelled", "no place for hooks: another installation's"},
	{"its manager is gone, its label names one that exists", "applied:gone label:b", "",
		"another's (b): other applied, other labelled", "no place for hooks: another installation's"},
	{"a hook of one that exists", "made:b label:b run hook", "",
		"another's (b): run, helm hook, other made, other labelled", "no place for hooks: another installation's"},
	{"a hook of one that exists, whose label is gone", "made:b run hook", "",
		"another's (b): run, helm hook, other made", "no place for hooks: another installation's"},
	{"both applied it", "applied:us applied:b label:us", "",
		"ours (b): applied, labelled, other applied", "made, no place for hooks: another installation's"},
	{"we planned it, and our label stands on another's", "applied:b label:us", "planned",
		"another's (b): planned, labelled, other applied", "no place for hooks: another installation's"},

	// An installation that is gone has nothing, but its namespace is only inherited where all names
	// are known, none that left a trace exists, and it was made by one.
	{"an installation that is gone left it", "applied:gone label:gone", "",
		"a stranger's: other applied, other labelled", "orphaned, no place for hooks: another installation's"},
	{"one that is gone had taken it over", "applied:gone label:gone adopted", "",
		"a stranger's: adopted, other applied, other labelled", "no place for hooks: another installation's"},
	{"a label of one that is gone", "label:gone", "",
		"a stranger's: other labelled", "no place for hooks: another installation's"},
	{"where nobody can say who exists, nobody does", "applied:b label:b", "nobody-known",
		"a stranger's: other applied, other labelled", "no place for hooks: another installation's"},

	// What siblings share is ours once its owner is gone, by what our record says of it (ADR 40).
	{"shared with us by one that is gone, by its UID", "applied:gone label:gone", "shared",
		"inherited: shared, other applied, other labelled", "made, orphaned, no place for hooks: another installation's"},
	{"shared with us by one that is gone, which made it anew", "applied:gone label:gone", "shared-anew",
		"inherited: shared, other applied, other labelled", "made, orphaned, no place for hooks: another installation's"},
	{"shared with us, and another that exists has it now", "applied:gone applied:b label:b", "shared",
		"another's (b): shared, other applied, other labelled", "no place for hooks: another installation's"},
	{"shared with us, and made anew by a stranger", "stranger", "shared-anew",
		"a stranger's", "no place for hooks: no hook"},
	{"shared with us, and taken over before the process ended", "applied:us label:us", "shared",
		"inherited: shared, applied, labelled", "made, no place for hooks: the add-on's own"},
	{"shared with us without a UID, and it has none", "stranger nouid", "shared-nouid",
		"a stranger's", "no place for hooks: no hook"},
	{"left to us by a sibling that is gone, before we used it", "applied:gone label:gone", "planned left",
		"inherited: planned, left, other applied, other labelled", "delete, made, orphaned, no place for hooks: another installation's"},
	{"left to us by one that had taken it over", "applied:gone label:gone adopted", "planned left",
		"inherited: planned, left, adopted, other applied, other labelled", "delete, no place for hooks: another installation's"},
	{"left to us, and planned no more", "applied:gone label:gone", "left",
		"inherited: left, other applied, other labelled", "made, orphaned, no place for hooks: another installation's"},
	{"of a sibling that our record names, and that exists", "applied:b label:b", "planned left",
		"another's (b): planned, left, other applied, other labelled", "no place for hooks: another installation's"},
	{"left to us, and another that exists has it now", "applied:gone applied:c label:c", "planned left",
		"another's (c): planned, left, other applied, other labelled", "no place for hooks: another installation's"},
	{"only its label names a sibling that is gone", "label:gone", "planned left",
		"a stranger's: planned, other labelled", "no place for hooks: another installation's"},

	// Objects of a Helm release are adopted, and as leftovers deleted, by Helm's marks of that
	// release, also where an installation that is gone had them: adoption stops at the living.
	{"Helm made it for the release", "release:ours", "",
		"of the release: continued", "leftover, no place for hooks: no hook"},
	{"Helm made it for another release", "release:theirs", "",
		"a stranger's: other release", "no place for hooks: no hook"},
	{"one that exists has what Helm made for the release", "release:ours label:b", "",
		"another's (b): continued, other labelled", "no place for hooks: another installation's"},
	{"one that is gone had what Helm made for the release", "release:ours applied:gone label:gone", "",
		"of the release: continued, other applied, other labelled", "leftover, orphaned, no place for hooks: another installation's"},
	{"we applied what Helm made for the release", "release:ours applied:us label:us", "",
		"ours: applied, labelled, continued", "made, leftover, no place for hooks: the add-on's own"},

	// A hook takes the place of an object by deleting it, and Helm does not mark hooks: an
	// installation that is gone is an obstacle as well, and so is an object of the add-on itself.
	// What counts as a hook in a namespace that goes needs everything that we write on one: the
	// namespace takes it along.
	{"a hook of ours", "made:us label:us run hook", "",
		"ours: made, labelled, run, helm hook", "hook, left by hook"},
	{"a hook of ours, whose label is gone", "made:us run hook", "",
		"ours: made, run, helm hook", "hook"},
	{"a hook of ours, whose label is gone, that our intent names", "made:us run hook", "planned",
		"ours: planned, made, run, helm hook", "hook"},
	{"a hook of ours that we apply now", "made:us applied:us label:us run hook", "",
		"ours: applied, made, labelled, run, helm hook", "made, hook, left by hook"},
	{"helm made our hook by hand", "label:us hook", "",
		"ours: labelled, helm hook", "hook"},
	{"helm made it by hand, and another wrote it", "label:us hook made:gone", "",
		"a stranger's: labelled, helm hook, other made", "no place for hooks: another installation's"},
	{"our own object, whose manifest is one of a hook", "applied:us label:us hook", "",
		"ours: applied, labelled, helm hook", "made, no place for hooks: the add-on's own"},
	{"a run without our manager", "run label:us", "",
		"a stranger's: labelled, run", "no place for hooks: no hook"},
	{"a hook of the release, which Helm does not mark", "hook", "",
		"a stranger's: helm hook", "leftover hook"},
	{"a hook with the marks of the release", "hook release:ours", "",
		"of the release: helm hook, continued", "leftover, leftover hook"},
	{"a hook with the marks of another release", "hook release:theirs", "",
		"a stranger's: helm hook, other release", "no place for hooks: another release's"},
	{"a hook of one that is gone", "hook made:gone label:gone run", "",
		"a stranger's: run, helm hook, other made, other labelled", "no place for hooks: another installation's"},
}
