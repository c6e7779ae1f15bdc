package kernel

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/trace"
	"troupe/gateway/internal/cors"
)

// Options says how a Server works. The zero value works.
type Options struct {
	// Addr is the address to listen on, "host:port"; port 0 picks a free one. Empty is 127.0.0.1:8080.
	Addr string
	// BasePath stands in front of every path, health included, for a service behind a proxy beside others: "/platform".
	// Empty is none; a slash at the end is dropped.
	BasePath string
	// SessionCookie is the name of the cookie that carries a session. Empty is "session", as the interface has it.
	SessionCookie string
	// TrustedProxies are the addresses of the proxies in front. From them, and from nobody else, X-Forwarded-For tells
	// where a sign-in comes from and X-Forwarded-Proto whether cookies are Secure. Empty is none: behind a proxy all
	// callers then share the limit for its address.
	TrustedProxies []netip.Prefix

	// TLS has the listener speak TLS, with HTTP/2 and HTTP/1.1. Nil: HTTP/1.1 without TLS.
	TLS Certificates
	// Origins are the other sites whose pages may call the service, with a token, such as https://app.example.com; "*"
	// is all. Empty: none.
	Origins cors.Origins

	Build Build // shown by /readyz with "verbose"; the zero value is not

	// BodyBytesMax bounds a request's body; a larger one is 413. Zero is 1 MiB.
	BodyBytesMax int64
	// HeaderBytesMax bounds a request's line and headers; more is 431. Zero is 64 KiB.
	HeaderBytesMax int
	// ConnectionsMax bounds the open connections. A new one beyond takes the place of an idle one, of those without a
	// credential first; an eighth is never busy, so there always is one. Zero is 16,384. Each costs about 15 KB; the
	// limit of open files must be above it.
	ConnectionsMax int
	// InFlightMax bounds the requests that are worked on at once; more are answered with 503 Busy, and so are those of
	// one user beyond half of them. While goroutines wait long for a processor there are fewer, down to 64 for each.
	// Health is not counted. Zero is 2,048; never more than connections can be busy. In the worst case each holds a
	// body of BodyBytesMax.
	InFlightMax int64

	// AnswerBytesMax bounds the large answers that wait for their callers to read them; above it, and for one user
	// above half of it, reads are answered with 503 Busy. An answer larger than that half counts as the half. Zero is
	// 256 MiB.
	AnswerBytesMax int64

	// WatchersMax bounds the streams of events that are open at once; more are answered with 503 Busy. They are not
	// counted as requests in flight. Zero is 1,000. Each holds a connection.
	WatchersMax int64
	// WatchersPerUserMax bounds those of one user likewise. Zero is 100; above half of WatchersMax it is that half.
	WatchersPerUserMax int64

	// HeaderReadMax is the time in which a request's headers must arrive. Zero is 5 s.
	HeaderReadMax time.Duration
	// ReadMax is the time in which a whole request must arrive. Zero is 30 s.
	ReadMax time.Duration
	// WriteMax is the time to work on a request and write its answer; a streamed answer has it for every piece again,
	// and a watcher for every event. Zero is 60 s. It must be above the time after which a commit is given up.
	WriteMax time.Duration
	// LeaderWaitMax is how long a request waits in all for the node that leads the shard it
	// needs, in a cluster. Zero is 10 s.
	LeaderWaitMax time.Duration
	// IdleMax is how long a connection may wait for its next request. Zero is
	// 2 min. A proxy in front should close its side earlier.
	IdleMax time.Duration

	// DrainDelay is how long a stopping server goes on answering new requests with 503, so that load balancers see
	// /readyz turn before the port is closed. Zero is not at all.
	DrainDelay time.Duration
	// DrainMax bounds the time that Stop gives to accepted requests. Zero is 8 s.
	DrainMax time.Duration

	// Latency returns what takes how long the answers of a route to a method take. It is asked once for each status of
	// them. Nil: nobody.
	Latency func(route, method string) Observer

	// Tracer begins a span for each request that is not for health. Nil: nobody collects traces.
	Tracer *trace.Tracer

	// Log takes panics and internal errors (error), troubles of the listener
	// (warning), start and stop (info), and requests (debug).
	Log zerolog.Logger
}

// Certificates are those of a listener and of its callers.
type Certificates interface {
	Config() *tls.Config
	// User is whom the certificate of a connection stands for, empty for nobody. shown: it has one.
	User(of *tls.ConnectionState) (user string, shown bool)
}

// EnsureDefaults replaces zeroes by the defaults.
func (o *Options) EnsureDefaults() {
	o.Addr = cmp.Or(o.Addr, "127.0.0.1:8080")
	o.BasePath = strings.TrimSuffix(o.BasePath, "/")
	o.SessionCookie = cmp.Or(o.SessionCookie, "session")
	o.BodyBytesMax = cmp.Or(o.BodyBytesMax, 1<<20)
	o.HeaderBytesMax = cmp.Or(o.HeaderBytesMax, 64<<10)
	o.ConnectionsMax = cmp.Or(o.ConnectionsMax, 16_384)
	o.InFlightMax = cmp.Or(o.InFlightMax, 2_048)
	o.AnswerBytesMax = cmp.Or(o.AnswerBytesMax, 256<<20)
	o.WatchersMax = cmp.Or(o.WatchersMax, 1_000)
	o.WatchersPerUserMax = cmp.Or(o.WatchersPerUserMax, 100)
	o.HeaderReadMax = cmp.Or(o.HeaderReadMax, 5*time.Second)
	o.ReadMax = cmp.Or(o.ReadMax, 30*time.Second)
	o.WriteMax = cmp.Or(o.WriteMax, time.Minute)
	o.LeaderWaitMax = cmp.Or(o.LeaderWaitMax, 10*time.Second)
	o.IdleMax = cmp.Or(o.IdleMax, 2*time.Minute)
	o.DrainMax = cmp.Or(o.DrainMax, 8*time.Second)
}

var (
	// basePath has only characters that mean themselves in a path and in a route.
	basePath = regexp.MustCompile(`^(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*$`)
	// cookieName is a token of RFC 9110.
	cookieName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
)

// CheckBasePath refuses what cannot be Options.BasePath.
func CheckBasePath(path string) error {
	return checkTrimmedPath(strings.TrimSuffix(path, "/"))
}

// checkTrimmedPath is CheckBasePath behind EnsureDefaults, which has taken the slash
// at the end: another one is too many.
func checkTrimmedPath(path string) error {
	if !basePath.MatchString(path) {
		return errors.New(`must look like "/platform"`)
	}
	return nil
}

// CheckCookieName refuses what cannot be Options.SessionCookie.
func CheckCookieName(name string) error {
	if name != "" && !cookieName.MatchString(name) {
		return errors.New("must be a valid cookie name, such as session")
	}
	return nil
}

func (o *Options) validate() error {
	var problems []error
	require := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	err := checkTrimmedPath(o.BasePath)
	require(err == nil, "option BasePath is %q: %w", o.BasePath, err)
	for _, p := range o.TrustedProxies {
		require(p.IsValid(), "option TrustedProxies holds %v, which is not a range of addresses", p)
	}
	err = CheckCookieName(o.SessionCookie)
	require(err == nil, "option SessionCookie is %q: %w", o.SessionCookie, err)
	err = o.Origins.Check()
	require(err == nil, "option Origins: %w", err)
	for _, limit := range []struct {
		name  string
		value int64
	}{
		{"BodyBytesMax", o.BodyBytesMax},
		{"HeaderBytesMax", int64(o.HeaderBytesMax)},
		{"ConnectionsMax", int64(o.ConnectionsMax)},
		{"InFlightMax", o.InFlightMax},
		{"AnswerBytesMax", o.AnswerBytesMax},
		{"WatchersMax", o.WatchersMax},
		{"WatchersPerUserMax", o.WatchersPerUserMax},
		{"HeaderReadMax", int64(o.HeaderReadMax)},
		{"ReadMax", int64(o.ReadMax)},
		{"WriteMax", int64(o.WriteMax)},
		{"LeaderWaitMax", int64(o.LeaderWaitMax)},
		{"IdleMax", int64(o.IdleMax)},
		{"DrainMax", int64(o.DrainMax)},
	} {
		require(limit.value > 0, "option %s is %d, but must be above 0", limit.name, limit.value)
	}
	require(o.DrainDelay >= 0, "option DrainDelay is %v, but must not be negative", o.DrainDelay)
	return errors.Join(problems...)
}

// Build says how the program was built: its version, its commit and the version of
// Go. Everybody who can reach the server may see it.
type Build struct {
	Version, Commit, Go string
}
