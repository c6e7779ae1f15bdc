package replica

import (
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"github.com/rs/zerolog"
)

// transport is Raft's, over Streams. It passes on no message that Raft would panic at.
type transport struct {
	*raft.NetworkTransport
	streams  Streams
	requests chan raft.RPC
	stop     chan struct{}
	ended    chan struct{}

	closeOnce sync.Once
	// heartbeats is held shared while one is handled, which may write a term.
	heartbeats sync.RWMutex

	// clock counts questions of readers; see confirmedSince.
	clock  atomic.Uint64
	mu     sync.Mutex
	agreed map[raft.ServerID]agreement
	// matched is the last entry of the log that a node is known to have.
	matched map[raft.ServerID]match
	// answered is when a node has agreed to a message last.
	answered map[raft.ServerID]time.Time

	tick  time.Duration // see Options
	store Store
	// leads reports whether this node leads another one in a term; nil while Raft is made.
	leads atomic.Pointer[func(term uint64, id raft.ServerID) bool]
}

// match is up to which entry a node had the log of a term's leader, and when it said so.
type match struct {
	term, index uint64
	at          time.Time
}

// agreement is the last message to a node that it has agreed to.
type agreement struct {
	term uint64
	at   uint64 // on the transport's clock, when the message was sent
}

// AppendEntries implements raft.Transport. It notes who agrees to be led. Entries for a node that does not answer wait
// until it does: Raft would pause for up to ten seconds after an error, and a node that is back would have no part in
// any majority until then. One that answers and does not take them, as with a full disk, is asked once in a Tick.
func (t *transport) AppendEntries(id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	for pause := time.Duration(0); ; pause = t.tick {
		begun := time.Now()
		*resp = raft.AppendEntriesResponse{}
		err := t.appendEntries(id, to, args, resp)
		if err == nil || isHeartbeat(args) || !t.awaitAnswer(id, args.Term, begun.Add(pause)) {
			return err
		}
	}
}

// isHeartbeat reports whether a message does not mention the log. Raft sends those beside the
// entries, and at least twice in a Tick whatever happens to them.
func isHeartbeat(args *raft.AppendEntriesRequest) bool {
	return args.PrevLogEntry == 0 && len(args.Entries) == 0
}

func (t *transport) appendEntries(id raft.ServerID, to raft.ServerAddress, args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	select {
	case <-t.stop:
		return raft.ErrTransportShutdown
	default:
	}
	at := t.clock.Load()
	err := t.NetworkTransport.AppendEntries(id, to, args, resp)
	if err == nil && resp.Success {
		t.mu.Lock()
		defer t.mu.Unlock()
		if before := t.agreed[id]; before.term != args.Term || before.at < at {
			t.agreed[id] = agreement{args.Term, at}
		}
		t.answered[id] = time.Now()
		if !isHeartbeat(args) {
			t.matched[id] = match{args.Term, args.PrevLogEntry + uint64(len(args.Entries)), time.Now()}
		}
	}
	return err
}

// awaitAnswer waits until a node has agreed to a message after a time. It is false when this node
// does not lead it in the term any more.
func (t *transport) awaitAnswer(id raft.ServerID, term uint64, after time.Time) bool {
	ticker := time.NewTicker(t.tick / 20)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-t.stop:
			return false
		}
		if leads := t.leads.Load(); leads == nil || !(*leads)(term, id) {
			return false
		}
		t.mu.Lock()
		answered := t.answered[id].After(after)
		t.mu.Unlock()
		if answered {
			return true
		}
	}
}

// confirmedSince says whether a majority of the voters has agreed to messages of this node
// in a term that were sent after a reading of the clock.
//
// NB: Raft's VerifyLeader also counts the answers to messages that were sent before it was
// called. They can be as old as the process stood still, and another node may lead by now.
func (t *transport) confirmedSince(at, term uint64, self raft.ServerID, servers []raft.Server) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	voters, agreed := 0, 0
	for _, s := range servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if a := t.agreed[s.ID]; s.ID == self || a.term == term && a.at >= at {
			agreed++
		}
	}
	return agreed > voters/2
}

// matchedIn is the last entry that a node has of the log of a term. It is false unless the node
// has said so within some time.
func (t *transport) matchedIn(term uint64, id raft.ServerID, within time.Duration) (index uint64, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.matched[id]
	return m.index, m.term == term && time.Since(m.at) <= within
}

func newTransport(o *Options, logger raftLogger) *transport {
	t := &transport{
		NetworkTransport: raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
			Stream: streamLayer{o.Streams, nodeAddress(o.Node)}, MaxPool: 3, Timeout: 2 * o.Tick, Logger: logger,
			MaxRPCsInFlight: 1, // with more, a group can stand still (hashicorp/raft#612)
		}),
		agreed: map[raft.ServerID]agreement{}, matched: map[raft.ServerID]match{}, answered: map[raft.ServerID]time.Time{},
		tick: o.Tick, store: o.Store, streams: o.Streams, requests: make(chan raft.RPC), stop: make(chan struct{}), ended: make(chan struct{}),
	}
	go t.checkLoop()
	return t
}

func (t *transport) Consumer() <-chan raft.RPC { return t.requests }

func (t *transport) SetHeartbeatHandler(handle func(raft.RPC)) {
	t.NetworkTransport.SetHeartbeatHandler(func(rpc raft.RPC) {
		t.heartbeats.RLock()
		defer t.heartbeats.RUnlock()
		handle(rpc)
	})
}

// Close ends all streams, and returns when no heartbeat is handled any more. Nothing is sent to those whom
// this node leads from now on. Raft calls it too.
func (t *transport) Close() error {
	err := t.NetworkTransport.Close()
	t.CloseStreams()
	t.closeOnce.Do(func() { close(t.stop) })
	<-t.ended
	t.heartbeats.Lock() // NB: the store may be closed next, and Raft panics when a term cannot be written
	defer t.heartbeats.Unlock()
	return err
}

// checkLoop passes on what other nodes ask.
func (t *transport) checkLoop() {
	defer close(t.ended)
	for {
		select {
		case rpc := <-t.NetworkTransport.Consumer():
			if err := checkRequest(rpc.Command); err != nil {
				rpc.Respond(nil, err)
				continue
			}
			if err := t.refusal(rpc.Command); err != nil {
				rpc.Respond(nil, err)
				continue
			}
			boundCommit(rpc.Command)
			select {
			case t.requests <- rpc:
			case <-t.stop:
				return
			}
		case <-t.stop:
			return
		}
	}
}

// checkRequest refuses what Raft takes for granted: it panics at entries that are missing,
// of an unknown type, or that have a configuration which cannot be read.
func checkRequest(command any) error {
	switch c := command.(type) {
	case *raft.AppendEntriesRequest:
		for i, l := range c.Entries {
			if l == nil || l.Index != c.PrevLogEntry+1+uint64(i) {
				return fmt.Errorf("entries behind %d are not in order", c.PrevLogEntry)
			}
			switch l.Type {
			case raft.LogCommand, raft.LogNoop, raft.LogBarrier:
			case raft.LogConfiguration:
				if err := checkConfiguration(l.Data); err != nil {
					return err
				}
			default:
				return fmt.Errorf("entry %d has type %d", l.Index, l.Type)
			}
		}
	case *raft.InstallSnapshotRequest:
		if c.SnapshotVersion != raft.SnapshotVersionMax || c.Size <= 0 {
			return fmt.Errorf("a snapshot of version %d and %d bytes", c.SnapshotVersion, c.Size)
		}
		return checkConfiguration(c.Configuration)
	}
	return nil
}

// refusal is why entries or a copy of the shard cannot be written now.
//
// NB: Raft would say that it does not have what is before them, and the leader would send older
// ones each time, and the whole shard at last.
func (t *transport) refusal(command any) error {
	switch c := command.(type) {
	case *raft.AppendEntriesRequest:
		if len(c.Entries) > 0 {
			return t.store.Refusal()
		}
	case *raft.InstallSnapshotRequest:
		return t.store.Refusal()
	}
	return nil
}

// boundCommit has nothing taken for committed but what this node is known to have as the leader has it:
// the entries of a message, and those before them.
//
// NB: Raft itself takes whatever this node has up to the leader's commit index. Behind what a message speaks of that
// can be entries of an earlier leader, which another has replaced and a majority has confirmed: they would be applied
// here, and the right ones passed over. It happens when a new leader's first message to a node, which has no entries,
// is made late. The rule is that of Raft's paper (figure 2, "index of last new entry").
func boundCommit(command any) {
	if c, is := command.(*raft.AppendEntriesRequest); is {
		c.LeaderCommitIndex = min(c.LeaderCommitIndex, c.PrevLogEntry+uint64(len(c.Entries)))
	}
}

func checkConfiguration(data []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a configuration cannot be read: %v", r)
		}
	}()
	raft.DecodeConfiguration(data)
	return nil
}

// streamLayer is Streams as Raft wants it.
type streamLayer struct {
	Streams
	node nodeAddress
}

func (l streamLayer) Addr() net.Addr { return l.node }

func (l streamLayer) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	return l.Streams.Dial(string(to), timeout)
}

// nodeAddress is the id of a node as an address.
type nodeAddress string

func (nodeAddress) Network() string { return "node" }

func (a nodeAddress) String() string { return string(a) }

// raftLogger is what Raft logs to.
type raftLogger = hclog.Logger

// raftLog gives what Raft says to those who debug it; operators get lines of our own, and of Raft's those
// about copies of the shard.
func raftLog(log zerolog.Logger) raftLogger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Off}) // the sink gets all
	l.RegisterSink(&raftLines{log})                                                           // NB: a key of a map there
	return l
}

type raftLines struct{ log zerolog.Logger }

// copyLines are what Raft says of copies of the shard that are sent and received.
var copyLines = []string{
	"installing snapshot on", "failed to install snapshot", "failed to open snapshot", "installSnapshot rejected to",
	"copied to local snapshot", "Installed remote snapshot", "failed to copy snapshot", "failed to receive whole snapshot",
	"failed to finalize snapshot", "failed to restore snapshot", "ignoring installSnapshot request with older term than current term",
}

func (r *raftLines) Accept(_ string, level hclog.Level, msg string, args ...any) {
	of := zerolog.DebugLevel
	if slices.Contains(copyLines, msg) {
		if of = zerolog.InfoLevel; level >= hclog.Warn {
			of = zerolog.WarnLevel
		}
	}
	e := r.log.WithLevel(of)
	if !e.Enabled() {
		return
	}
	for i := 0; i+1 < len(args); i += 2 {
		e = e.Str(fmt.Sprint(args[i]), fmt.Sprint(args[i+1]))
	}
	e.Msg("raft: " + msg)
}
