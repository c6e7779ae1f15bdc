package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/query"
	"troupe/gateway/internal/kernel"
	"troupe/persistence/clocktest"
)

// short is a limit of time in these tests, in which the virtual clock passes.
const short = 300 * time.Millisecond

// onPipes runs a test of a server on pipes in a bubble.
func onPipes(t *testing.T, o Options, workflows *fakeWorkflows, test func(*testing.T, *testServer)) {
	synctest.Test(t, func(t *testing.T) { test(t, startOnPipes(t, o, workflows)) })
}

// TestSlowCallers holds gateway/INTERFACE.md, "Slow callers", with shorter times.
func TestSlowCallers(t *testing.T) {
	head := "POST /workflow/api/v1/event HTTP/1.1\r\nHost: x\r\n" + withToken + "\r\nContent-Length: 106\r\n\r\n"
	for line, c := range map[string]struct {
		options    Options
		text, want string
	}{
		"headers that do not end":       {Options{HeaderReadMax: short}, "GET /livez HTTP/1.1\r\nHost: x\r\n", ""},
		"nothing":                       {Options{HeaderReadMax: short}, "", ""},
		"a body that does not end":      {Options{ReadMax: short}, head + eventBody[:10], "HTTP/1.1 400 "},
		"a second request that is late": {Options{IdleMax: short}, "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK"},
	} {
		t.Run(line, func(t *testing.T) {
			onPipes(t, c.options, nil, func(t *testing.T, s *testServer) {
				begun := time.Now()
				got, err := io.ReadAll(s.open(t, c.text))
				assert.True(t, err == nil && strings.HasPrefix(string(got), c.want) && (c.want != "" || len(got) <= 0), "%v %v %v", got, err, c.want)
				took := time.Since(begun)
				assert.True(t, took >= short && took <= 2*short, "the end came after %v, want %v", took, short)
				assert.Zero(t, s.workflows.calls(), "a request acted whose body did not end")
			})
		})
	}
}

// TestSlowReaders holds that an answer which nobody reads is given up, and that
// a stream has its time for every piece anew.
func TestSlowReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		workflows, ended := endless()
		s := startOnPipes(t, Options{WriteMax: short}, workflows)
		c := s.open(t, "GET /workflow/api/v1/instances/leave HTTP/1.1\r\nHost: x\r\n"+withToken+"\r\n\r\n")
		piece := make([]byte, 1<<20)
		for range 5 { // as long as somebody reads, it goes on
			_, err := io.ReadFull(c, piece)
			require.NoError(t, err, "the answer ended")
			clocktest.Advance(short - time.Millisecond)
		}
		select {
		case err := <-ended:
			t.Fatalf("it ended too early: %v", err)
		default:
		}
		clocktest.Advance(2 * time.Millisecond)
		assert.ErrorIs(t, <-ended, os.ErrDeadlineExceeded)
	})
}

// TestWatchOutlivesTheTimesOfARequest holds that neither ReadMax nor WriteMax
// ends a stream in which nothing happens for longer, nor its orderly end.
func TestWatchOutlivesTheTimesOfARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed()
		s := startOnPipes(t, Options{ReadMax: short, WriteMax: short, HeaderReadMax: short, IdleMax: short}, f.workflows())
		w := s.watch(t, withToken)
		w.expect(t, opening)
		clocktest.Advance(3 * short)
		f.events <- entryEvent("p1", watchedOne)
		w.expect(t, "id: p1\nevent: entry\ndata: "+watchedOne+"\n\n")
		clocktest.Advance(3 * short)
		f.stop()
		w.expectEnd(t)
		assert.NoError(t, <-f.ended, "the call ended")
	})
}

// TestSlowWatcher holds that a watcher who does not read for WriteMax is disconnected.
func TestSlowWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed()
		s := startOnPipes(t, Options{WriteMax: short}, f.workflows())
		w := s.watch(t, withToken)
		f.events <- entryEvent("p1", strings.Replace(watchedOne, `"draft"`, `"`+strings.Repeat("x", 1<<20)+`"`, 1))
		err := <-f.heard
		assert.True(t, errors.Is(err, kernel.ErrAborted) && errors.Is(err, os.ErrDeadlineExceeded), "got %v, want the write deadline", err)
		assert.ErrorIs(t, <-f.ended, kernel.ErrAborted, "the call ended")
		synctest.Wait()
		m := s.Metrics()
		assert.True(t, m.Cut == 1 && m.Watchers == 0, "%d answers are counted as cut and %d watchers, want 1 and 0", m.Cut, m.Watchers)
		_, err = io.ReadAll(w.body)
		assert.Error(t, err, "the stream looks whole")
	})
}

// TestQueryMayTakeLongerThanARequest holds that a query goes on when ReadMax is
// over, and that its answer has WriteMax from its end.
func TestQueryMayTakeLongerThanARequest(t *testing.T) {
	slow := &fakeWorkflows{query: func(ctx context.Context, _ *query.Request, item func([]byte) error) (*query.End, error) {
		select {
		case <-time.After(2 * short):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return smallEnd(), item([]byte(listedOne))
	}}
	onPipes(t, Options{ReadMax: short, HeaderReadMax: short, WriteMax: short}, slow, func(t *testing.T, s *testServer) {
		for _, query := range []string{"", "?limit=1"} {
			a := s.do(t, get("/workflow/api/v1/instances/leave"+query))
			assert.Equal(t, http.StatusOK, a.Status, "%v %v", query, a.Body)
		}
	})
}

// TestASilentNodeIsAnswered: the caller of a node that falls silent reads why, although the time for
// the answer was over by then.
func TestASilentNodeIsAnswered(t *testing.T) {
	batch := "[" + batchEvent("one", "") + "]"
	for _, c := range []struct {
		name string
		ask  request
		want int
	}{
		{"an event", post("event", eventBody), 504},
		{"an event with a key", post("event", eventBody, "Idempotency-Key: k"), 504},
		{"reading", get("/workflow/api/v1/instance/leave/" + instanceOne), 503},
		{"a batch", post("events", batch), 200},
		{"a batch with a key, which was not kept", post("events", batch, "Idempotency-Key: k"), 503},
	} {
		t.Run(c.name, func(t *testing.T) {
			onPipes(t, Options{WriteMax: short, LeaderWaitMax: short / 3}, nil, func(t *testing.T, s *testServer) {
				workflows, peers := new(elsewhereWorkflows), new(fakePeers)
				workflows.setFail(failure.Elsewhere(7))
				s.Open(workflows.with(Services{Credentials: fakeCredentials{}, Peers: peers}))
				peers.say(leading(Peer{Node: "B", Transport: silent}))
				s.do(t, c.ask).WantStatus(t, c.want)
			})
		})
	}
}
