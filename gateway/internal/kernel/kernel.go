// Package kernel answers requests: it has what all routes have in common. A request comes as an Exchange;
// the kernel finds its route, counts it (slots, shares, bytes), decides whether the caller may use the route,
// checks query, headers and body, calls the handler, and writes answers and errors. It knows no workflow and
// no group of routes: what it needs of those above it are Hooks and the rows of the table.
package kernel

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/julienschmidt/httprouter"

	"troupe/actors/identity"
	"troupe/gateway/internal/listener"
	"troupe/gateway/toll"
)

// Credentials authenticates callers. Errors are failure.ErrUnauthorized for every cause.
type Credentials interface {
	Authenticate(kind identity.Kind, credential string) (*identity.Principal, error)
	// Principal returns a user whose credential another node has authenticated. roles are
	// those that the credential has beyond the user's own.
	Principal(user identity.UserID, roles []string) (*identity.Principal, error)
}

// Hooks are what the kernel asks those above it.
type Hooks struct {
	// ErrorPage answers an error for a person, and reports whether it did: not when a program asks.
	ErrorPage func(x *Exchange, status int, id string) bool
	// Elsewhere answers a request whose handler found that another node leads what it needs. Nil: the node stands alone.
	Elsewhere func(x *Exchange, err error) error
}

// Kernel answers requests: it has what all routes have in common.
type Kernel struct {
	Options       Options
	hooks         Hooks
	router        *httprouter.Router         // built by New, then only read
	runtimeRouter *httprouter.Router         // the same for the form runtime, see routerOf
	Table         []Route                    // likewise
	Unmatched     [groups]Route              // for requests that match no route, by group; likewise
	methods       []string                   // of the table, sorted; likewise
	crossOrigin   http.CrossOriginProtection // the zero value; trusts nobody
	Exchanges     sync.Pool                  // *exchange; BenchmarkExchangePool is the reason
	IDPrefix      string                     // of request ids, different in each process
	// sessionChallenge is the header WWW-Authenticate of group A.
	sessionChallenge []string
	// logsRequests: Options.Log takes debug lines.
	logsRequests bool
	lastID       atomic.Uint64

	// services is nil until open.
	services atomic.Pointer[Services]
	// warnedUntrustedProxy is set at the first X-Forwarded-For of an untrusted peer.
	warnedUntrustedProxy atomic.Bool
	// Draining is set by stop, before it waits for InFlight to become 0.
	Draining atomic.Bool
	// Stopping is closed when draining is set.
	Stopping chan struct{}
	// Packing counts the files that are packed behind a request (packBrotli); Stop waits for them.
	Packing  sync.WaitGroup
	Pressure *pressure
	// InFlight counts the requests in serve, probes and watchers left out, and idle those of them that have left their
	// places (LeaveSlot).
	InFlight, Idle atomic.Int64
	placing        sync.Mutex // TakeSlot
	Anonymous      anonymousRequests
	// anonymousBytes is what all requests without a credential together owe for large bodies.
	anonymousBytes toll.Account
	// AnswerBytes counts the bytes of large answers that are being sent.
	AnswerBytes atomic.Int64
	// names are what people are called.
	names knownNames
	// watchers counts the streams that are open or about to be.
	watchers atomic.Int64
	Usage    usageTable
	Limits   limits // set by New, then only read
	// allAnswered gets an entry when InFlight becomes 0 while draining.
	allAnswered chan struct{}
	// Requests is the context of all requests; cancel ends it.
	Requests context.Context
	Cancel   context.CancelFunc
	// Watching ends when drain ends the streams; endWatching ends it.
	Watching    context.Context
	endWatching context.CancelFunc

	metrics     metrics
	Connections listener.Counts
	// Started is when the kernel was made: its counters begin there.
	Started time.Time
}

// New returns a kernel that answers nothing yet. An error names everything that is wrong with the options
// or the table.
func New(o Options, table []Route, h Hooks) (*Kernel, error) {
	o.EnsureDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	k := &Kernel{
		Started:          time.Now(),
		Options:          o,
		hooks:            h,
		IDPrefix:         newIDPrefix(),
		sessionChallenge: []string{`Cookie realm="troupe", cookie-name="` + o.SessionCookie + `"`},
		logsRequests:     o.Log.Debug().Enabled(),
		Stopping:         make(chan struct{}),
		Pressure:         newPressure(newLimits(&o).inFlight),
		allAnswered:      make(chan struct{}, 1),
		Usage:            newUsageTable(),
		Limits:           newLimits(&o),
	}
	k.Exchanges.New = func() any { return new(Exchange) }
	k.metrics.unmatched.name = "outside"
	for g := range k.Unmatched {
		k.Unmatched[g] = Route{Name: k.metrics.unmatched.name, Group: Group(g), metrics: &k.metrics.unmatched}
	}
	if err := k.compile(table); err != nil {
		return nil, err
	}
	k.Requests, k.Cancel = context.WithCancel(context.Background())
	k.Watching, k.endWatching = context.WithCancel(k.Requests)
	return k, nil
}

// newIDPrefix makes the request ids of one process differ from another's.
func newIDPrefix() string {
	var random [4]byte
	_, _ = rand.Read(random[:]) // crypto/rand never returns an error; it ends the program
	return hex.EncodeToString(random[:]) + "-"
}

// Open begins to answer requests.
func (s *Kernel) Open(services *Services) { s.services.Store(services) }

// IsOpen reports whether there are services.
func (s *Kernel) IsOpen() bool { return s.services.Load() != nil }

// Reason is why the kernel takes no requests now; empty when it does.
func (s *Kernel) Reason() string {
	switch {
	case s.Draining.Load():
		return "stopping"
	case !s.IsOpen():
		return "starting"
	}
	return ""
}

// FollowPressure moves the limit of requests until stop.
func (s *Kernel) FollowPressure() { s.Pressure.run(s.Stopping, s.Working, &s.metrics.shed) }

// BeginStop has new requests refused.
func (s *Kernel) BeginStop() {
	s.Draining.Store(true)
	close(s.Stopping)
}

// Drain ends the streams after Options.DrainDelay, and waits until the accepted requests are answered. It reports
// whether they were in time. atEnd is called when the streams end.
func (s *Kernel) Drain(ctx context.Context, atEnd func()) bool {
	if s.Options.DrainDelay > 0 {
		select {
		case <-time.After(s.Options.DrainDelay):
		case <-ctx.Done():
		}
	}
	s.endWatching()
	atEnd()
	late := time.NewTimer(s.Options.DrainMax)
	defer late.Stop()
	for s.InFlight.Load() > 0 {
		select {
		case <-s.allAnswered:
		case <-late.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// requestEnded uncounts a request that serve has counted.
func (s *Kernel) requestEnded() {
	if s.InFlight.Add(-1) == 0 && s.Draining.Load() {
		select {
		case s.allAnswered <- struct{}{}:
		default: // Stop has not checked yet
		}
	}
}

// Snapshot returns the counters but for those of forwarding.
func (s *Kernel) Snapshot() Metrics {
	m := Metrics{
		InFlight:           s.Working(),
		Places:             s.Pressure.Limit.Load(),
		Watchers:           s.watchers.Load(),
		Connections:        s.Connections.Open.Load(),
		ConnectionsFull:    s.Connections.Full.Load(),
		ConnectionsEvicted: s.Connections.Evicted.Load(),
		Shed:               s.metrics.shed.Load(),
		WatchersFull:       s.metrics.watchersFull.Load(),
		Panics:             s.metrics.panics.Load(),
		Cut:                s.metrics.aborted.Load(),
		Taken:              s.metrics.taken.Load(),
	}
	for _, route := range s.metrics.routes {
		m.Routes = append(m.Routes, route.snapshot())
	}
	m.Routes = append(m.Routes, s.metrics.unmatched.snapshot())
	return m
}
