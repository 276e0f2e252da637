// Package ownership says whose the objects of a user cluster are. It is pure.
package ownership
