package client

import (
	"cmp"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Options says where a service is and how patient its caller.
type Options struct {
	// Address is the URL of the service, http or https, with its base path if it
	// has one: "http://127.0.0.1:8080", "https://example.org/platform".
	Address string
	// Token is an API token; empty sends none. It goes to Address and nowhere else.
	Token string
	// HTTP sends the requests. It is copied; its CheckRedirect is not used, and its Timeout not for Watch. Nil: a
	// client of the package's own that keeps up to 16 idle connections.
	HTTP *http.Client

	// RetryMax is how often a call is repeated after its first attempt, where it
	// is repeated at all. 0: 4. Negative: never.
	RetryMax int
	// RetryWait is the first wait between attempts when the service names none; it doubles with each. 0: 100 ms.
	RetryWait time.Duration
	// RetryWaitMax is the longest wait. A call whose service asks for more gives up at once. 0: 30 s.
	RetryWaitMax time.Duration
	// CallMax bounds one call, or one page, with all its repetitions; Watch has no bound but its context. 0: 90 s.
	CallMax time.Duration

	// BodyBytesMax bounds an answer. 0: 64 MiB.
	BodyBytesMax int64
	// EventBytesMax bounds one event of a watch, and each of its lines. 0: 4 MiB.
	EventBytesMax int
	// SilenceMax is how long a watch may bring nothing, not even a beat, before
	// its connection counts as broken. 0: 45 s, three beats.
	SilenceMax time.Duration

	// Languages are those of the reader, as the header Accept-Language has them; empty sends none.
	Languages string

	// UserAgent names the program. Empty: "troupe-client".
	UserAgent string
}

func (o *Options) defaults() {
	o.RetryMax = max(cmp.Or(o.RetryMax, 4), 0)
	o.RetryWait = cmp.Or(o.RetryWait, 100*time.Millisecond)
	o.RetryWaitMax = cmp.Or(o.RetryWaitMax, 30*time.Second)
	o.CallMax = cmp.Or(o.CallMax, 90*time.Second)
	o.BodyBytesMax = cmp.Or(o.BodyBytesMax, 64<<20)
	o.EventBytesMax = cmp.Or(o.EventBytesMax, 4<<20)
	o.SilenceMax = cmp.Or(o.SilenceMax, 45*time.Second)
	o.UserAgent = cmp.Or(o.UserAgent, "troupe-client")
}

// hostPort is an address that lacks its scheme only. A user or a password has no place in it.
var hostPort = regexp.MustCompile(`^[A-Za-z0-9.-]+:[0-9]+$`)

func parseAddress(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	switch {
	case hostPort.MatchString(address):
		return nil, invalid("the address must be a URL: http://%s or https://%s", address, address)
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		// NB: the error of url.Parse repeats the text, which may hold a password.
		return nil, invalid("the address must be a URL such as http://127.0.0.1:8080 or https://example.org/platform")
	case u.User != nil:
		return nil, invalid("the address must not hold a user or a password")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, invalid("the address must end with its path")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = strings.TrimRight(u.RawPath, "/")
	return u, nil
}

// checkToken makes sure that a token can stand in a header. Errors never hold the token.
func checkToken(token string) error {
	for i := range len(token) {
		if c := token[i]; c <= ' ' || c > '~' || c == ',' {
			return invalid("the token holds characters that no token has")
		}
	}
	return nil
}

func newHTTP() *http.Client {
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		ForceAttemptHTTP2:     true,
		TLSHandshakeTimeout:   10 * time.Second,
		MaxIdleConns:          16,
		MaxIdleConnsPerHost:   16,
		IdleConnTimeout:       60 * time.Second,
		ExpectContinueTimeout: time.Second,
		// CallMax bounds calls; this is for watches, which have none.
		ResponseHeaderTimeout: 90 * time.Second,
		// Packing costs the service and this client more than the bytes do between
		// machines of one place. Options.HTTP is for callers who are far away.
		DisableCompression: true,
	}}
}
