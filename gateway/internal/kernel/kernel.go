// Package kernel answers requests: it has what all routes have in common. A request comes as an Exchange;
// the kernel finds its route, counts it (slots, shares, bytes), decides whether the caller may use the route,
// checks query, headers and body, calls the handler, and writes answers and errors. It knows no workflow and
// no group of routes: what it needs of those above it are Hooks and the rows of the table.
package kernel

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/julienschmidt/httprouter"

	"troupe/actors/audit"
	"troupe/actors/identity"
	"troupe/actors/trace"
	"troupe/gateway/internal/listener"
	"troupe/gateway/leader"
	"troupe/gateway/toll"
)

// Kernel answers requests: it has what all routes have in common.
type Kernel struct {
	Options          Options
	hooks            Hooks
	router           *httprouter.Router         // built by New, then only read
	runtimeRouter    *httprouter.Router         // the same for the form runtime, see routerOf
	Table            []Route                    // likewise
	Unmatched        [groups]Route              // for requests that match no route, by group; likewise
	methods          []string                   // of the table, sorted; likewise
	crossOrigin      http.CrossOriginProtection // the zero value; trusts nobody
	Exchanges        sync.Pool                  // *Exchange; BenchmarkExchangePool is the reason
	IDPrefix         string                     // of request ids, different in each process
	sessionChallenge []string                   // the header WWW-Authenticate of group A
	vary             Vary                       // of every answer
	logsRequests     bool                       // Options.Log takes debug lines
	lastID           atomic.Uint64

	services atomic.Pointer[Services] // nil until Open
	// warnedUntrustedProxy is set at the first X-Forwarded-For of an untrusted peer.
	warnedUntrustedProxy atomic.Bool
	Draining             atomic.Bool // set by BeginStop, before Stop waits for InFlight to become 0
	// Stopping is closed when Draining is set.
	Stopping chan struct{}
	// Packing counts the files that are packed behind a request (packBrotli); Stop waits for them.
	Packing  sync.WaitGroup
	Pressure *pressure
	// InFlight counts the requests in serve, probes and watchers left out, and Idle those of them that have left their
	// places (LeaveSlot).
	InFlight, Idle atomic.Int64
	held           atomic.Int64 // requests that AwaitRetry keeps waiting
	placing        sync.Mutex   // TakeSlot
	Anonymous      anonymousRequests
	// anonymousBytes is what all requests without a credential together owe for large bodies.
	anonymousBytes toll.Account
	AnswerBytes    atomic.Int64 // AnswerBytes counts the bytes of large answers that are being sent
	names          knownNames   // what people are called
	watchers       atomic.Int64 // watchers counts the streams that are open or about to be
	waits          atomic.Int64 // see AdmitWait
	Usage          usageTable
	Limits         limits // set by New, then only read
	// allAnswered gets an entry when InFlight becomes 0 while Draining is set.
	allAnswered chan struct{}
	Requests    context.Context // the context of all requests; Cancel ends it
	Cancel      context.CancelFunc

	metrics     metrics
	Connections listener.Counts
	Started     time.Time // when the kernel was made: its counters begin there
}

// Working is how many requests are worked on. Those that have left their places are not, but they have connections, and
// Stop waits for them.
func (s *Kernel) Working() int64 { return s.InFlight.Load() - s.Idle.Load() }

// Exchange is one request and its answer. The goroutine of net/http that serves
// the request owns it; between requests it is in a pool.
type Exchange struct {
	Kernel     *Kernel
	Services   *Services // nil before open
	Route      *Route
	Writer     http.ResponseWriter
	Request    *http.Request
	Connection *listener.Conn // nil when the server did not accept it, as in tests
	Params     httprouter.Params
	Query      url.Values // nil without parameters
	Body       []byte     // belongs to the request; never pooled, since values alias it

	Identified
	Slot
	Hop
	Answer
	id    string // see RequestID
	begun time.Time
	Span  *trace.Span // nil: nobody follows the request
}

// RequestID names the request in the log and in the answers to internal errors. It is made when it is first asked for.
func (x *Exchange) RequestID() string {
	if x.id == "" {
		x.id = x.Kernel.IDPrefix + strconv.FormatUint(x.Kernel.lastID.Add(1), 10)
	}
	return x.id
}

// IsOpen reports whether there are services: requests before Open are answered with errors only.
func (x *Exchange) IsOpen() bool { return x.Services != nil }

// Identified is who asks.
type Identified struct {
	Caller     *identity.Principal // nil for routes that take no credential
	Kind       identity.Kind       // Kind and Credential are what the caller authenticated with
	Credential string
}

// isAmbient reports whether a browser adds the credential on its own, whichever page asks.
func (i *Identified) isAmbient() bool {
	return i.Kind == identity.Session || i.Kind == identity.Certificate
}

// Slot is how a request is counted.
type Slot struct {
	// Usage is the caller's. Nil: the caller is not known yet, or the route takes no credential, so that there is nobody to count it
	// for but the network (Kernel.Anonymous). What such routes use as well looks at that (EndAdmission, LeaveSlot, Charge, Send);
	// handlers of routes that require a credential need not.
	Usage       *UserUsage
	Counted     bool // in Kernel.InFlight, and in Usage
	idle        bool // see LeaveSlot
	BeyondShare bool // the request is refused because its user has too much already
	anonymous   bool // the request is counted in Kernel.Anonymous too, under network
	network     netip.Prefix
	BodyKept    int64 // bytes of a batch's body that are counted
}

// Hop is where a request came from and went to in a cluster.
type Hop struct {
	// Sender is what another node that forwarded the request says of it; nil when the caller asked here.
	Sender *Sender
	Keyed  bool   // the request has an idempotency key that its handler knows
	Leader string // the node that the request was forwarded to last; empty for none
}

// Vary is a set of headers that an answer depends on.
type Vary uint8

const (
	VaryAccept Vary = 1 << iota
	VaryEncoding
	VaryLanguage
	VaryOrigin
)

// Answer is what is sent.
type Answer struct {
	Status       int              // 0 until the answer has begun
	ContentType  []string         // nil is JSON
	CacheControl []string         // how long the answer may be kept; nil is not at all
	Vary         Vary             // the headers that the answer depends on, besides those of credentials
	ErrorPage    func(status int) // what a handler puts in place of Route.ErrorPage
	noted        noted            // what is recorded before the answer is sent
	// Out is where the answer is built. It is kept from request to request.
	Out []byte
}

// Sender is what SenderHeader holds, in JSON.
type Sender struct {
	node string // from the connection, not from the header
	// User is the caller, empty where no credential is needed, and Roles those that the
	// credential has beyond the user's own.
	User  identity.UserID `json:"user,omitempty"`
	Roles []string        `json:"roles,omitempty"`
	// Operator: the caller is who runs the service, in place of a user.
	Operator bool       `json:"operator,omitempty"`
	Request  string     `json:"request"` // the id of the request in the log of the node
	Client   netip.Addr `json:"client"`  // Client and Secure are what ClientOf says there
	Secure   bool       `json:"secure,omitempty"`
	// Part says that the body is a part of a batch; nil for any other request.
	Part *Part `json:"part,omitempty"`
}

// Part says that a forwarded body has items of a batch, all of one shard.
type Part struct {
	// Key is the idempotency key of the whole batch; empty without one. Numbers are then the places
	// of the items in the whole, from 0.
	Key     string `json:"key,omitempty"`
	Numbers []int  `json:"numbers,omitempty"`
	// Keep asks to keep Key for the whole batch, whose fingerprint it is, in hexadecimal. Such a part has no items.
	Keep string `json:"keep,omitempty"`
}

// SenderHeader is the header with which a node says what it knows of a request that it
// forwards. It means something only to PeerHandler: from anybody else it is ignored.
const SenderHeader = "Troupe-Sender"

type senderKey struct{}

// senderOf returns the node that forwarded a request, nil when the caller asked here.
func senderOf(r *http.Request) *Sender {
	from, _ := r.Context().Value(senderKey{}).(*Sender)
	return from
}

// Route is one row of the table: what a path answers, and to whom.
type Route struct {
	// Name is what the route is called in metrics, logs and fingerprints. It
	// must never change: stored fingerprints hold it.
	Name   string
	Method string
	Path   string // Path follows the base path; ":x" is one segment
	Group  Group
	// Access says who may come. A row without it does not register, so that a
	// forgotten policy is a server that does not start.
	Access      Access
	Privilege   identity.Privilege // what the caller must hold besides; empty is none
	OrPrivilege identity.Privilege // one with which the caller may come just as well
	// Query lists the parameters that the route knows. Others are refused.
	Query        []string
	IgnoresQuery bool // IgnoresQuery marks pages: their query is for the script, and nobody here looks at it
	// AnyQuery lets parameters pass that the route does not know: a provider adds
	// what it likes. They stand there once, like all.
	AnyQuery bool
	// ErrorPage answers errors with a page instead of JSON: a person looks at them.
	ErrorPage func(x *Exchange, status int)
	// Strict refuses other sites' pages with every method, not only with those that change something: for answers that
	// no link leads to, but that cost something while they last.
	Strict bool
	// Secret marks answers that give out a credential or show whose it is: they are never compressed: see mayCompress.
	Secret    bool
	Operator  bool // who runs the service on its own machine may use it too, as with mod-workflows
	Once      bool // although its method is safe, it is not repeated at another node
	ReadsBody bool // Handle reads the body itself, which may be JSON in lines too
	// Content is the type of the body, if it is not JSON, and ContentBytesMax its bound in place of
	// Options.BodyBytesMax. TakesYAML: it may be YAML too, and the handler reads it.
	Content         string
	TakesYAML       bool
	ContentBytesMax int64
	Handle          func(*Exchange) error // Handle answers the request, or returns the error to answer it with

	metrics *routeMetrics // set by register
}

// Row is base with a name, a method, the rest of the path, a handler and the query parameters it knows.
func (base Route) Row(name, method, path string, handle func(*Exchange) error, query ...string) Route { //nolint:gocritic // base is the copy that it returns
	base.Name, base.Method, base.Path, base.Handle, base.Query = name, method, base.Path+path, handle, query
	return base
}

// Access is who may use a route. The zero value is nobody, and refused.
type Access struct {
	declared bool
	// Kinds are the credentials that the route takes; none means that it accepts requests without one.
	Kinds identity.Kind
	// ending marks what ends a session: it also takes a session already ended but not
	// durably so, so that a repeated sign-out waits.
	ending bool
	// Probe marks health: answered while starting, draining and full, with any query, and read by nobody but machines.
	Probe bool
	// SignIn marks what gives out a credential: pages of other sites are refused although there is no cookie, so that
	// nobody is signed in as another without noticing, and so is every content type that a form can send.
	SignIn bool
}

// SignedIn requires a credential of one of the kinds.
func SignedIn(kinds identity.Kind) Access { return Access{declared: true, Kinds: kinds} }

var (
	// Probed is for health.
	Probed = Access{declared: true, Probe: true}
	// Public is for everybody.
	Public = Access{declared: true}
	// SigningOut is for sessions, also those whose end is not durable yet.
	SigningOut = Access{declared: true, Kinds: identity.Session, ending: true}
	// SigningIn is for everybody who asks on a page of ours, or on none.
	SigningIn = Access{declared: true, SignIn: true}
)

// The paths that groups of operations hang below.
const (
	AdminPath    = "/admin/api/v1"
	PortalPath   = "/form-portal"
	RuntimePath  = "/form-runtime/api/v1"
	WorkflowPath = "/workflow/api/v1"
)

// reservedPath is what no form's page has: formportal.reservedID keeps templates from the id "api".
const reservedPath = "/form-runtime/api/"

// APIPaths is what groups A to D hang below, the form runtime's interface and that for admins:
// anyone who asks there is a program.
var APIPaths = []string{PortalPath, RuntimePath, "/workflow", "/rml-engine", "/docx-engine", "/repository", AdminPath}

// Hooks are what the kernel asks those above it.
type Hooks struct {
	// ErrorPage answers an error for a person, and reports whether it did: not when a program asks.
	ErrorPage func(x *Exchange, status int, id string) bool
	// Elsewhere answers a request whose handler found that another node leads what it needs. Nil: the node is standalone.
	Elsewhere func(x *Exchange, err error) error
}

// Services is what the kernel asks. It does not change it.
type Services struct {
	Credentials Credentials
	// Users says who there is. Nil: users have no names but their login names.
	Users Users
	Audit *audit.Log // nil: nothing is recorded
	// Locate says who leads an instance, and false when that is not known. Nil: the node is standalone.
	Locate func(instance string) (leader.Place, bool)
}

// Credentials authenticates callers. Errors are failure.ErrUnauthorized for every cause.
type Credentials interface {
	Authenticate(kind identity.Kind, credential string) (*identity.Principal, error)
	// Principal returns a user whose credential another node has authenticated. roles are
	// those that the credential has beyond the user's own.
	Principal(user identity.UserID, roles []string) (*identity.Principal, error)
}

// Users says who there is.
type Users interface {
	// Directory is that of now.
	Directory() *identity.Directory
}

// knownNames numbers the changes of what people are called. Its methods are safe for concurrent use.
type knownNames struct {
	mu      sync.Mutex
	of      *identity.Directory // guarded by mu
	changes int                 // guarded by mu
}

func (k *knownNames) number(of Users) int {
	if of == nil {
		return 0
	}
	now := of.Directory()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.of != now {
		isNamedSame := func(a, b identity.User) bool { return a.ID == b.ID && a.Name == b.Name }
		if k.of != nil && !slices.EqualFunc(k.of.Users(), now.Users(), isNamedSame) {
			k.changes++
		}
		k.of = now
	}
	return k.changes
}
