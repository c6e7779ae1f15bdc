// Package catalog has the definitions in use: which version new instances get, what every stored version means, and the
// indexes that definitions declare. A set of files is published as a whole or not at all; PublishDefinition adds single
// definitions of workflows that no file names. Content is replaced under a version, or a version retired, only when no
// instance has it. Readers take no lock, except a Pin of a version that is being published or retired. DESIGN.md says
// who decides what in a cluster. Everything is safe for concurrent use once Open has returned and AddBuiltin was
// called.
package catalog

import (
	"context"
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v4"
	"github.com/rs/zerolog"

	"troupe/persistence"
	"troupe/statemachine"
)

// Options configures Open.
type Options struct {
	Store *persistence.Store
	// Parser brings the expression language. Stored definitions are read again by one like it that takes every role,
	// because roles come and go, and that minds only what keeps a definition from running.
	Parser *statemachine.Parser
	Log    zerolog.Logger
	// Current returns when everything that was acknowledged before in any node of the cluster is visible in Store, or
	// why it is not. Nil: never.
	Current func(context.Context) error
	// Vacate has the node that leads the shard answer Catalog.Vacate. Nil: this catalog answers.
	Vacate func(context.Context, Vacancy) (used uint64, err error)
}

// Open finds what was published before. A definition is compiled when it is first needed, so that many of them, or one
// that cannot be read, do not keep the service from starting.
func Open(o Options) (*Catalog, error) {
	c := &Catalog{
		store: o.Store, log: o.Log, awaitCurrent: o.Current, bounds: defaultBounds, versions: xsync.NewMap[versionKey, version](), origins: xsync.NewMap[versionKey, origin](), timeless: xsync.NewMap[versionKey, struct{}](),
		parser: o.Parser.With(statemachine.ParserOptions{Stored: true}), indexesChanged: make(chan struct{}, 1),
	}
	c.builtin = currentVersions{}
	c.publishing.turn, c.compiling, c.retiring = make(turn, 1), make(turn, 1), make(turn, 1)
	if c.vacate = o.Vacate; c.vacate == nil {
		c.vacate = c.Vacate
	}
	c.publishing.pins = map[versionKey]*atomic.Int64{}
	c.indexes.Store(&Indexes{})
	c.inShards.init(o.Store)
	if err := c.reloadIndexesLocked(); err != nil { // NB: nobody else has it yet
		return nil, err
	}
	return c, c.readCurrentLocked()
}
