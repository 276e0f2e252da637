package upstream

import (
	"context"
	"sync"

	"github.com/trellis-addons/trellis/pkg/web/config"
)

// Seed is a seed's API server and query endpoint.
type Seed struct {
	Name   string
	API    *Target
	Query  *Target
	follow *follower
}

// Platform are all servers of a configuration.
type Platform struct {
	Seeds []*Seed
	// Master is nil if none is configured. Namespace has its catalogues and sets.
	Master    *Target
	Namespace string
}

// New makes the clients of a configuration.
func New(of *config.Config, options Options) (*Platform, error) {
	made := &Platform{}
	if of.Master != nil {
		master, err := NewTarget("the master", of.Master.Server, options)
		if err != nil {
			return nil, err
		}
		made.Master, made.Namespace = master, of.Master.Namespace
	}
	for _, one := range of.Seeds {
		api, err := NewTarget("seed "+one.Name, one.Server, options)
		if err != nil {
			return nil, err
		}
		query, err := NewTarget("the query endpoint of seed "+one.Name, config.Server{Server: one.Query, CA: one.QueryCA}, options)
		if err != nil {
			return nil, err
		}
		made.Seeds = append(made.Seeds, &Seed{Name: one.Name, API: api, Query: query, follow: newFollower(query)})
	}
	return made, nil
}

// Close ends idle connections.
func (p *Platform) Close() {
	if p.Master != nil {
		p.Master.Close()
	}
	for _, one := range p.Seeds {
		one.API.Close()
		one.Query.Close()
	}
}

// Seed is the seed of a name; nil if there is none.
func (p *Platform) Seed(name string) *Seed {
	for _, one := range p.Seeds {
		if one.Name == name {
			return one
		}
	}
	return nil
}

// Of is the outcome of a question to one seed.
type Of[T any] struct {
	Seed   *Seed
	Answer T
	Err    error
}

// Each asks seeds at the same time. Results are in the order of the seeds.
func Each[T any](ctx context.Context, seeds []*Seed, ask func(context.Context, *Seed) (T, error)) []Of[T] {
	found := make([]Of[T], len(seeds))
	var all sync.WaitGroup
	for i, one := range seeds {
		all.Go(func() {
			answer, err := ask(ctx, one)
			found[i] = Of[T]{one, answer, err}
		})
	}
	all.Wait()
	return found
}
