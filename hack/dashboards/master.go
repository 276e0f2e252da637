package main

// master is the dashboard of chart trellis-master.
func master() dashboard {
	return dashboard{"trellis-master", "Trellis master", []row{
		{"Catalogues", []panel{
			{
				"Catalogues", "short", "AddonCatalogues that people wrote, by how they stand and why.",
				[]query{{"sum by (state, reason) (trellis_catalogues{})", "{{state}} {{reason}}"}},
			},
			{
				"Catalogues on seeds", "short", "How many of them each seed has as they are, and how many it lacks.",
				[]query{{"sum by (seed, state) (trellis_seed_catalogues{})", "{{seed}} {{state}}"}},
			},
			{
				"Age of what seeds have", "s",
				"Time since the last that was merged reached each seed. Of a seed that is behind it is how long nothing has come.",
				[]query{{"time() - max by (seed) (trellis_seed_synced_timestamp_seconds{})", "{{seed}}"}},
			},
		}},
		{"AddonSets", []panel{{
			"AddonSets", "short", "AddonSets by how they are carried out on all seeds together, and why.",
			[]query{{"sum by (state, reason) (trellis_sets{})", "{{state}} {{reason}}"}},
		}}},
		work(), sources(), process(),
	}}
}
