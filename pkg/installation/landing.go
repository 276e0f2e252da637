package installation

// Landing is where an installation installs, as far as one place says so.
type Landing struct {
	// Namespace in the user cluster; empty: the place does not say.
	Namespace string
	// Create says that the namespace is made if it is missing.
	Create bool
}

// LandingOf an item that a controller installs: where the item says; else where its installation is,
// since that can't be changed; else where the catalogue says.
func LandingOf(item, live, offered Landing) Landing {
	for _, one := range []Landing{live, offered} {
		if item.Namespace == "" && one.Namespace != "" {
			item = Landing{one.Namespace, item.Create || one.Create}
		}
	}
	return item
}
