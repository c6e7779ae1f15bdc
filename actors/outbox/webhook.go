package outbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"troupe/actors/internal/instanceid"
	"troupe/actors/trace"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

const (
	perHost        = 8
	AnswerBytesMax = 64 << 10       // how much of an answer is read and kept, in bytes
	afterMax       = 24 * time.Hour // afterMax bounds what an answer can demand by Retry-After
	secretPrefix   = "whsec_"
	secretMinimum  = 24 // bytes, as Standard Webhooks asks
)

// Endpoint is what the service's settings say of a webhook.
type Endpoint struct {
	URL     string // "": that of the definition
	Headers map[string]string
	Secret  []byte // nil: nothing is signed
}

// ParseSecret reads a secret as Standard Webhooks writes it: whsec_ and base64.
func ParseSecret(text string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(strings.TrimSpace(text), secretPrefix)
	secret, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(secret) < secretMinimum {
		return nil, fmt.Errorf("a secret is %s and the base64 of %d bytes or more", secretPrefix, secretMinimum)
	}
	return secret, nil
}

// WebhookOptions configures Webhooks.
type WebhookOptions struct {
	// Endpoint returns what the settings say of a webhook of a workflow; the zero value: nothing.
	Endpoint func(workflow, name string) Endpoint
	// Allow are networks that are reached although they are private, loopback or of the machine's own link.
	Allow  []netip.Prefix
	Source string // Source begins the source of events; the path of the interface
	// AttemptMax bounds an attempt, the wait for its host not counted. Zero is 10 s.
	AttemptMax time.Duration
	Clock      func() time.Time
}

// Webhooks sends to webhooks.
type Webhooks struct {
	o      WebhookOptions
	client *http.Client
	hosts  *hosts
}

// NewWebhooks returns a sender of deliveries to webhooks.
func NewWebhooks(o WebhookOptions) *Webhooks {
	o.AttemptMax = cmp.Or(o.AttemptMax, 10*time.Second)
	return &Webhooks{o: o, hosts: newHosts(o.Clock), client: NewClient(o.Allow)}
}

// NewClient makes a client that follows no redirects, and reaches public addresses and those of the networks of allow.
func NewClient(allow []netip.Prefix) *http.Client {
	dialer := &net.Dialer{Control: allowed(allow).mayReach}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: dialer.DialContext, MaxIdleConnsPerHost: perHost, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: AnswerBytesMax, ForceAttemptHTTP2: true,
		},
		// NB: another host would get what is meant for this one, and a GET nothing of it.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Close closes connections that nothing uses.
func (w *Webhooks) Close() { w.client.CloseIdleConnections() }

var errNotAllowed = errors.New("the address is private, and webhooks.allow does not name its network")

// allowed are the networks that are reached although they are not public.
type allowed []netip.Prefix

// mayReach looks at the address after the name was resolved, so that a name cannot stand for another one by then.
func (allow allowed) mayReach(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := at.Addr().Unmap().WithZone("") // NB: no network contains an address with a zone
	if slices.ContainsFunc(allow, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return nil
	}
	if ip.IsGlobalUnicast() && !ip.IsPrivate() && !slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return nil
	}
	return fmt.Errorf("%w: %s", errNotAllowed, ip)
}

// special are networks that are not public ones, of IANA's registries, beside those that net/netip knows.
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),  // shared by carriers
	netip.MustParsePrefix("192.0.0.0/24"),   // protocols
	netip.MustParsePrefix("198.18.0.0/15"),  // benchmarks
	netip.MustParsePrefix("192.88.99.0/24"), // relays of IPv6, given up
	netip.MustParsePrefix("192.0.2.0/24"),   // documentation, and the next two
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),    // reserved
	netip.MustParsePrefix("::/96"),          // IPv4 addresses in IPv6, given up
	netip.MustParsePrefix("fec0::/10"),      // of a site, given up
	netip.MustParsePrefix("2001::/23"),      // protocols, Teredo among them
	netip.MustParsePrefix("64:ff9b::/96"),   // of IPv4 addresses
	netip.MustParsePrefix("64:ff9b:1::/48"), // likewise
	netip.MustParsePrefix("2002::/16"),      // likewise
	netip.MustParsePrefix("2001:db8::/32"),  // documentation, and the next
	netip.MustParsePrefix("3fff::/20"),
	netip.MustParsePrefix("100::/64"),  // discarded
	netip.MustParsePrefix("5f00::/16"), // segment routing
}

func (w *Webhooks) endpoint(a Attempt) Endpoint {
	to := w.o.Endpoint(a.Workflow, a.Webhook.Name)
	to.URL = cmp.Or(to.URL, a.Webhook.URL)
	return to
}

// URL implements Sender.
func (w *Webhooks) URL(a Attempt) string { return w.endpoint(a).URL }

// Send implements Sender.
func (w *Webhooks) Send(ctx context.Context, a Attempt) Answer {
	to := w.endpoint(a)
	if to.URL == "" {
		return Answer{Err: fmt.Errorf("webhook %s has no url, neither in the definition nor in webhooks.endpoints", a.Webhook.Name), Final: true}
	}
	u, err := url.Parse(to.URL)
	if err == nil {
		err = statemachine.CheckWebhookURL(to.URL)
	}
	if err != nil {
		return Answer{Err: err, Final: true}
	}
	release, err := w.hosts.acquire(ctx, u.Host)
	if err != nil {
		return Answer{Err: err}
	}
	ctx, cancel := context.WithTimeout(ctx, w.o.AttemptMax)
	defer cancel()
	answer := w.post(ctx, a, to)
	release(answer.Status != 0 || errors.Is(answer.Err, errNotAllowed))
	return answer
}

func (w *Webhooks) post(ctx context.Context, a Attempt, to Endpoint) Answer {
	body := w.event(a)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to.URL, bytes.NewReader(body))
	if err != nil {
		return Answer{Err: err, Final: true}
	}
	for name, value := range to.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	if a.Trace != "" {
		r.Header.Set(trace.Header, a.Trace)
	}
	Sign(r, to.Secret, a.ID, w.o.Clock(), body)
	response, err := w.client.Do(r)
	if err != nil {
		return Answer{Err: WithoutURL(err)}
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusSwitchingProtocols { // NB: its body is the connection, which the context does not end
		return Answer{Status: response.StatusCode, Err: errors.New("the answer was 101")}
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, AnswerBytesMax))
	answer := AnswerOf(response.StatusCode, bodyOf(response.Header.Get("Content-Type"), text))
	switch code := response.StatusCode; {
	case answer.Err == nil && err != nil:
		answer.Err = fmt.Errorf("the answer broke off: %w", err)
	case code == http.StatusTooManyRequests, code == http.StatusServiceUnavailable:
		answer.After = retryAfter(response.Header.Get("Retry-After"), w.o.Clock())
	}
	return answer
}

// AnswerOf is what a webhook has answered.
func AnswerOf(status int, body data.Value) Answer {
	answer := Answer{Status: status, Body: body}
	if status < 200 || status >= 300 {
		answer.Err, answer.Final = fmt.Errorf("the answer was %d", status), status == http.StatusGone
	}
	return answer
}

// WithoutURL takes the URL, which may have a secret, out of an error of a client.
func WithoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// Sign adds the headers of Standard Webhooks to a request: its id, the same for each attempt, the time, and, unless secret
// is nil, the signature.
func Sign(r *http.Request, secret []byte, id string, now time.Time, body []byte) {
	stamp := strconv.FormatInt(now.Unix(), 10)
	r.Header.Set("User-Agent", "troupe")
	r.Header.Set("Webhook-Id", id)
	r.Header["Idempotency-Key"] = nil // not sent: the client may use another connection when this one was closed while it was idle
	r.Header.Set("Webhook-Timestamp", stamp)
	if secret != nil {
		r.Header.Set("Webhook-Signature", "v1,"+sign(secret, id, stamp, body))
	}
}

func sign(secret []byte, id, stamp string, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// event is the body: an event of CloudEvents 1.0 in JSON.
func (w *Webhooks) event(a Attempt) []byte {
	instance := instanceid.Text(a.Instance)
	out := append([]byte(nil), `{"specversion":"1.0","id":`...)
	out = data.AppendString(out, a.ID)
	out = append(out, `,"source":`...)
	out = data.AppendString(out, w.o.Source+"/instance/"+a.Workflow+"/"+instance)
	out = append(out, `,"type":`...)
	out = data.AppendString(out, a.Workflow+"."+a.Queue)
	out = append(out, `,"subject":`...)
	out = data.AppendString(out, instance)
	out = append(out, `,"time":`...)
	out = data.AppendString(out, a.Created.UTC().Format(statemachine.TimeLayout))
	out = append(out, `,"datacontenttype":"application/json","data":`...)
	if len(a.Body) > 0 {
		out = append(out, a.Body...)
	} else {
		out = append(out, "null"...)
	}
	return append(out, '}')
}

// bodyOf is an answer as event.data has it: JSON as it is, other texts as a text, and nothing else.
func bodyOf(contentType string, text []byte) data.Value {
	if len(text) == 0 {
		return nil
	}
	kind, _, _ := mime.ParseMediaType(contentType)
	if kind == "application/json" || strings.HasSuffix(kind, "+json") {
		if v, err := data.Clean(text); err == nil {
			return v
		}
	}
	return data.AppendString(nil, strings.ToValidUTF8(string(text), "\uFFFD"))
}

func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, afterMax)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), afterMax)
	}
	return 0
}

// A host that does not answer is asked again after downMin, and at last every downMax.
const (
	downMin   = time.Second
	downMax   = time.Minute
	downAfter = perHost // how many attempts in a row must have had no answer before a host is down
)

type hosts struct {
	clock func() time.Time
	mu    sync.Mutex
	by    map[string]*host
}

type host struct {
	slots  chan struct{}
	users  int // that have a slot or wait for one
	silent int // attempts in a row without an answer
	pause  time.Duration
	until  time.Time // it is left alone
	pauses int       // how often it was left alone
}

func newHosts(clock func() time.Time) *hosts { return &hosts{clock: clock, by: map[string]*host{}} }

// acquire waits for a slot. release says whether the host has answered.
func (h *hosts) acquire(ctx context.Context, name string) (release func(answered bool), err error) {
	h.mu.Lock()
	to := h.by[name]
	if to == nil {
		to = &host{slots: make(chan struct{}, perHost)}
		h.by[name] = to
	}
	to.users++
	h.mu.Unlock()
	leave := func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if to.users--; to.users == 0 && to.silent == 0 {
			delete(h.by, name)
		}
	}
	select {
	case to.slots <- struct{}{}:
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
	pauses := 0
	for {
		h.mu.Lock()
		pauses = to.pauses
		wait := to.until.Sub(h.clock())
		if wait <= 0 && to.silent >= downAfter { // this one looks whether it is back; the others wait meanwhile
			to.until = h.clock().Add(to.pause)
		}
		h.mu.Unlock()
		if wait <= 0 {
			break
		}
		timer := time.NewTimer(min(wait, downMin))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			<-to.slots
			leave()
			return nil, ctx.Err()
		}
	}
	return func(answered bool) {
		h.mu.Lock()
		if answered {
			to.silent, to.pause, to.until = 0, 0, time.Time{}
		} else if to.silent++; to.silent >= downAfter && to.pauses == pauses { // NB: those that were under way together say it once
			to.pauses++
			to.pause = min(max(2*to.pause, downMin), downMax)
			to.until = h.clock().Add(to.pause)
		}
		h.mu.Unlock()
		<-to.slots
		leave()
	}, nil
}
