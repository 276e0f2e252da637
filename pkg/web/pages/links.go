package pages

import (
	"net/url"
	"strings"
)

// at is the path of a page, of its segments. All addresses of pages are made here: no text of others becomes another origin.
func at(segments ...string) string {
	var path strings.Builder
	for _, one := range segments {
		path.WriteString("/" + url.PathEscape(one))
	}
	if path.Len() == 0 {
		return "/"
	}
	return path.String()
}

// with adds parameters, as pairs of names and values, to a path. Empty values are left out.
func with(path string, pairs ...string) string {
	query := url.Values{}
	if setAll(query, pairs...); len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}

// setAll sets parameters that have a value.
func setAll(query url.Values, pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
}

// atCluster is the page of a cluster, atInstallation that of an installation.
func atCluster(seed, namespace, name string) string { return at("clusters", seed, namespace, name) }

func atInstallation(seed, namespace, name string) string {
	return at("clusters", seed, namespace, "installations", name)
}

// atValues is the form that changes an installation.
func atValues(seed, namespace, name string) string {
	return at("clusters", seed, namespace, "values", name)
}

// atInstall is the form that installs an add-on in a cluster.
func atInstall(seed, namespace, cluster, addon string) string {
	return at("clusters", seed, namespace, cluster, "install", addon)
}

// outside is a link to another site: https only, else "".
func outside(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil {
		return ""
	}
	return parsed.String()
}
