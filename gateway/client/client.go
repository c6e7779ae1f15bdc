// Package client asks a running service over HTTP: create instances, send them events, read, list and watch them.
//
//	c, err := client.New(client.Options{Address: "http://127.0.0.1:8080", Token: token})
//	made, err := c.Create(ctx, client.CreateRequest{WorkflowID: "leave-request"})
//	for entry, err := range c.Watch(ctx, client.WatchRequest{WorkflowID: "leave-request"}) { … }
//
// The name of the module is not an address, so go get does not find it. Name a clone of it in your go.mod, and run go
// mod tidy:
//
//	require troupe v0.0.0
//	replace troupe => ./path/to/clone
//
// Make one Client for a service; any number of goroutines may use it. The context of a call bounds it with all its
// repetitions. A call repeats a request only where that is safe:
//
//	answer                                   Create, Send   others
//	429, 503 with Retry-After (not applied)  again          again
//	502, 503 without it, 504                 again          -
//	broken connection, nobody there          again          -
//	everything else                          -              -
//
// Create, Send and Batch are safe because each carries an idempotency key: a random one, unless the caller has its own.
// When one fails and the outcome is unknown, the error wraps an UnknownError with the key to ask again with. What the
// service refuses is an *Error. Free-form data and records keep the service's bytes. Every answer is bounded
// (Options.BodyBytesMax), and a redirect is never followed, so a token goes nowhere else. Watch reconnects on its own,
// and says when entries are missing. No goroutine outlives a call.
package client

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"troupe/gateway/api"
)

// Client asks one service. Its methods may be called by any number of goroutines. Make it with New.
type Client struct {
	options Options
	nodes   *nodes
	http    http.Client // for calls
	stream  http.Client // the same without a Timeout, for watches
	// pause waits between attempts; tests look at the times instead.
	pause func(ctx context.Context, wait time.Duration) error
}

// New makes a client. It connects nowhere. Errors wrap ErrInvalid.
func New(o Options) (*Client, error) {
	o.defaults()
	nodes, err := newNodes(append([]string{o.Address}, o.Others...))
	if err == nil {
		err = checkToken(o.Token)
	}
	if err != nil {
		return nil, err
	}
	c := &Client{options: o, nodes: nodes, pause: pause}
	if o.HTTP == nil {
		o.HTTP = newHTTP(o.TLS)
	}
	c.http = *o.HTTP
	// NB: the service never redirects; whoever does is not to get the token.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.stream = c.http
	c.stream.Timeout = 0
	return c, nil
}

// Close closes the connections that are idle, also those of Options.HTTP. Calls under way go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }

type request struct {
	method  string
	base    string   // empty: api.BasePath
	path    []string // behind it
	query   url.Values
	body    []byte
	content string // the type of the body; empty: JSON
	key     string // the idempotency key; empty for what has none, which is only read
	ifMatch uint64 // 0: none
	minimal bool   // without history
	// repeatable: it may be sent again whatever came of it, although it has no key.
	repeatable bool
	// instance is what the request is about; empty: what the path says, if it does.
	instance string
}

// about returns the instance that the request is about; empty for none.
func (r *request) about() string {
	if r.instance == "" && len(r.path) > 2 && r.path[0] == "instance" {
		return r.path[2]
	}
	return r.instance
}

type answer struct {
	header http.Header
	body   []byte
}

// sequence reads the entity tag of an instance, which may be that of packed bytes; 0 when there is none.
func (a *answer) sequence() uint64 {
	tag := strings.Trim(a.header.Get("ETag"), `"`)
	n, err := strconv.ParseUint(strings.TrimSuffix(tag, api.GzipSuffix), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// decode reads an answer, or a part of one, into a struct of package api.
func decode(text []byte, to any) error {
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("%w: %w", ErrProtocol, err)
	}
	return nil
}

// encode is json.Marshal without its escapes for HTML, so that free-form data goes out as it is.
func encode(body any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(body); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return b.Bytes(), nil
}

func (c *Client) newRequest(ctx context.Context, at int, r *request) (*http.Request, error) {
	target := c.nodes.addresses[at].JoinPath(append([]string{cmp.Or(r.base, api.BasePath)}, r.path...)...)
	target.RawQuery = r.query.Encode()
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	out, err := http.NewRequestWithContext(ctx, r.method, target.String(), body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	h := out.Header
	h.Set("User-Agent", c.options.UserAgent)
	h.Set("Accept", "application/json")
	if c.options.Languages != "" {
		h.Set("Accept-Language", c.options.Languages)
	}
	if c.options.Token != "" {
		h.Set("Authorization", "svc.token "+c.options.Token)
	}
	if r.body != nil {
		h.Set("Content-Type", cmp.Or(r.content, "application/json"))
	}
	if r.key != "" {
		h.Set("Idempotency-Key", r.key)
	}
	if r.ifMatch != 0 {
		h.Set("If-Match", `"`+strconv.FormatUint(r.ifMatch, 10)+`"`)
	}
	if r.minimal {
		h.Set("Prefer", "return=minimal")
	}
	return out, nil
}

func (c *Client) attempt(ctx context.Context, at int, r *request) (*answer, error) {
	out, err := c.newRequest(ctx, at, r)
	if err != nil {
		return nil, err
	}
	in, err := c.http.Do(out)
	if err != nil {
		return nil, c.broken(at, err)
	}
	c.nodes.answered(at, in.Header)
	defer func() { _ = in.Body.Close() }() // it was read
	if in.StatusCode != http.StatusOK {
		return nil, readError(in)
	}
	body, err := io.ReadAll(io.LimitReader(in.Body, c.options.BodyBytesMax+1))
	switch {
	case err != nil:
		return nil, c.broken(at, cut{err})
	case int64(len(body)) > c.options.BodyBytesMax:
		return nil, fmt.Errorf("%w: more than %d bytes", ErrProtocol, c.options.BodyBytesMax)
	}
	return &answer{header: in.Header, body: body}, nil
}

// broken names the service in an error of the network, in place of the whole URL: a filter may be long, or private.
func (c *Client) broken(at int, err error) error {
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return fmt.Errorf("ask %s: %w", cmp.Or(c.options.Name, c.nodes.addresses[at].String()), err)
}

// cut is an error in the middle of an answer.
type cut struct{ error }

func (c cut) Unwrap() error { return c.error }

// faultBytesMax is how much of the body of an error is read.
const faultBytesMax = 1 << 20

func readError(in *http.Response) *Error {
	e := &Error{Status: in.StatusCode}
	// NB: an error in the middle leaves the status, which says enough.
	text, _ := io.ReadAll(io.LimitReader(in.Body, faultBytesMax))
	var fault api.Fault
	if err := json.Unmarshal(text, &fault); err == nil {
		e.Code, e.Message, e.Faults = fault.Error, fault.Message, fault.Faults
	}
	e.RetryAfter, e.notApplied = parseRetryAfter(in.Header.Get("Retry-After"), time.Now())
	return e
}

// parseRetryAfter reads seconds or a date (RFC 9110, 10.2.3).
func parseRetryAfter(value string, now time.Time) (wait time.Duration, given bool) {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}

// isIdentifier reports whether s can name a workflow or an instance. NB: others
// must not become a part of a path, where "" and ".." mean something.
func isIdentifier(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '~' || c == '-'):
		default:
			return false
		}
	}
	return true
}

func checkWorkflow(id string) error {
	if !isIdentifier(id) {
		return invalid("%.80q cannot be the id of a workflow", id)
	}
	return nil
}

func checkInstance(workflow, id string) error {
	if err := checkWorkflow(workflow); err != nil {
		return err
	}
	if !isIdentifier(id) {
		return invalid("%.80q cannot be the id of an instance", id)
	}
	return nil
}

// pause waits. It does not begin to when ctx will end before, so that the caller hears of the cause in time.
func pause(ctx context.Context, wait time.Duration) error {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < wait {
		return context.DeadlineExceeded
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Options says where a service is and how patient its caller.
type Options struct {
	// Address is the URL of the service, http or https, with its base path if it
	// has one: "http://127.0.0.1:8080", "https://example.org/platform".
	Address string
	// Name stands for Address in errors. Empty: the address does.
	Name string
	// Others are the addresses of further nodes of the same cluster. With them, requests about an instance go to the node
	// that leads it, as answers have told, others go to each in turn, and one that cannot be reached is replaced by
	// another one.
	Others []string
	// Token is an API token; empty sends none. It goes to Address and Others, and nowhere else.
	Token string
	// HTTP sends the requests. It is copied; its CheckRedirect is not used, and its Timeout not for Watch. Nil: a
	// client of the package's own that keeps up to 16 idle connections.
	HTTP *http.Client
	// TLS is how that client of the package's own reaches https: RootCAs it trusts, in place of the system's, and
	// Certificates with which a program authenticates in place of a token. Nil is neither. It is not used with HTTP.
	TLS *tls.Config

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

func newHTTP(over *tls.Config) *http.Client {
	dialer := net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	return &http.Client{Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           dialer.DialContext,
		TLSClientConfig:       over.Clone(), // NB: nil stays nil
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
