package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"
)

// call sends a request, again where that is safe, and returns the answer.
func (c *Client) call(ctx context.Context, r *request) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.CallMax)
	defer cancel()
	unknown := false
	for attempt := 0; ; attempt++ {
		a, err := c.attempt(ctx, r)
		if err == nil {
			return a, nil
		}
		v := judge(err, r.key != "")
		unknown = unknown || v.unknown
		if v.again && attempt < c.options.RetryMax {
			if c.await(ctx, v.wait, attempt) == nil {
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
	again   bool          // sending it again is safe and may help
	unknown bool          // it may have been carried out
	wait    time.Duration // what the service asks for; 0: nothing
}

// judge looks at the error of an attempt (see the table in doc.go). keyed says
// that the request can be repeated without being done twice.
func judge(err error, keyed bool) verdict {
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
	if errors.Is(err, ErrInvalid) || errors.Is(err, ErrProtocol) || !keyed {
		return verdict{}
	}
	ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if neverReached(err) {
		return verdict{again: !ended && !hopeless(err)}
	}
	return verdict{again: !ended, unknown: true}
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
