//go:build !faults

package main

// faultPoint is nothing in the product.
func faultPoint(string) {}
