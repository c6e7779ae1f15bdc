package catalog

import (
	"context"
	"sync/atomic"

	"github.com/puzpuzpuz/xsync/v4"
	"github.com/rs/zerolog"

	"troupe/actors/identity"
	"troupe/actors/internal/grace"
	"troupe/persistence"
	"troupe/statemachine"
)

// Catalog knows every definition that was ever published. What is published is kept in the store by id and version,
// because instances stay on the version that they were created with (statemachine/DEFINITION.md, "Versions").
//
// Readers are lock-free.
type Catalog struct {
	store        *persistence.Store
	parser       *statemachine.Parser
	log          zerolog.Logger
	awaitCurrent func(context.Context) error // Options.Current
	bounds       bounds

	// current has what new instances get, and for workflows whose file is gone what rules their instances.
	current atomic.Pointer[currentVersions]
	// builtin are the definitions of our own, which no file can take away. Written before the router starts.
	builtin currentVersions
	// versions has the definitions that instances asked for, and those that cannot be read with the reason.
	versions *xsync.Map[versionKey, version]
	// timeless are those that were not read yet and have no schedules, as far as somebody has looked.
	timeless  *xsync.Map[versionKey, struct{}]
	compiling turn // held while one of them is being compiled
	// origins say where versions come from, and owners who owns each workflow: replaced, never changed.
	origins *origins
	owners  atomic.Pointer[map[string]ownership]
	// retirements are those of a cluster: replaced, never changed. retiring is held while one is carried out here.
	retirements atomic.Pointer[retirements]
	retiring    turn
	vacate      func(context.Context, Vacancy) (used uint64, err error) // Options.Vacate
	// publishing is held while a set is being published, also over the commit (DESIGN.md, "Definitions").
	publishing struct {
		turn
		pins       map[versionKey]*atomic.Int64 // see currentVersion.pins
		indexes    storedIndexes                // as the store has them
		retirement uint64                       // the number of the one that is carried out here; 0: none
	}

	// indexes are what commits maintain (DESIGN.md, "Generations of indexes"). Replaced, never changed.
	indexes        atomic.Pointer[Indexes]
	commits        grace.Period  // those that may work with what was replaced
	indexesChanged chan struct{} // indexesChanged has an entry when there may be something to build or drop
	inShards       inShards      // what the catalog knows of the indexes in shards with replicas
}

// turn is a lock. It is no mutex, because bubbles of testing/synctest do not let time pass for who waits for one.
type turn chan struct{}

// Lock implements sync.Locker.
func (t turn) Lock() { t <- struct{}{} }

// Unlock implements sync.Locker.
func (t turn) Unlock() { <-t }

type currentVersions map[string]*currentVersion

type currentVersion struct {
	// Definition is nil when what is stored was not needed yet, or cannot be read; Catalog.rules has it, or knows why.
	*statemachine.Definition
	version   uint64
	listed    bool          // its file is in the current set, or it is published: new instances can be made
	published bool          // it came by PublishDefinition, and no file may name the workflow
	older     []uint64      // the versions below that files of the current set name, too
	pins      *atomic.Int64 // It becomes closed, for good, when other content takes the version, or the version goes
}

// closed is a value of pins below any that creates can bring it to.
const closed = -1 << 40

type origin struct {
	home bool // files of a home
	by   identity.UserID
}

// origins are those that somebody has asked for. What is published again is asked for anew.
type origins = xsync.Map[versionKey, origin]

type ownership struct {
	// By first published it through the interface; since a file of a home named it last, or when it is not known: "".
	By     string               `json:"by,omitempty"`
	Owners *statemachine.Owners `json:"owners,omitempty"` // those that its newest version names; nil: none
}

func (c *Catalog) pinsLocked(key versionKey) *atomic.Int64 {
	if c.publishing.pins[key] == nil {
		c.publishing.pins[key] = new(atomic.Int64)
	}
	return c.publishing.pins[key]
}

// bounds are those of what is published through the interface (gateway/INTERFACE.md, "Publishing a definition").
type bounds struct {
	workflows int // that one user has published first, also those that are gone: their ids stay the user's
	versions  int // of one workflow, also those whose numbers a cluster keeps
}

// Vacancy asks whether the instances of a shard use versions of a workflow, by the node that leads the shard.
type Vacancy struct {
	Shard    uint16   `json:"shard"`
	Number   uint64   `json:"number"` // of the retirement
	Workflow string   `json:"workflow"`
	Versions []uint64 `json:"versions"`
}

type versionKey struct {
	workflow string
	version  uint64
}

type version struct {
	*statemachine.Definition
	err error
}

// confirmation is a waiter for one who waits later.
type confirmation chan error

// Committed implements persistence.Waiter.
func (c confirmation) Committed(err error) { c <- err }

func (c confirmation) await(ctx context.Context) error {
	select {
	case err := <-c:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
