package main

// master is the dashboard of chart trellis-master.
func master() dashboard {
	return dashboard{"trellis-master", "Trellis master", []row{
		{"Catalogues", []panel{
			{
				"Catalogues", "short", "AddonCatalogues that people wrote, by state and reason.",
				[]query{{"sum by (state, reason) (trellis_catalogues{})", "{{state}} {{reason}}"}},
			},
			{
				"Catalogues on seeds", "short", "How many AddonCatalogues reached each seed in their present state, and how many did not.",
				[]query{{"sum by (seed, state) (trellis_seed_catalogues{})", "{{seed}} {{state}}"}},
			},
			{
				"Age of the content of seeds", "s",
				"Time since merged content last reached each seed.",
				[]query{{"time() - max by (seed) (trellis_seed_synced_timestamp_seconds{})", "{{seed}}"}},
			},
		}},
		{"AddonSets", []panel{{
			"AddonSets", "short", "AddonSets by their state on all seeds together, and reason.",
			[]query{{"sum by (state, reason) (trellis_sets{})", "{{state}} {{reason}}"}},
		}}},
		work(), sources(), process(),
	}}
}
