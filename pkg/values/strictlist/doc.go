// Package strictlist reads lists that a platform's admins write into a key of a ConfigMap: the whole list or none of
// it. An error names the place in the list, without a value, and the last good list stays.
package strictlist
