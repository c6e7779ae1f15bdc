package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"troupe/gateway/api"
)

var (
	// ErrInvalid is wrapped when a request cannot be sent as it is: an identifier, a key or a limit that no service
	// takes, or data that is not JSON. The caller must correct it.
	ErrInvalid = errors.New("invalid request")
	// ErrOutcomeUnknown is wrapped, beside the cause, by errors of Create and Send when the service may have done what
	// was asked. Ask again with the same key, which UnknownError has: it is done once in all.
	ErrOutcomeUnknown = errors.New("it is not known whether this was done")
	// ErrProtocol is wrapped when an answer is none of this interface, or larger
	// than Options allow. Either the address is wrong or the service is newer.
	ErrProtocol = errors.New("unexpected answer")
)

// Error is what the service refused.
type Error struct {
	Status int // the HTTP status
	// Code is the member "error" of the body, such as "NotFound"; empty when the
	// answer is not from the service but from something in front of it.
	Code    string
	Message string // for people, and not to be relied on
	// RetryAfter is how long to wait before asking again; 0 when the answer does not say.
	RetryAfter time.Duration
	Faults     []api.FileFault // those of the files of a home that was refused

	notApplied bool // notApplied says that a Retry-After stood there, however short
}

// Error returns status, code and message; what does not print is escaped.
func (e *Error) Error() string {
	code, message := e.Code, e.Message
	if code == "" {
		code = http.StatusText(e.Status)
	}
	text := strings.TrimSpace(strconv.Itoa(e.Status) + " " + Printable(code))
	if message == "" {
		return text
	}
	return text + ": " + Printable(message)
}

// Printable escapes what does not print, so that it can be shown on a terminal: control characters, line ends, marks
// that turn the direction of writing, bytes that are not UTF-8.
func Printable(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		if strconv.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(s[:size])
		} else {
			quoted := strconv.QuoteToASCII(s[:size])
			b.WriteString(quoted[1 : len(quoted)-1])
		}
		s = s[size:]
	}
	return b.String()
}

// asking puts what was asked for in front of an error of a method.
func asking(err *error, format string, names ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", Printable(fmt.Sprintf(format, names...)), *err)
	}
}

// UnknownError is an error after which it is unknown whether the request was carried
// out. It wraps ErrOutcomeUnknown and Cause.
type UnknownError struct {
	// Cause is why the last attempt failed. Where that one surely did nothing, but one
	// before it may have, its text says so.
	Cause error
	Key   string // the idempotency key with which to ask again
}

// Error returns the cause and the key.
func (u *UnknownError) Error() string {
	return fmt.Sprintf("%v; %v: ask again with the key %s", u.Cause, ErrOutcomeUnknown, u.Key)
}

// Unwrap returns ErrOutcomeUnknown and the cause.
func (u *UnknownError) Unwrap() []error { return []error{ErrOutcomeUnknown, u.Cause} }

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// call sends a request, again where that is safe, and returns the answer.
func (c *Client) call(ctx context.Context, r *request) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.CallMax)
	defer cancel()
	unknown := false
	at, left := c.nodes.pick(r.about(), nobody), c.nodes.others()
	for attempt := 0; ; attempt++ {
		a, err := c.attempt(ctx, at, r)
		if err == nil {
			return a, nil
		}
		v := evaluate(err, r.key != "" || r.repeatable, r.method == http.MethodGet)
		v.unknown = v.unknown && !r.repeatable
		unknown = unknown || v.unknown
		if v.elsewhere && left > 0 && ctx.Err() == nil {
			at = c.nodes.replace(at, r.about())
			left, attempt = left-1, attempt-1
			continue
		}
		if v.again && attempt < c.options.RetryMax {
			if c.await(ctx, v.wait, attempt) == nil {
				at, left = c.nodes.pick(r.about(), at), c.nodes.others()
				continue
			}
			if ended := ctx.Err(); ended != nil {
				err = fmt.Errorf("%w, after: %w", ended, err)
			}
		}
		if unknown && !v.unknown {
			err = fmt.Errorf("%w (so the last attempt, one before it may have been carried out)", err)
		}
		if unknown {
			err = &UnknownError{Cause: err, Key: r.key}
		}
		return nil, err
	}
}

type verdict struct {
	again bool // sending it again is safe and may help
	// elsewhere: nobody has answered, and it is safe to ask another node.
	elsewhere bool
	unknown   bool          // it may have been carried out
	wait      time.Duration // what the service asks for; 0: nothing
}

// evaluate reads the error of an attempt (see the table of the package). keyed says
// that the request can be repeated without being done twice, and reads that it changes nothing.
func evaluate(err error, keyed, reads bool) verdict {
	if refused := (*Error)(nil); errors.As(err, &refused) {
		switch {
		case refused.Status != http.StatusTooManyRequests && refused.Status < 502 || refused.Status > 504:
			return verdict{}
		case refused.Status != http.StatusGatewayTimeout && refused.Status != http.StatusBadGateway && refused.notApplied:
			return verdict{again: true, wait: refused.RetryAfter}
		case refused.Status == http.StatusTooManyRequests:
			return verdict{}
		}
		return verdict{again: keyed, unknown: keyed, wait: refused.RetryAfter}
	}
	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrProtocol) {
		return verdict{}
	}
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	unreached, broken := neverReached(err), cut{}
	v := verdict{elsewhere: !ended && (unreached || keyed || reads && !errors.As(err, &broken))}
	if keyed {
		v.again, v.unknown = !ended && !hopeless(err), !unreached
	}
	return v
}

// neverReached reports whether there was no connection over which the request could have been sent.
func neverReached(err error) bool {
	if failed := (*net.OpError)(nil); errors.As(err, &failed) && failed.Op == "dial" {
		return true
	}
	return hopeless(err)
}

// hopeless reports whether the next attempt would end as this one did: there is
// no such host, or it is not the one that it should be.
func hopeless(err error) bool {
	name := (*net.DNSError)(nil)
	certificate := (*tls.CertificateVerificationError)(nil)
	plain := tls.RecordHeaderError{}
	return errors.As(err, &name) && name.IsNotFound || errors.As(err, &certificate) || errors.As(err, &plain)
}

// await waits before the next attempt: as long as the service asks for, and otherwise longer each time; both with some
// chance, so that callers who were refused together do not come back together. An error says that waiting is not worth
// it or that ctx has ended.
func (c *Client) await(ctx context.Context, asked time.Duration, attempt int) error {
	if asked > c.options.RetryWaitMax {
		return context.DeadlineExceeded
	}
	// NB: no wait is so long that much of CallMax would be left when it does not fit any more.
	own := min(c.backoff(c.options.RetryWait, attempt), c.options.CallMax/10)
	return c.pause(ctx, spread(max(asked, own)))
}

// backoff is the wait after a number of failures: doubled with each.
func (c *Client) backoff(first time.Duration, failures int) time.Duration {
	wait := first
	for range failures {
		if wait *= 2; wait >= c.options.RetryWaitMax {
			break
		}
	}
	return min(wait, c.options.RetryWaitMax)
}

// spread draws a time between wait and half as much again.
func spread(wait time.Duration) time.Duration {
	return wait + rand.N(wait/2+1)
}
