// Package release installs a release from its folder, as docs/guides/air-gap.md says: the images of both managers and everything that an
// add-on is made of come from one registry with a login, and there is no other host. The test runs in a network of its own that has
// nothing but the loopback interface, on three bare API servers: a master, a seed and a user cluster. The managers are the containers of
// the images that their Deployments name, pulled by digest with the pods' own login (package pod). Part `install` of `make test-long`
// runs it.
package release
