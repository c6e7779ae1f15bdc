package replica

import (
	"cmp"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"troupe/persistence/replica/internal/mesh"
)

var (
	// ErrNotLed is the error of a change that another node would have to take, or of an
	// epoch that is over. Nothing was applied.
	ErrNotLed = errors.New("this node does not lead the shard")

	// ErrLost is the error of a change whose leader lost the leadership before a majority had confirmed it. It may
	// become part of the shard, or not: anyone who made it drops what it holds, and asks the next leader.
	ErrLost = errors.New("the leadership of the shard was lost, outcome unknown")

	// ErrHeld is the error of Hold while somebody else holds the group.
	ErrHeld = errors.New("the shard is held already")

	// ErrOverlap is the error of a copy that has rows of another group of this node: the old group was divided, and the copy
	// is from before.
	ErrOverlap = errors.New("another group here has a part of the copy")

	// ErrDamaged is the error of a group whose rows are not what it wrote: the state is older
	// than its log, or something of the log, the vote or the state is missing or cannot be read.
	ErrDamaged = errors.New("the replica is damaged")
)

// The times of a host, as parts of HostOptions.Tick. Nodes tell each other all the time that they are alive, and groups
// ask for an election when the node that leads them is not. A group in which nothing happens costs nothing.
const (
	raftTicks      = 20 // of Raft
	pingTicks      = 10 // messages to each node that this one is alive
	electionTicks  = 10 // Raft's ticks after which a group without a leader asks for an election
	heartbeatTicks = 3  // Raft's ticks between two messages of a leader that has something to say
	// idleTicks is how many ticks a group gets when nothing happens any more: who has missed that something is
	// confirmed hears it meanwhile.
	idleTicks = 2 * heartbeatTicks
)

// HostOptions of a host.
type HostOptions struct {
	// Node is the id of this node.
	Node string
	// Messages carries what the groups of all shards say to each other, Copies the rows of shards.
	Messages, Copies Streams
	// Store takes what all groups write in one round.
	Store Rounds
	// Probe is the key of a row that is written when nothing else is.
	Probe []byte

	// Tick is the time on which all others hang: a node that is not heard for half of it is taken for dead.
	// Zero: one second.
	Tick time.Duration

	// Lost is called when a node does not answer: what was sent to it in other streams has no answer to wait for. It must
	// not block. Nil: nobody wants to know.
	Lost func(node string)

	Log zerolog.Logger
	// Fatal ends the process; it does not return.
	Fatal func(reason string)
}

// Streams carries bytes between nodes.
type Streams = mesh.Streams

// Rounds writes what the groups of a host have for the disk.
type Rounds interface {
	// Append has the changes of fill made visible together, in the order of the calls, and durable when synced.
	// It never waits, and the writes are never refused. visible and durable are called once each, in this order and in
	// the order of the calls of Append, and must not block. Both get an error when the store was closed before.
	Append(synced bool, fill func(Batch), visible, durable func(error))
	// Refusal is why new writes are refused now, nil when they are not.
	Refusal() error
}

// Options of a group.
type Options struct {
	// Shard is the first of the group's, by which it is known.
	Shard uint16
	Store Store
	// LogPrefix begins the keys of the log, StatePrefix those of rows about the state.
	// StatePrefix is in the range of the shard, before all other rows.
	LogPrefix, StatePrefix []byte
	// Beside returns both prefixes of the group that begins with another shard.
	Beside func(shard uint16) (log, state []byte)
	// Divided is called when the shards from first to last have a group of their own, whose rows are there, and before
	// anybody is told of an epoch without them. led: this node leads the old group. It must not block.
	Divided func(first, last uint16, led bool)
	// Elect has this node ask to lead as soon as it takes part.
	Elect    bool
	Observer Observer
	// Follower may be nil.
	Follower Follower

	// LogBytesMax is how large the log may become when a member lacks its beginning: then the half of it goes that the
	// state contains, and that member gets a copy of the shard. What all members have goes before. Zero: 16 MiB.
	LogBytesMax int64

	Log zerolog.Logger
	// Fatal ends the process; it does not return.
	Fatal func(reason string)
}

func (o *Options) ensureDefaults() { o.LogBytesMax = cmp.Or(o.LogBytesMax, 16<<20) }

// Observer is told who leads the shard. It must not block; the calls come one after the other.
type Observer interface {
	// Led is called when this node leads the shard and everything that was committed
	// before is visible here. It may write in this epoch, in the shards up to last.
	Led(epoch uint64, last uint16)
	// Ended is called when an epoch that Led began is over.
	Ended(epoch uint64)
}

// Follower is told what happens to the state, on every node alike. Its calls come one after
// the other and must not block.
type Follower interface {
	// Changed is called with the sets of writes of one or more entries, in their order, when all of them are visible.
	Changed(reprs [][]byte)
	// Replaced is called when the rows of the shards up to last were replaced by a copy, or have left with it.
	Replaced(last uint16)
}

// Store is where a group keeps its rows. Values belong to the caller.
type Store interface {
	// Load returns the value under key, nil when there is none.
	Load(key []byte) ([]byte, error)
	// Scan calls visit with all rows from from up to but not including to.
	Scan(from, to []byte, visit func(key, value []byte) error) error
	// Write makes changes visible together, in the order of the calls. An error that wraps
	// ErrRefused means that nothing was written. With Vital fill may be called more than once.
	Write(how Write, fill func(Batch)) error
	// Snapshot returns the rows as they are now.
	Snapshot() Snapshot
	// Replace puts rows, which come in the order of their keys, in the place of all rows
	// of the group, in one durable step. Until Commit nothing has happened.
	Replace() (Replacement, error)
}

// Write is a way of writing.
type Write uint8

const (
	// Lazy changes are durable no later than the next ones that are Synced or Vital. They are
	// taken even while the store takes nothing new: a majority has them in its log.
	Lazy Write = iota
	// Synced changes are durable before Write returns, or it says that this is not known.
	Synced
	// Vital changes are Synced, but taken even while the store takes nothing new, and Write returns when they are known
	// to be durable, however long that takes.
	Vital
)

// ErrRefused says that a store has not written anything.
var ErrRefused = errors.New("the store takes nothing")

// Batch gathers changes of one Write.
type Batch interface {
	Set(key, value []byte)
	// DeleteRange removes all keys from from up to but not including to.
	DeleteRange(from, to []byte)
	// Apply adds the changes of a set of writes.
	Apply(repr []byte)
}

// Snapshot is the rows at one moment.
type Snapshot interface {
	// Load returns the value under key, nil when there is none.
	Load(key []byte) ([]byte, error)
	// Scan calls visit with all rows from the group's first shard to the last one, in the order of their keys.
	Scan(last uint16, visit func(key, value []byte) error) error
	Close() error
}

// Replacement gathers the rows of Store.Replace. After Set Commit or Abort is called.
type Replacement interface {
	// Reach says that rows of the shards up to last follow. It returns ErrOverlap when another group here has one of
	// these shards, and from then on to Abort none begins there, unless it is divided from this one.
	Reach(last uint16) error
	Set(key, value []byte) error
	Commit() error
	Abort()
}

// Change is a set of writes that is to be replicated.
type Change interface {
	// Repr is the writes, in the form that Batch.Apply takes. Empty: there are none, and
	// Done is called when everything before is applied and this node leads still.
	Repr() []byte
	// Done is told once how it ended. The calls for one group come one after the other in
	// the order of Append. It must not block.
	Done(error)
}

// ErrFirstEngine is the error of a replica that an earlier engine has written, which no release had. Recover reads it.
var ErrFirstEngine = errors.New("the store is of an engine of clusters that no release had: `troupe cluster recover` makes the node that ran last a cluster of one, which the others join with empty homes")

// firstRow is the key of a row that each replica of the first engine has.
func firstRow(o *Options) []byte {
	return append(o.StatePrefix[:len(o.StatePrefix):len(o.StatePrefix)], 's')
}

// checkEngine returns ErrFirstEngine when the replica is of the first engine.
func checkEngine(o *Options) error {
	value, err := o.Store.Load(firstRow(o))
	if err == nil && value != nil {
		err = ErrFirstEngine
	}
	return err
}
