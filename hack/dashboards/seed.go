package main

// seed is the dashboard of chart trellis-seed.
func seed() dashboard {
	return dashboard{"trellis-seed", "Trellis seed", []row{
		installations(), clusters(), sets(), queue(), work(), renderings(), sources(), offers(), process(),
	}}
}

// held are the reasons of installations that wait for something else than their own work.
const held = "WaitingForOrder|DependencyMissing|DependencyCycle|Paused|PruneNeedsApproval|ClusterNotReady|RemovalBlocked"

func installations() row {
	return row{"Installations", []panel{
		{
			"Installations", "short", "AddonInstallations of all clusters, by how they stand and why.",
			[]query{{"sum by (state, reason) (trellis_installations{})", "{{state}} {{reason}}"}},
		},
		{
			"By add-on", "short", "The twenty of an add-on and state that are most. The first 200 add-ons have figures of their own.",
			[]query{{"topk(20, sum by (addon, state) (trellis_addon_installations{}))", "{{addon}} {{state}}"}},
		},
		{
			"From change to applied", "s", "Time from a change until it was applied to its end: median and 90th percentile.",
			[]query{
				{"histogram_quantile(0.5, sum by (le) (rate(trellis_installation_delay_seconds_bucket{}[$__rate_interval])))", "half"},
				{"histogram_quantile(0.9, sum by (le) (rate(trellis_installation_delay_seconds_bucket{}[$__rate_interval])))", "90th percentile"},
			},
		},
		{
			"Revisions", "ops", "Revisions that were applied to their end, and those that were given up for what was good before.",
			[]query{{rate("trellis_installation_revisions_total", "result"), "{{result}}"}},
		},
		{
			"Drift", "ops", "Objects that were put back since they had drifted, beside those written for a revision.",
			[]query{{rate("trellis_installation_objects_total", "done"), "{{done}}"}},
		},
		{
			"Conflicts", "short", "Installations that stop at what somebody else has, or at a field that can't change.",
			[]query{{`sum by (reason) (trellis_installations{reason=~"Conflict|ObjectExists|ReleaseNameTaken|ImmutableField"})`, "{{reason}}"}},
		},
		{
			"Held", "short", "Installations that wait for others, for people or for their cluster.",
			[]query{{`sum by (reason) (trellis_installations{reason=~"` + held + `"})`, "{{reason}}"}},
		},
	}}
}

func clusters() row {
	return row{"Clusters", []panel{
		{
			"User clusters", "short", "Clusters that something is asked for in: connected, or why not.",
			[]query{{"sum by (state, reason) (trellis_user_clusters{})", "{{state}} {{reason}}"}},
		},
		{
			"Not connected", "short", "Those that can't be asked, by reason. Nothing is changed in them meanwhile.",
			[]query{{`sum by (reason) (trellis_user_clusters{state="notConnected"})`, "{{reason}}"}},
		},
		{
			"Slow clusters", "short", "Clusters whose passes were slow lately, and that have a lane of their own.",
			[]query{{"sum by (namespace) (trellis_queue_slow_clusters{})", "slow"}},
		},
		{
			"Core add-ons", "short", "Core add-ons of all clusters by how they stand.",
			[]query{{"sum by (state) (trellis_core_addons{})", "{{state}}"}},
		},
		{
			"Custom core list", "short", "1 for the state that the list is in.",
			[]query{{"max by (state) (trellis_core_list{})", "{{state}}"}},
		},
	}}
}

func sets() row {
	return row{"AddonSets", []panel{
		{
			"Clusters of sets", "short", "Clusters by how they stand in their sets; blocked are those where an item can't be carried out.",
			[]query{{"sum by (state) (trellis_set_clusters{})", "{{state}}"}},
		},
		{
			"Rollouts", "short", "Sets by where their rollout is.",
			[]query{{"sum by (state) (trellis_set_rollouts{})", "{{state}}"}},
		},
		{
			"Moves", "ops", "Installations that sets made, changed or removed.",
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
			"Waiting and in work", "short", "Installations that wait for a worker, and workers that are busy, by lane.",
			[]query{
				{"sum by (lane) (trellis_queue_ready{})", "waiting {{lane}}"},
				{"sum by (lane) (trellis_queue_running{})", "in work {{lane}}"},
			},
		},
		{
			"Passes cut short", "ops", "Passes that were ended since they took too long.",
			[]query{{rate("trellis_queue_overdue_total", "limit"), "{{limit}}"}},
		},
	}}
}

func renderings() row {
	return row{"Renderings", []panel{
		{
			"Results", "ops", "Renderings by method and result; the last ones are limits that ended them.",
			[]query{{rate("trellis_render_results_total", "method, result"), "{{method}} {{result}}"}},
		},
		{
			"Time of a rendering", "s", "90th percentile.",
			[]query{{worst("trellis_render_seconds", "method"), "{{method}}"}},
		},
		{
			"Kept or rendered", "ops", "Requests that a kept rendering answered, and others.",
			[]query{{rate("trellis_render_requests_total", "from"), "{{from}}"}},
		},
		{
			"Renderers", "short", "Processes that are alive.",
			[]query{{"sum by (namespace) (trellis_render_children{})", "alive"}},
		},
	}}
}

func offers() row {
	return row{"Offers and queries", []panel{
		{
			"Offers", "ops", "Decisions on what clusters of one kind are offered, and catalogues written by them.",
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
