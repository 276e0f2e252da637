package query

// RouteTable lists what is served: method and path, and the names of parameters.
func RouteTable() map[string][]string {
	table := map[string][]string{}
	for _, route := range routes {
		table[route.method+" "+route.path] = route.parameters
	}
	return table
}

// RouteOf is the documented path of a request's path; empty where it has none.
func RouteOf(path string) string {
	found, _, _ := find("", path)
	if found == nil {
		return ""
	}
	return found.path
}
