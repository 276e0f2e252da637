package main

import (
	"context"

	"github.com/trellis-addons/trellis/test/fleet"
)

// serversVariable names the environment variable by which packages find API servers that run already.
const serversVariable = fleet.PoolVariable

// startServers starts the API servers that packages share. It returns the value of the variable.
func startServers(ctx context.Context) (folder string, stop func() error, err error) {
	pool, err := fleet.StartPool(ctx, fleet.PoolOptions{})
	if err != nil {
		return "", nil, err
	}
	return pool.Folder(), pool.Stop, nil
}
