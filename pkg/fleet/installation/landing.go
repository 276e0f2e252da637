package installation

// Landing is the target namespace of an installation, according to one source.
type Landing struct {
	// Namespace in the user cluster; empty if the source has none.
	Namespace string
	// Create says that the namespace is created if it is missing.
	Create bool
}

// LandingOf is the target of an item that a controller installs: the item's namespace; or else that of its
// installation, since it is immutable; or else the catalogue's.
func LandingOf(item, live, offered Landing) Landing {
	for _, one := range []Landing{live, offered} {
		if item.Namespace == "" && one.Namespace != "" {
			item = Landing{one.Namespace, item.Create || one.Create}
		}
	}
	return item
}
