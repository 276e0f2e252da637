// Package oci makes images of programs without a container engine: for each program an index with
// an image for each platform, and for each image a list of what is in it, as a referrer of OCI 1.1.
//
// An image holds the program, authorities for TLS, and nothing else: no shell, no package manager,
// no account but the number that the program runs as. Equal programs give equal digests: no time is
// in an image but the commit's.
package oci
