package main

// worst is the 90th percentile of a time, by labels.
func worst(histogram, by string) string {
	return "histogram_quantile(0.9, sum by (" + by + ", le) (rate(" + histogram + "_bucket{}[$__rate_interval])))"
}

// rate is how often something happens in a second, by labels.
func rate(counter, by string) string {
	return "sum by (" + by + ") (rate(" + counter + "{}[$__rate_interval]))"
}

// work has panels about the controllers of both managers.
func work() row {
	return row{"Work", []panel{
		{
			"Time of each step", "s", "90th percentile of the runs of each step, by controller.",
			[]query{{worst("trellis_step_seconds", "controller, step"), "{{controller}} {{step}}"}},
		},
		{
			"Share of each step", "percentunit", "Seconds per second in which each step runs or waits for answers.",
			[]query{{"sum by (controller, step) (rate(trellis_step_seconds_sum{}[$__rate_interval]))", "{{controller}} {{step}}"}},
		},
		{
			"Waits in queues", "s", "90th percentile of how long objects wait for a worker of their controller.",
			[]query{{worst("workqueue_queue_duration_seconds", "name"), "{{name}}"}},
		},
		{
			"Length of queues", "short", "Objects that wait for a worker.",
			[]query{{"sum by (name) (workqueue_depth{})", "{{name}}"}},
		},
		{
			"Reconciliations", "ops", "Reconciliations by controller and result. Errors are retried.",
			[]query{{rate("controller_runtime_reconcile_total", "controller, result"), "{{controller}} {{result}}"}},
		},
		{
			"Calls to other API servers", "reqps", "Calls to user clusters and seeds, by verb and result.",
			[]query{{rate("trellis_remote_requests_total", "verb, result"), "{{verb}} {{result}}"}},
		},
	}}
}

// sources has panels about sources of content.
func sources() row {
	return row{"Sources", []panel{
		{
			"Calls to sources", "reqps", "Requests that resolve a reference to a revision, and requests that fetch a revision, by host.",
			[]query{
				{rate("trellis_fetch_resolutions_total", "host"), "resolved {{host}}"},
				{rate("trellis_fetch_fetches_total", "host"), "fetched {{host}}"},
			},
		},
		{
			"Failures of sources", "reqps", "Requests that failed, by host and reason. Stored content stays in use.",
			[]query{{rate("trellis_fetch_failures_total", "host, reason"), "{{host}} {{reason}}"}},
		},
		{
			"Answers from the store", "ops", "Content that the store served without a request, by host.",
			[]query{{rate("trellis_fetch_hits_total", "host"), "{{host}}"}},
		},
		{
			"Fetched", "Bps", "Size of fetched content, unpacked, by host.",
			[]query{{rate("trellis_fetch_bytes_total", "host"), "{{host}}"}},
		},
		{
			"Store", "bytes", "Size of the content that each replica stores, unpacked.",
			[]query{{"max by (namespace, pod) (trellis_fetch_store_bytes{})", "{{pod}}"}},
		},
	}}
}

// process has panels about the manager's process.
func process() row {
	return row{"Manager", []panel{
		{
			"Leader", "short", "1 for the leading replica, 0 for all others.",
			[]query{{"max by (namespace, pod) (leader_election_master_status{})", "{{pod}}"}},
		},
		{
			"Build", "short", "Builds that run. There is more than one only during an upgrade.",
			[]query{{"count by (version, commit) (trellis_build_info{})", "{{version}} {{commit}}"}},
		},
		{
			"Memory", "bytes", "Resident memory of each replica.",
			[]query{{"max by (namespace, pod) (process_resident_memory_bytes{})", "{{pod}}"}},
		},
		{
			"Processor", "percentunit", "CPU time of each replica; 1 is one core.",
			[]query{{rate("process_cpu_seconds_total", "namespace, pod"), "{{pod}}"}},
		},
		{
			"Calls to its own API server", "reqps", "Calls by method and code.",
			[]query{{rate("rest_client_requests_total", "method, code"), "{{method}} {{code}}"}},
		},
		{
			"Certificate of the webhooks", "s", "Time until the certificate expires. It is renewed 30 days before it expires.",
			[]query{{"min by (namespace) (trellis_webhook_certificate_expiry_timestamp_seconds{} > 0) - time()", "{{namespace}}"}},
		},
	}}
}
