package catalog

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"troupe/actors/identity"
	"troupe/actors/internal/concurrent"
	"troupe/actors/internal/wait"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/filter"
)

// Index is one of the indexes that a workflow's newest definition declares. Its entries are written in the commits that
// they describe.
type Index struct {
	number uint32 // in keys; never used again
	field  *filter.Field
	// whole says that every instance has its entries; nobody asks the index before. With replicas the rows of each
	// shard say so.
	whole atomic.Bool
	// several says that some instance has, or had, several values. It is set before the entries are visible, and stays.
	several atomic.Bool
}

// Field is what is indexed.
func (ix *Index) Field() *filter.Field { return ix.field }

// Number is the index's in keys.
func (ix *Index) Number() uint32 { return ix.number }

// Path is the declared path.
func (ix *Index) Path() string { return ix.field.Path() }

// Whole says that every instance has its entries: those of any snapshot taken later are all there, as long as the index
// is among the Indexes after that.
func (ix *Index) Whole() bool { return ix.whole.Load() }

// Several says that some instance has, or had, several values. In a cluster that is known of a snapshot after
// [Catalog.IsWholeAt].
func (ix *Index) Several() bool { return ix.several.Load() }

// Prefix is what the keys of all shards begin with; a value and an id follow.
func (ix *Index) Prefix() []byte { return key.IndexPrefix(nil, key.EveryShard, ix.number) }

func (ix *Index) key(dst []byte, sh key.Shard, value []byte, id key.ID) []byte {
	return key.Index(dst, sh, ix.number, value, id)
}

// marks is an index number that no declared index gets. An entry in it has the number of an index as its value and
// says: in this shard, some instance has several values in that index.
const marks = 0

func appendMark(dst []byte, sh key.Shard, number uint32) []byte {
	return key.Index(dst, sh, marks, binary.BigEndian.AppendUint32(nil, number), key.ID{})
}

// loadMarks is for a standalone store: elsewhere IsWholeAt looks.
func (ix *Index) loadMarks(store *persistence.Store) error {
	if !store.Standalone() {
		return nil
	}
	return store.Scan(appendMark(nil, key.EveryShard, ix.number), func(_, _ []byte) error {
		ix.several.Store(true)
		return nil
	})
}

func (ix *Index) mark(w *persistence.Batch, sh key.Shard, values [][]byte) {
	if len(values) > 1 {
		ix.several.Store(true)
		w.Set(appendMark(nil, sh, ix.number), nil)
	}
}

// Indexes has the indexes of each workflow. It is never changed.
type Indexes map[string][]*Index

// Find returns the workflow's index on a path; nil when there is none.
func (s Indexes) Find(workflow, path string) *Index {
	for _, ix := range s[workflow] {
		if ix.Path() == path {
			return ix
		}
	}
	return nil
}

// storedIndexes is the form in which the indexes are kept.
type storedIndexes struct {
	Last    uint32        `json:"last"` // the last number that was given
	Indexes []storedIndex `json:"indexes"`
}

type storedIndex struct {
	Number   uint32     `json:"number"`
	Workflow string     `json:"workflow"`
	Path     string     `json:"path"`
	State    indexState `json:"state"`
}

// indexState is how far an index is. Its life on a single node:
//
//	building ──► whole ──► dropping ──► (no row)
//	    └───────────────────┘
//
// In a cluster a row of Meta says that the index is declared, whatever its state, unless that is dropping. How far it
// is, each shard says; see inShards.
type indexState string

const (
	building indexState = "building"
	whole    indexState = "whole"
	dropping indexState = "dropping"
)

var errDropped = errors.New("the index was dropped")

const indexesSetting = "indexes"

// withoutDropped is all that dropping takes in a cluster: each shard frees what no row declares.
func (rows *storedIndexes) withoutDropped() (some bool) {
	before := len(rows.Indexes)
	rows.Indexes = slices.DeleteFunc(rows.Indexes, func(row storedIndex) bool { return row.State == dropping })
	return len(rows.Indexes) < before
}

// Enter writes all entries of an instance. It returns key, the room that it used.
func (ix *Index) Enter(w *persistence.Batch, key []byte, sh key.Shard, id key.ID, d filter.Document) []byte {
	values := ix.field.Keys(d)
	for _, value := range values {
		key = ix.key(key[:0], sh, value, id)
		w.Set(key, nil)
	}
	ix.mark(w, sh, values)
	return key
}

// Update writes what a step changes in the index. before is nil for a new instance. It returns key, the room that it
// used.
func (ix *Index) Update(w *persistence.Batch, key []byte, sh key.Shard, id key.ID, before, after *statemachine.Instance) []byte {
	var old [][]byte
	if before != nil {
		old = ix.field.Keys(documentOf(before))
	}
	now := ix.field.Keys(documentOf(after))
	difference(old, now, func(value []byte) {
		key = ix.key(key[:0], sh, value, id)
		w.Delete(key)
	})
	difference(now, old, func(value []byte) {
		key = ix.key(key[:0], sh, value, id)
		w.Set(key, nil)
	})
	ix.mark(w, sh, now)
	return key
}

// documentOf is what indexes see of an instance.
func documentOf(in *statemachine.Instance) filter.Document {
	return filter.Document{Key: in.Key(), Public: in.Public, Private: in.Private}
}

// Leave removes all entries of an instance that is deleted. It returns key, the room that it used.
func (ix *Index) Leave(w *persistence.Batch, key []byte, sh key.Shard, id key.ID, of *statemachine.Instance) []byte {
	for _, value := range ix.field.Keys(documentOf(of)) {
		key = ix.key(key[:0], sh, value, id)
		w.Delete(key)
	}
	return key
}

// difference gives each of a that is not in b. Both are sorted.
func difference(a, b [][]byte, give func([]byte)) {
	for _, value := range a {
		for len(b) > 0 && bytes.Compare(b[0], value) < 0 {
			b = b[1:]
		}
		if len(b) == 0 || !bytes.Equal(b[0], value) {
			give(value)
		}
	}
}

// The row of an index in a shard says how far it is there:
//
//	(no row) ──► kept ──► whole ──► (no row)
//	    ▲          │
//	    └──────────┘
//
// kept: all writes behind this row in the shard's log maintain the index, as long as the row is there. whole: besides,
// every instance of the shard has its entries. Without a row, entries may be there or not, and may be old.
//
// A commit maintains an index, or the row is removed in front of it in the log. Three things ensure that: the check of
// each commit, the removal of rows when an index is dropped, and the rows of the builder.
type inShards struct {
	// checked has for each shard the epoch in which commits maintain all that it has rows of. Empty in a standalone
	// store.
	checked []atomic.Uint64

	floors sync.Mutex // held while a retirement is looked at and a row about it appended; that does not wait

	mu sync.Mutex // held while the Indexes are replaced, and while one of the three appends
	// last is the last number of an index in the rows of Meta that are installed: every number up to it that is not
	// among the Indexes is dropped for good.
	last uint32
	owed map[key.Shard][]uint32 // owed has dropped indexes whose rows could not be removed in a shard; see checked
}

// kept is a state of an index in a shard; the other one is whole.
const kept indexState = "kept"

func (s *inShards) init(store *persistence.Store) {
	s.owed = map[key.Shard][]uint32{}
	if !store.Standalone() {
		s.checked = make([]atomic.Uint64, store.Shards())
	}
}

func (s *Indexes) numbers() map[uint32]bool {
	numbers := map[uint32]bool{}
	for _, indexes := range *s {
		for _, ix := range indexes {
			numbers[ix.number] = true
		}
	}
	return numbers
}

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
	known   atomic.Uint64 // see Known; it is set after what it is about
	// builtin are the definitions of our own, which no file can take away. Written before the router starts.
	builtin currentVersions
	// versions has the definitions that instances asked for, and those that cannot be read with the reason.
	versions concurrent.Map[versionKey, version]
	jobs     atomic.Pointer[jobTypes] // nil: nobody has asked
	// timeless are those that were not read yet and have no schedules, as far as somebody has looked.
	timeless  concurrent.Map[versionKey, struct{}]
	compiling turn // held while one of them is being compiled
	// origins say where versions come from, and owners who owns each workflow: replaced, never changed.
	origins origins
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
	commits        wait.Period   // those that may work with what was replaced
	indexesChanged chan struct{} // indexesChanged has an entry when there may be something to build or drop
	inShards       inShards      // what the catalog knows of the indexes in shards with replicas
}

// turn is a lock. It is not a mutex, because bubbles of testing/synctest do not let time pass for who waits for one.
type turn chan struct{}

func (t turn) Lock() { t <- struct{}{} }

func (t turn) Unlock() { <-t }

func (t turn) TryLock() bool {
	select {
	case t <- struct{}{}:
		return true
	default:
		return false
	}
}

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

// origins are those that somebody has asked for. What is published again is asked for again.
type origins = concurrent.Map[versionKey, origin]

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
	definition *statemachine.Definition
	err        error
}

// confirmation is a waiter for one who waits later.
type confirmation chan error

func (c confirmation) Committed(err error) { c <- err }

func (c confirmation) await(ctx context.Context) error {
	select {
	case err := <-c:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
