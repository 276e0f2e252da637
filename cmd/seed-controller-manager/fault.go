//go:build !faults

package main

import "context"

// faultPoint is nothing in the product.
func faultPoint(context.Context, string) {}
