// Package calls makes the calls to a user cluster's API server that are about objects.
package calls
