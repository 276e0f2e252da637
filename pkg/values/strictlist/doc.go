// Package strictlist reads lists that a platform's admins write into a key of a ConfigMap: the whole list or
// none of it. What is wrong with one is said with its place and without a value, and the last good one stays.
package strictlist
