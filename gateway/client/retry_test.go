package client

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/gateway/servertest"
)

// countNew counts connections. httptest calls it from several goroutines, one
// for each connection.
func countNew(n *int) func(net.Conn, http.ConnState) {
	var mu sync.Mutex
	return func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			mu.Lock()
			*n++
			mu.Unlock()
		}
	}
}

func recorded(c *Client) *[]time.Duration {
	waits := new([]time.Duration)
	c.pause = func(ctx context.Context, wait time.Duration) error {
		*waits = append(*waits, wait)
		return ctx.Err()
	}
	return waits
}

func TestWaits(t *testing.T) {
	s, c := started(t, Options{RetryWait: 100 * time.Millisecond, RetryWaitMax: time.Second})
	waits := recorded(c)
	again := servertest.Fault{Status: 504}
	s.Fail("create", again, again, again, servertest.Fault{Status: 503, RetryAfter: "1"})
	if _, err := c.Create(t.Context(), CreateRequest{WorkflowID: "leave"}); err != nil {
		t.Fatal(err)
	}
	for i, least := range []time.Duration{100, 200, 400, 1000} {
		least *= time.Millisecond
		got := (*waits)[i]
		assert.True(t, got >= least && got <= least*3/2, "wait %d: got %v, want %v to half as much again", i, got, least)
	}
	// More than RetryWaitMax is not waited for; the caller is told.
	s.Fail("create", servertest.Fault{Status: 503, Code: "Busy", RetryAfter: "2"})
	_, err := c.Create(t.Context(), CreateRequest{WorkflowID: "leave"})
	var refused *Error
	assert.True(t, errors.As(err, &refused) && refused.RetryAfter == 2*time.Second && !errors.Is(err, ErrOutcomeUnknown), err)
}

// TestManyAttempts holds that waits stay short enough for the time of the call to be used,
// and that a last answer "nothing was done" does not speak for the attempts before it.
func TestManyAttempts(t *testing.T) {
	s, c := started(t, Options{RetryMax: 20, RetryWait: 100 * time.Millisecond, RetryWaitMax: 30 * time.Second})
	waits := recorded(c)
	s.Fail("create", servertest.Fault{})
	for range 20 {
		s.Fail("create", servertest.Fault{Status: 503, Code: "Unavailable", RetryAfter: "1"})
	}
	_, err := c.Create(t.Context(), CreateRequest{WorkflowID: "leave"})
	assert.True(t, errors.Is(err, ErrOutcomeUnknown) && strings.Contains(err.Error(), "(so the last attempt, one before it may have been carried out)"), err)
	got := (*waits)[19]
	assert.False(t, len(*waits) != 20 || got < 9*time.Second || got > 13500*time.Millisecond, "got %v for the last of %d waits, want a tenth of CallMax to half as much again", got, len(*waits))
}

// TestDeadlineBeforeTheWait holds that a call which cannot wait long enough
// tells the cause at once.
func TestDeadlineBeforeTheWait(t *testing.T) {
	s, c := started(t, Options{CallMax: 2 * time.Minute, RetryWaitMax: time.Hour})
	var waited, ended error
	c.pause = func(ctx context.Context, wait time.Duration) error {
		waited, ended = pause(ctx, wait), ctx.Err()
		return waited
	}
	s.Fail("choices", servertest.Fault{Status: 503, Code: "Busy", RetryAfter: "150"})
	_, err := c.Choices(t.Context())
	wantStatus(t, err, 503, "Busy")
	assert.True(t, waited != nil && ended == nil, "got %v for the wait and %v for the call, want no wait and no end of time", waited, ended)
}

func TestCancelledWait(t *testing.T) {
	s, c := started(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	c.pause = func(ctx context.Context, _ time.Duration) error {
		cancel()
		return pause(ctx, time.Hour/120)
	}
	s.Fail("create", servertest.Fault{Status: 503, Code: "Busy", RetryAfter: "1"})
	_, err := c.Create(ctx, CreateRequest{WorkflowID: "leave"})
	wantStatus(t, err, 503, "Busy")
	assert.True(t, errors.Is(err, context.Canceled) && !errors.Is(err, ErrOutcomeUnknown), "got %v, want context.Canceled and a known outcome", err)
}

// TestNobodyThere holds that what was never sent is not unknown, and that a watch
// gives up that was never open.
func TestNobodyThere(t *testing.T) {
	address := "http://" + servertest.Nobody(t)
	c := connect(t, address, Options{})
	waits := recorded(c)
	_, err := c.Create(t.Context(), CreateRequest{WorkflowID: "leave"})
	assert.False(t, err == nil || errors.Is(err, ErrOutcomeUnknown) || len(*waits) != 4 || !strings.Contains(err.Error(), address), "got %v after %d waits, want an error that names %s after 4", err, len(*waits), address)
	_, err = c.Choices(t.Context())
	assert.False(t, err == nil || len(*waits) != 4, "a read: got %v after %d waits, want no more", err, len(*waits))
	err = endOf(t, c.Watch(t.Context(), WatchRequest{WorkflowID: "leave"}))
	assert.False(t, err == nil || !strings.Contains(err.Error(), address) || len(*waits) != 8, "a watch: got %v after %d waits, want an error that names %s after 4 more", err, len(*waits), address)
}

// TestStrangerIsNotAskedAgain holds that a wrong certificate is no broken
// connection.
func TestStrangerIsNotAskedAgain(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	c := connect(t, s.URL, Options{})
	waits := recorded(c)
	_, err := c.Create(t.Context(), CreateRequest{WorkflowID: "leave"})
	assert.False(t, err == nil || errors.Is(err, ErrOutcomeUnknown) || len(*waits) != 0, "got %v after %d waits, want an error at once", err, len(*waits))
}

// TestCutCallIsUnknown cancels while the service works.
func TestCutCallIsUnknown(t *testing.T) {
	arrived := make(chan struct{})
	c := handled(t, Options{}, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does net/http see a caller go
		close(arrived)
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-arrived; cancel() }()
	_, err := c.Create(ctx, CreateRequest{WorkflowID: "leave", Key: "the-key"})
	assert.True(t, errors.Is(err, ErrOutcomeUnknown) && errors.Is(err, context.Canceled) && strings.Contains(err.Error(), "the-key"), err)
}

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	tests := []struct {
		value string
		want  time.Duration
		given bool
	}{
		{"", 0, false},
		{"0", 0, true},
		{"3", 3 * time.Second, true},
		{" 3 ", 3 * time.Second, true},
		{"-3", 0, false},
		{"soon", 0, false},
		{"99999999999999999999", 0, false},
		{"Sat, 21 Nov 2026 10:00:05 GMT", 5 * time.Second, true},
		{"Sat, 21 Nov 2026 09:00:00 GMT", 0, true},
	}
	for _, test := range tests {
		got, given := parseRetryAfter(test.value, now)
		assert.True(t, got == test.want && given == test.given, "%q: got %v, %v, want %v, %v", test.value, got, given, test.want, test.given)
	}
}
