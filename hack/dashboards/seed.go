package main

// seed is the dashboard of chart trellis-seed.
func seed() dashboard {
	return dashboard{"trellis-seed", "Trellis seed", []row{
		installations(), clusters(), sets(), queue(), work(), renderings(), sources(), offers(), process(),
	}}
}

// held are the reasons of installations that wait for other objects or people.
const held = "WaitingForOrder|DependencyMissing|DependencyCycle|Paused|PruneNeedsApproval|ClusterNotReady|RemovalBlocked"

func installations() row {
	return row{"Installations", []panel{
		{
			"Installations", "short", "AddonInstallations of all clusters, by state and reason.",
			[]query{{"sum by (state, reason) (trellis_installations{})", "{{state}} {{reason}}"}},
		},
		{
			"By add-on", "short", "The twenty most frequent pairs of add-on and state. The first 200 add-ons have their own series.",
			[]query{{"topk(20, sum by (addon, state) (trellis_addon_installations{}))", "{{addon}} {{state}}"}},
		},
		{
			"Updates", "short", "Installations that could move to a newer version, by add-on and version: the twenty most frequent pairs.",
			[]query{{"topk(20, sum by (addon, version) (trellis_available_updates{}))", "{{addon}} {{version}}"}},
		},
		{
			"From change to applied", "s", "Median and 90th percentile of the time from a change until it is completely applied.",
			[]query{
				{"histogram_quantile(0.5, sum by (le) (rate(trellis_installation_delay_seconds_bucket{}[$__rate_interval])))", "half"},
				{"histogram_quantile(0.9, sum by (le) (rate(trellis_installation_delay_seconds_bucket{}[$__rate_interval])))", "90th percentile"},
			},
		},
		{
			"Revisions", "ops", "Revisions that were completely applied, and rollbacks to the last good revision.",
			[]query{{rate("trellis_installation_revisions_total", "result"), "{{result}}"}},
		},
		{
			"Drift", "ops", "Objects that were repaired after drift, and objects that were written for a revision.",
			[]query{{rate("trellis_installation_objects_total", "done"), "{{done}}"}},
		},
		{
			"Conflicts", "short", "Installations that stop at an object or field of another owner, or at an immutable field.",
			[]query{{`sum by (reason) (trellis_installations{reason=~"Conflict|ObjectExists|ReleaseNameTaken|ImmutableField"})`, "{{reason}}"}},
		},
		{
			"Waiting", "short", "Installations that wait for another installation, for an action of a user, or for their cluster.",
			[]query{{`sum by (reason) (trellis_installations{reason=~"` + held + `"})`, "{{reason}}"}},
		},
	}}
}

func clusters() row {
	return row{"Clusters", []panel{
		{
			"User clusters", "short", "Clusters with installations. Those that are not connected are listed by reason.",
			[]query{{"sum by (state, reason) (trellis_user_clusters{})", "{{state}} {{reason}}"}},
		},
		{
			"Not connected", "short", "Clusters that can't be reached, by reason. Meanwhile, Trellis changes nothing in these clusters.",
			[]query{{`sum by (reason) (trellis_user_clusters{state="notConnected"})`, "{{reason}}"}},
		},
		{
			"Slow clusters", "short", "Clusters whose recent reconciliations were slow. They are in the slow lane, a separate queue.",
			[]query{{"sum by (namespace) (trellis_queue_slow_clusters{})", "slow"}},
		},
		{
			"Core add-ons", "short", "Core add-ons of all clusters, by state.",
			[]query{{"sum by (state) (trellis_core_addons{})", "{{state}}"}},
		},
		{
			"Custom core list", "short", "1 for the present state of the list, 0 for all other states.",
			[]query{{"max by (state) (trellis_core_list{})", "{{state}}"}},
		},
	}}
}

func sets() row {
	return row{"AddonSets", []panel{
		{
			"Clusters of sets", "short", "Clusters by their state in their sets. In a blocked cluster, an item of the set can't be installed.",
			[]query{{"sum by (state) (trellis_set_clusters{})", "{{state}}"}},
		},
		{
			"Rollouts", "short", "Sets by the state of their rollout.",
			[]query{{"sum by (state) (trellis_set_rollouts{})", "{{state}}"}},
		},
		{
			"Moves", "ops", "Installations that sets created, changed or removed.",
			[]query{{rate("trellis_set_moves_total", "namespace"), "moves"}},
		},
	}}
}

func queue() row {
	return row{"Queue of installations", []panel{
		{
			"Waits for a worker", "s", "90th percentile of how long installations wait, by lane.",
			[]query{{worst("trellis_queue_wait_seconds", "lane"), "{{lane}}"}},
		},
		{
			"Waiting and running", "short", "Installations that wait for a worker, and busy workers, by lane.",
			[]query{
				{"sum by (lane) (trellis_queue_ready{})", "waiting {{lane}}"},
				{"sum by (lane) (trellis_queue_running{})", "running {{lane}}"},
			},
		},
		{
			"Stopped reconciliations", "ops", "Reconciliations that were stopped because they took too long.",
			[]query{{rate("trellis_queue_overdue_total", "limit"), "{{limit}}"}},
		},
	}}
}

func renderings() row {
	return row{"Renderings", []panel{
		{
			"Results", "ops", "Renderings by method and result. A result may be the limit that a rendering reached.",
			[]query{{rate("trellis_render_results_total", "method, result"), "{{method}} {{result}}"}},
		},
		{
			"Time of a rendering", "s", "90th percentile.",
			[]query{{worst("trellis_render_seconds", "method"), "{{method}}"}},
		},
		{
			"Cached or rendered", "ops", "Requests for renderings, answered with a cached rendering or with another one.",
			[]query{{rate("trellis_render_requests_total", "from"), "{{from}}"}},
		},
		{
			"Renderers", "short", "Live rendering processes.",
			[]query{{"sum by (namespace) (trellis_render_children{})", "alive"}},
		},
	}}
}

func offers() row {
	return row{"Offers and queries", []panel{
		{
			"Offers", "ops", "Decisions about the versions that fit clusters, and available catalogues that were written.",
			[]query{
				{rate("trellis_available_decisions_total", "namespace"), "decided"},
				{rate("trellis_available_writes_total", "namespace"), "written"},
			},
		},
		{
			"Queries", "reqps", "Requests to the query endpoint by route and code.",
			[]query{{rate("trellis_query_requests_total", "route, code"), "{{route}} {{code}}"}},
		},
		{
			"Time of a query", "s", "90th percentile.",
			[]query{{worst("trellis_query_request_seconds", "route"), "{{route}}"}},
		},
	}}
}
