package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"troupe/gateway/api"
)

// Client asks one service. Its methods may be called by any number of goroutines. Make it with New.
type Client struct {
	options Options
	address *url.URL    // without a slash at its end
	http    http.Client // for calls
	stream  http.Client // the same without a Timeout, for watches
	// pause waits between attempts; tests look at the times instead.
	pause func(ctx context.Context, wait time.Duration) error
}

// New makes a client. It connects nowhere. Errors wrap ErrInvalid.
func New(o Options) (*Client, error) {
	o.defaults()
	address, err := parseAddress(o.Address)
	if err == nil {
		err = checkToken(o.Token)
	}
	if err != nil {
		return nil, err
	}
	c := &Client{options: o, address: address, pause: pause}
	if o.HTTP == nil {
		o.HTTP = newHTTP()
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

func (c *Client) newRequest(ctx context.Context, r *request) (*http.Request, error) {
	target := c.address.JoinPath(append([]string{cmp.Or(r.base, api.BasePath)}, r.path...)...)
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

func (c *Client) attempt(ctx context.Context, r *request) (*answer, error) {
	out, err := c.newRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	in, err := c.http.Do(out)
	if err != nil {
		return nil, c.broken(err)
	}
	defer func() { _ = in.Body.Close() }() // it was read
	if in.StatusCode != http.StatusOK {
		return nil, readError(in)
	}
	body, err := io.ReadAll(io.LimitReader(in.Body, c.options.BodyBytesMax+1))
	switch {
	case err != nil:
		return nil, c.broken(err)
	case int64(len(body)) > c.options.BodyBytesMax:
		return nil, fmt.Errorf("%w: more than %d bytes", ErrProtocol, c.options.BodyBytesMax)
	}
	return &answer{header: in.Header, body: body}, nil
}

// broken names the service in an error of the network, in place of the whole URL: a filter may be long, or private.
func (c *Client) broken(err error) error {
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return fmt.Errorf("ask %s: %w", c.address, err)
}

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
