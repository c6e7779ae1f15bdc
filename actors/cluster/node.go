package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"troupe/actors/cluster/peer"
	"troupe/actors/failure"
	"troupe/actors/guard"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/replica"
)

// Options says how a node works. Dir, Listen and Advertise must be set.
type Options struct {
	Dir               string // the folder of the node's own files, below the store's
	Listen, Advertise string // the address of the cluster port, host:port, and Advertise the one that other nodes reach it at
	// Replicas is how many nodes have a vote in each shard, once there are so many.
	Replicas int
	// Version is that of the program, for people; Settings is a digest of the settings that should be the same on all
	// nodes.
	Version, Settings string
	Changed           map[string]string // Changed has a digest of each of those settings that is not its default, to name what differs
	Name              string            // what people know the node by; empty: its address
	// Shards is how many a store that is made shall have. Zero: as many as the cluster that the node joined.
	Shards int
	Tick   time.Duration // that of persistence.Replication
	// Pace is the time between two greetings of a node, and between two looks at what is and what should be. Tests that
	// start many clusters have less. Settle is how long a node must have been heard before it is given shards to lead
	// without need: others must notice it.
	Pace, Settle time.Duration
	Log          zerolog.Logger // Log gets who comes and goes (info, warn) and what fails (error)
}

// EnsureDefaults replaces zeroes by the defaults.
func (o *Options) EnsureDefaults() {
	if o.Replicas == 0 {
		o.Replicas = 3
	}
	o.Pace, o.Settle = cmp.Or(o.Pace, paceDefault), cmp.Or(o.Settle, settleDefault)
}

// Node is this process's part of the cluster. Its methods may be called at once, those that need the store after Run.
type Node struct {
	o     Options
	level int // levelHere
	self  peer.NodeID
	boot  string
	files files
	seeds map[peer.NodeID]string // where the others were when this process began

	identity *peer.Identity
	network
	mux   *http.ServeMux
	calls atomic.Pointer[http.Handler] // what is not a call of this package

	started   atomic.Bool // Run has set store
	store     *persistence.Store
	directory atomic.Pointer[directory] // nil while the store has none
	greetings atomic.Uint64             // how many were made
	changing  chan struct{}             // has an entry while change runs; NB: a channel, since time passes meanwhile
	rereading sync.Mutex
	rereads   chan struct{}
	leads     chan struct{} // has an entry when this node leads something that the others do not know of

	others    others
	warnings  warnings
	strangers rate.Sometimes            // warnings of machines that may not join
	fresh     atomic.Pointer[time.Time] // what was written before is visible here; nil: nothing is known
	stopping  atomic.Bool
	refused   atomic.Pointer[error] // why another node did not take the last greeting; nil: none refused it
	full      func() bool           // the disk has no room for writes; after Run

	failed    chan error    // holds one
	gone      chan struct{} // closed when this node was removed from the cluster
	dismissed sync.Once     // closes gone
	cancel    context.CancelFunc
	ctx       context.Context //nolint:containedctx // of the node's goroutines
	running   sync.WaitGroup
	tending   tending
	moves     atomic.Uint64
	handed    atomic.Uint64
}

type network struct {
	port    port
	streams func(key.Shard) replica.Streams
	nodeOf  func(context.Context) peer.NodeID // whose call a request is
	listen  func(ctx context.Context, address string) (string, error)
}

type port interface {
	Start() error
	Stop(ctx context.Context) error
	RoundTrip(*http.Request) (*http.Response, error)
	Disconnect(peer.NodeID)
	Abandon(peer.NodeID)
	Metrics() peer.Metrics
}

// ErrIdentity is the error of a node whose key or certificate cannot be read.
var ErrIdentity = errors.New("read the identity of the node")

// Self is the id of this node.
func (n *Node) Self() peer.NodeID { return n.self }

// Cluster is the id of the cluster.
func (n *Node) Cluster() peer.ClusterID { return n.identity.Cluster() }

// Serve has calls that are none of this package's, and none of Handle's, answered by h. Before, they are answered 421.
func (n *Node) Serve(h http.Handler) { n.calls.Store(&h) }

// Transport sends calls to other nodes: https://NODE/PATH.
func (n *Node) Transport() http.RoundTripper { return n.port }

// Failed has an error when this process must end: another one is this node, or the node was removed.
func (n *Node) Failed() <-chan error { return n.failed }

func (n *Node) fail(err error) {
	select {
	case n.failed <- err:
	default:
	}
}

func (n *Node) every(pause time.Duration, do func(context.Context)) {
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for n.ctx.Err() == nil {
		_ = guard.Try(n.o.Log, "loop of the node", func() { do(n.ctx) }) // the log has it
		select {
		case <-ticker.C:
		case <-n.ctx.Done():
		}
	}
}

// Once it is in use it is not changed.
type directory struct {
	// Authority signs the certificates of the nodes, as peer.Authority.Marshal has it.
	Authority string                 `json:"authority"`
	Level     int                    `json:"level,omitempty"` // the highest that all nodes have had
	Nodes     map[peer.NodeID]member `json:"nodes"`
	Gone      []peer.NodeID          `json:"gone,omitempty"` // those that were removed, and never come back under their id
	Keys      map[string]entry       `json:"keys,omitempty"`
	// Groups are where groups of numbered shards begin, or shall; nil: each shard is its own.
	Groups    []key.Shard                 `json:"groups,omitempty"`
	Placement map[key.Shard][]peer.NodeID `json:"placement"` // which nodes shall have a vote in which group, by its first shard
}

type member struct {
	Address string    `json:"address"` // of its cluster port, host:port
	Joined  time.Time `json:"joined"`
	Level   int       `json:"level,omitempty"`   // as it said last
	Started bool      `json:"started,omitempty"` // it was heard of: it may be given shards
	Leaving bool      `json:"leaving,omitempty"` // its shards go to others, then it is removed
}

type entry struct {
	Hash    string      `json:"hash"`
	Expires time.Time   `json:"expires"`
	UsedBy  peer.NodeID `json:"usedBy,omitempty"`
}

// The files lie beside the store's own, so that who copies the store copies the identity with it.
type files struct{ dir string }

// heartbeat is what a node says of itself once a second.
type heartbeat struct {
	Node     peer.NodeID `json:"node"`
	Boot     string      `json:"boot"`            // differs for each process
	Count    uint64      `json:"count,omitempty"` // grows with each greeting of a process; 0 of a node of before, which does not say it
	Starting bool        `json:"starting,omitempty"`
	Stopping bool        `json:"stopping,omitempty"`
	Full     bool        `json:"full,omitempty"` // its disk: it must not lead
	Address  string      `json:"address"`
	Version  string      `json:"version"`
	Level    int         `json:"level"`
	Shards   int         `json:"shards,omitempty"`   // 0 while it is not known
	Settings string      `json:"settings,omitempty"` // a digest
	Name     string      `json:"name,omitempty"`     // for people
	// Changed has a digest of each setting that is not its default; nil: a node of before, which does not say it.
	Changed map[string]string `json:"changed"`
	Clock   time.Time         `json:"clock"`

	Groups map[key.Shard]groupState `json:"groups,omitempty"` // by their first shards
	shards map[key.Shard]groupState // Groups at each of their shards
}

// spread fills shards.
func (h *heartbeat) spread() {
	h.shards = map[key.Shard]groupState{}
	for first, g := range h.Groups {
		h.shards[first] = g
	}
	for first, g := range h.Groups {
		for sh := int(first) + 1; sh <= min(int(g.Last), h.Shards-1); sh++ {
			if than, own := h.shards[key.Shard(sh)]; !own || than.Epoch < g.Epoch {
				h.shards[key.Shard(sh)] = g
			}
		}
	}
}

func (h heartbeat) mayLead() bool { return !h.Starting && !h.Stopping && !h.Full }

type groupState struct {
	Last     key.Shard     `json:"last,omitempty"` // of the group's shards, as far as there are any behind the first
	Applied  uint64        `json:"applied"`
	Epoch    uint64        `json:"epoch,omitempty"`  // that in which the node leads, 0 of one that follows
	Voters   []peer.NodeID `json:"voters,omitempty"` // Voters and Learners are the replicas as the node knows them
	Learners []peer.NodeID `json:"learners,omitempty"`
}

func (g groupState) replicas() replicaSet { return replicaSet{g.Voters, g.Learners} }

// others is what this node knows of the other nodes.
type others struct {
	mu   sync.Mutex
	by   map[peer.NodeID]*other
	news chan struct{} // closed and replaced when something is new
}

type other struct {
	heard time.Time
	since time.Time // this process of it was heard without a pause, and had started
	said  heartbeat
	lag   map[key.Shard]uint64 // how many entries its replicas lacked of the shards that are led here, when it was heard last
}

func (o *other) alive() bool { return o != nil && time.Since(o.heard) <= aliveMax }

// tending are the groups that are led here, whose replicas this node manages, by their first shards.
type tending struct {
	mu   sync.Mutex
	stop map[key.Shard]context.CancelFunc
}

type warnings struct {
	mu   sync.Mutex
	last map[string]time.Time
}

func (w *warnings) log(log zerolog.Logger, about string, text func() string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		w.last = map[string]time.Time{}
	}
	if time.Since(w.last[about]) < time.Minute {
		return
	}
	w.last[about] = time.Now()
	log.Warn().Msg(text())
}

const (
	heartbeatMax = time.Second           // how long a heartbeat or a farewell may take
	tellPause    = 20 * time.Millisecond // between two greetings that tell who leads
	aliveMax     = 3 * time.Second       // a node that was not heard for so long is not alive
	askedMax     = 5 * time.Second       // how long a node may take to answer that is asked whether it is there
	// claimMax is how long a node that starts waits for its earlier process to be forgotten, and one that runs bears
	// its copy.
	claimMax      = 10 * time.Second
	clockMax      = time.Minute     // how far the clocks of two nodes may differ
	settleDefault = 5 * time.Second // Options.Settle
	lagMax        = 1000            // how many entries a replica may lack that has caught up
)

func (n *Node) news() {
	n.others.mu.Lock()
	defer n.others.mu.Unlock()
	close(n.others.news)
	n.others.news = make(chan struct{})
}

func (n *Node) whenNew() <-chan struct{} {
	n.others.mu.Lock()
	defer n.others.mu.Unlock()
	return n.others.news
}

// paceDefault is Options.Pace, and keepMax bounds what a node does for the directory at one look.
const (
	paceDefault = time.Second
	keepMax     = 5 * time.Second
)

func (n *Node) isGone(id peer.NodeID) bool {
	d := n.directory.Load()
	return d != nil && slices.Contains(d.Gone, id)
}

const freshMax = 3 * time.Second

// Fresh reports whether everything that was acknowledged in Meta more than three seconds ago is visible here.
func (n *Node) Fresh() bool { return n.staleFor() <= freshMax }

// staleFor is by the clock that nobody sets: it does not go back.
func (n *Node) staleFor() time.Duration {
	if at := n.fresh.Load(); at != nil {
		return time.Since(*at)
	}
	return time.Since(time.Unix(0, 0))
}

// The calls between nodes. Each is a POST with a JSON body, and answered with one.
const (
	pathPrefix    = "/cluster/"
	pathHeartbeat = pathPrefix + "hello"
	pathIndex     = pathPrefix + "index"
	pathGroup     = pathPrefix + "group"
	pathInvite    = pathPrefix + "invite"
	pathAdmit     = pathPrefix + "admit"
	pathRemove    = pathPrefix + "remove"
	pathGoodbye   = pathPrefix + "goodbye"
)

const callBytesMax = 8 << 20

// kinds are the errors that a call can bring from another node, with their status. Others are failure.ErrUnavailable.
var kinds = []struct {
	kind   failure.Kind
	status int
}{
	{failure.ErrInvalid, http.StatusBadRequest},
	{failure.ErrForbidden, http.StatusForbidden},
	{failure.ErrNotFound, http.StatusNotFound},
	{failure.ErrNotAllowed, http.StatusConflict},
	{failure.ErrPrecondition, http.StatusPreconditionFailed},
	{failure.ErrNotLeader, http.StatusMisdirectedRequest},
	{errUnfit, http.StatusUnprocessableEntity},
	{failure.ErrOutcomeUnknown, http.StatusGatewayTimeout},
}

// Handle has calls to a path answered by do.
func Handle[I, O any](n *Node, path string, do func(ctx context.Context, from peer.NodeID, in I) (O, error)) {
	n.mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		if path != pathHeartbeat && !n.started.Load() {
			writeError(w, failure.Refuse(failure.ErrUnavailable, "the node is starting"))
			return
		}
		var in I
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, callBytesMax)).Decode(&in)
		if err != nil {
			http.Error(w, "the body cannot be read: "+err.Error(), http.StatusBadRequest)
			return
		}
		out, err := do(r.Context(), n.nodeOf(r.Context()), in)
		if err != nil {
			writeError(w, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	})
}

func writeError(w http.ResponseWriter, err error) {
	of, status := failure.Of(err), http.StatusServiceUnavailable
	for _, k := range kinds {
		if k.kind == of.Kind {
			status = k.status
		}
	}
	text := of.Reason
	if text == "" {
		text = err.Error()
	}
	http.Error(w, text, status)
}

// The error is that of the node, or failure.ErrUnavailable when nothing came; it wraps peer.ErrNotSent when nothing was
// sent either.
func call[I, O any](ctx context.Context, n *Node, to peer.NodeID, path string, in I) (out O, err error) {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false) // NB: what is JSON already stays as it is
	if err := e.Encode(in); err != nil {
		return out, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+string(to)+path, &body)
	if err != nil {
		return out, err
	}
	answer, err := n.port.RoundTrip(request)
	if err != nil {
		return out, failure.Errorf(failure.ErrUnavailable, "%w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(answer.Body, callBytesMax))
	if err != nil {
		return out, failure.Errorf(failure.ErrUnavailable, "node %s: %w", to, err)
	}
	if answer.StatusCode != http.StatusOK {
		return out, readError(answer.StatusCode, string(bytes.TrimSpace(text)))
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return out, failure.Errorf(failure.ErrUnavailable, "node %s: %w", to, err)
	}
	return out, nil
}

func readError(status int, text string) error {
	for _, k := range kinds {
		if k.status != status {
			continue
		}
		if k.kind == failure.ErrNotLeader {
			return failure.Elsewhere(uint16(key.Meta))
		}
		return failure.Refuse(k.kind, "%s", text)
	}
	return failure.Errorf(failure.ErrUnavailable, "%s", text)
}

// errUnfit: each node may say so of the other, so it ends a node that starts when half of the nodes say it, and one that runs when
// most do.
const errUnfit = failure.ErrUnprocessable

type invitation struct {
	ID string `json:"id"`
	entry
}

type joinRequest struct {
	ID      string      `json:"id"`
	Secret  string      `json:"secret"`
	Node    peer.NodeID `json:"node"`
	CSR     []byte      `json:"csr"`
	Address string      `json:"address"`
	Version string      `json:"version"`
	Level   int         `json:"level"`
	Clock   time.Time   `json:"clock"`
	// Word is what the machine says at Address while it waits for the answer. Empty: it tells nothing there.
	Word string `json:"word,omitempty"`
}

type joinAnswer struct {
	Certificate []byte                 `json:"certificate"`
	Authority   string                 `json:"authority"`
	Shards      int                    `json:"shards"`
	Nodes       map[peer.NodeID]string `json:"nodes"` // the address of each
}

func say(l net.Listener, word string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_ = conn.SetDeadline(time.Now().Add(findMax))
		_, _ = io.WriteString(conn, word)
		_ = conn.Close()
	}
}

type removal struct {
	Node peer.NodeID `json:"node"`
	Lost bool        `json:"lost"` // it does not run and will not come back
}

const (
	findMax = 5 * time.Second // findMax bounds the look for a machine at its address
	wordMax = 64              // wordMax bounds what a machine says there, in bytes
)
