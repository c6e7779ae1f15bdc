package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"troupe/actors/cluster/frame"
	"troupe/actors/guard"
)

const (
	handshakeMax = 5 * time.Second // the time for the handshake, and for the shard behind it
	dialMax      = 2 * time.Second // the time for a connection to another node, handshake included
)

// keepAlive notices the end of a peer on streams that wait for it to speak.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}

// Port is the cluster port of a node.
//
// Stop may come at any time and more than once. All methods may be called at once.
type Port struct {
	options     Options
	server      *tls.Config // built by New, then only read
	calls       *frame.Server
	joins       *http.Server
	joinInbox   *inbox
	joinPlaces  chan struct{} // an entry for each join that is open
	outgoing    *calls
	warnings    rate.Sometimes
	stopOnce    sync.Once
	ctx         context.Context // of all dials and calls; ends with Stop
	cancel      context.CancelFunc
	background  sync.WaitGroup // Accept, handshakes, calls in both directions, and the server of joins
	listenOn    func(ctx context.Context, address string) (net.Listener, error)
	connectTo   func(ctx context.Context, address string) (net.Conn, error)
	refused     atomic.Uint64
	failed      atomic.Uint64
	unwanted    atomic.Uint64
	joinRefused atomic.Uint64

	mu struct {
		sync.Mutex
		used, stopped bool
		listener      net.Listener             // nil until Start
		streams       map[uint16]*Streams      // those that are in use
		open          map[*connection]struct{} // in both directions
		incoming      int                      // of open
		handshakes    int                      // of incoming
		perAddress    map[netip.Addr]int       // of handshakes
	}
}

// New returns a port that is not open yet. An error names everything that is wrong with the options.
func New(o Options) (*Port, error) {
	o.ensureDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("new cluster port: %w", err)
	}
	p := &Port{
		options: o, warnings: rate.Sometimes{Interval: time.Second},
		joinInbox: newInbox(joinsMax), joinPlaces: make(chan struct{}, joinsMax),
	}
	p.mu.streams, p.mu.open, p.mu.perAddress = map[uint16]*Streams{}, map[*connection]struct{}{}, map[netip.Addr]int{}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.listenOn = func(ctx context.Context, address string) (net.Listener, error) {
		return (&net.ListenConfig{KeepAliveConfig: keepAlive}).Listen(ctx, "tcp", address)
	}
	p.connectTo = func(ctx context.Context, address string) (net.Conn, error) {
		return (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext(ctx, "tcp", address)
	}
	p.server = o.Identity.serverConfig(o.Join != nil, p.admitNode)
	p.calls = p.newCallServer()
	p.joins = p.newJoinServer()
	p.outgoing = newCalls(p)
	return p, nil
}

type logWriter struct{ port *Port }

func (w logWriter) Write(line []byte) (int, error) {
	w.port.warnings.Do(func() { w.port.options.Log.Warn().Msg(strings.TrimSpace(string(line))) })
	return len(line), nil
}

// Start opens the port. After Stop it returns ErrStopped; a second Start is an error.
func (p *Port) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.stopped {
		return fmt.Errorf("start the cluster port: %w", ErrStopped)
	}
	if p.mu.used {
		return errors.New("start the cluster port: it has started before")
	}
	l, err := p.listenOn(p.ctx, p.options.Address)
	if err != nil {
		return fmt.Errorf("start the cluster port: %w", err)
	}
	p.mu.used, p.mu.listener = true, l
	p.background.Go(func() { guard.Loop(p.ctx.Done(), p.options.Log, "cluster port", func() { p.accept(l) }) })
	p.background.Go(func() { _ = p.joins.Serve(p.joinInbox) }) // ends with Stop alone: an inbox has no other error
	p.options.Log.Info().Stringer("address", l.Addr()).Str("node", string(p.options.Identity.Node())).Msg("cluster port open")
	return nil
}

// Addr is where the port listens, nil before Start.
func (p *Port) Addr() net.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.listener == nil {
		return nil
	}
	return p.mu.listener.Addr()
}

// Stop accepts no more connections, waits for the calls and joins that are being answered until ctx is done, and closes
// everything: the port, all connections in both directions and all streams. It returns when the goroutines of the port
// are gone; handlers that do not end with their request's context are not waited for.
func (p *Port) Stop(ctx context.Context) error {
	p.stopOnce.Do(func() { p.stop(ctx) })
	return nil
}

func (p *Port) stop(ctx context.Context) {
	p.mu.Lock()
	p.mu.stopped = true
	if p.mu.listener != nil {
		_ = p.mu.listener.Close()
	}
	p.mu.Unlock()

	var servers sync.WaitGroup
	servers.Go(func() { p.calls.Stop(ctx) })
	servers.Go(func() {
		if p.joins.Shutdown(ctx) != nil {
			_ = p.joins.Close()
		}
	})
	servers.Wait()
	p.cancel()

	p.mu.Lock()
	var streams []*Streams
	for _, s := range p.mu.streams {
		streams = append(streams, s)
	}
	p.mu.Unlock()
	for _, s := range streams {
		_ = s.Close()
	}
	p.closeWhere(func(*connection) bool { return true })
	_ = p.joinInbox.Close() // Shutdown does not know it when Start was never called
	p.background.Wait()
}

// inBackground runs what Stop waits for, unless the port has stopped.
func (p *Port) inBackground(do func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		return false
	}
	p.background.Go(do)
	return true
}

// Disconnect closes all connections with a node, in both directions. Those that Admits refuses cannot come back.
func (p *Port) Disconnect(node NodeID) {
	p.closeWhere(func(c *connection) bool { return c.node == node })
}

// The function is called with mu locked.
func (p *Port) closeWhere(chosen func(*connection) bool) {
	var all []*connection
	p.mu.Lock()
	for c := range p.mu.open {
		if chosen(c) {
			all = append(all, c)
		}
	}
	p.mu.Unlock()
	for _, c := range all {
		_ = c.Close()
	}
}

// Metrics is what a port has counted.
type Metrics struct {
	Connections      int    // open now, in both directions
	Handshakes       int    // of those, from others that have not shown who they are
	Refused          uint64 // connections closed at once: too many
	HandshakesFailed uint64 // of others, for any cause
	StreamsUnwanted  uint64 // closed, as nobody accepts for their shard
	JoinsRefused     uint64 // closed, as too many join
}

// Metrics returns the counters. It does not block.
func (p *Port) Metrics() Metrics {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Metrics{
		Connections: len(p.mu.open), Handshakes: p.mu.handshakes,
		Refused: p.refused.Load(), HandshakesFailed: p.failed.Load(),
		StreamsUnwanted: p.unwanted.Load(), JoinsRefused: p.joinRefused.Load(),
	}
}
