package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/gateway/internal/instances"
	"troupe/gateway/internal/kernel"
	"troupe/gateway/toll"
	"troupe/statemachine/data"
)

// bodySender sends bodies at once, and counts the bytes that are read and the answers.
type bodySender struct {
	*Server
	all      sync.WaitGroup
	read     atomic.Int64
	mu       sync.Mutex
	statuses map[int]int
}

func (s *bodySender) send(path, contentType string, length int64, body io.Reader, headers ...string) {
	r := newTestRequest("POST", path, "", append(headers, "Content-Type: "+contentType)...)
	r.ContentLength = length
	r.Body = io.NopCloser(countingReader{body, &s.read})
	s.all.Go(func() {
		w := newRecorder()
		s.ServeHTTP(w, r)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.statuses[w.status]++
	})
}

type countingReader struct {
	io.Reader
	n *atomic.Int64
}

func (r countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.n.Add(int64(n))
	return n, err
}

// TestBodiesArePaidForBeforeTheyAreRead holds gateway/INTERFACE.md, "Fair shares": whoever sends large bodies pays for their bytes,
// whatever is wrong with them and whether they end, and nobody else waits for that.
func TestBodiesArePaidForBeforeTheyAreRead(t *testing.T) {
	const many, size = 32, 1 << 18
	text := `{"workflowId":"leave","text":"` + strings.Repeat("a", size)
	whole := func() io.Reader { return strings.NewReader(text[:size]) } // no JSON
	token := "Authorization: svc.token " + tokenAnn
	const path = "/workflow/api/v1/event"
	for name, c := range map[string]struct {
		send   func(s *bodySender)
		status int
		bytes  int64 // of each that are charged
	}{
		"no JSON":    {func(s *bodySender) { s.send(path, "application/json", size, whole(), token) }, 400, size - kernel.BodyFirstBytes},
		"chunked":    {func(s *bodySender) { s.send(path, "application/json", -1, whole(), token) }, 400, size - kernel.BodyFirstBytes},
		"broken off": {func(s *bodySender) { s.send(path, "application/json", size, iotest.ErrReader(io.EOF), token) }, 0, 0},
		"broken off late": {func(s *bodySender) {
			s.send(path, "application/json", size, io.MultiReader(strings.NewReader(text[:size-9]), iotest.ErrReader(errors.New("closed"))), token)
		}, 400, size - kernel.BodyFirstBytes},
		"too long for a line": {func(s *bodySender) {
			s.send(path+"s", "application/x-ndjson", 2*size, io.MultiReader(whole(), whole()), token)
		}, 200, 2*size - kernel.BodyFirstBytes},
		"an array": {func(s *bodySender) {
			s.send(path+"s", "application/json", 2*size, io.MultiReader(whole(), whole()), token)
		}, 400, 2*size - kernel.BodyFirstBytes},
		"no operation reads": {func(s *bodySender) { s.send("/workflow/api/v1/incidents/x", "application/json", size, whole(), token) }, 403, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner, _ := startPatient(t, Options{InFlightMax: 2 * many})
				s := &bodySender{Server: inner, statuses: map[int]int{}}
				clock := time.Hour // the account has its credit then
				s.kernel.Started = time.Now().Add(-clock)
				began := time.Now()
				for range many {
					c.send(s)
				}
				synctest.Wait()
				// NB: lines are charged when they are read, and a buffer doubles.
				free := int64(2*many*instances.LineBytes + 2*(toll.CreditBytes+size))
				read := s.read.Load()
				assert.False(t, c.bytes > 0 && read > free, "%d bytes were read at once, want at most %d", read, free)
				// Another user, and small requests of the same one, wait for nothing.
				mine, others := askAs(s.Server, tokenAnn), askAs(s.Server, tokenBob)
				assert.True(t, mine == 200 && others == 200, "beside them: got %d, and %d for another user, want 200", mine, others)
				w := newRecorder()
				s.ServeHTTP(w, newTestRequest("POST", path, text[:size], "Authorization: svc.token "+tokenBob))
				took := time.Since(began)
				assert.True(t, w.status == 400 && took == 0, "a large body of another user: got %d after %v, want 400 at once", w.status, took)
				s.all.Wait()
				due := time.Duration(many*c.bytes-toll.CreditBytes-c.bytes) * time.Second / time.Duration(s.kernel.Limits.UserBytes)
				took = time.Since(began)
				assert.True(t, took >= due && (c.bytes != 0 || took == 0), "all were done after %v, want %v at least", took, due)
				assert.False(t, c.status != 0 && s.statuses[c.status] != many, "got the answers %v, want %d times %d", s.statuses, many, c.status)
				wantNobody(t, s.Server)
			})
		})
	}
}

func (s *Server) owe(user identity.UserID) {
	for ok := true; ok; {
		_, ok = s.kernel.Usage.Of(user).Bytes.Charge(time.Since(s.kernel.Started), toll.CreditBytes/16, s.kernel.Limits.UserBytes)
	}
}

// TestWhoOwesTooMuchIsRefused, and nobody else is.
func TestWhoOwesTooMuchIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, _ := startPatient(t, Options{})
		s := &bodySender{Server: inner, statuses: map[int]int{}}
		s.kernel.Started = time.Now().Add(-time.Hour) // there is credit then
		s.owe(ann.ID)
		began := time.Now()
		const size = 4 * kernel.BodyFirstBytes
		text := strings.Repeat("x", size)
		for range 16 {
			s.send("/workflow/api/v1/event", "application/json", size, strings.NewReader(text), "Authorization: svc.token "+tokenAnn)
			s.send("/workflow/api/v1/event", "application/json", size, strings.NewReader(text), "Authorization: svc.token "+tokenBob)
		}
		s.all.Wait()
		assert.True(t, s.statuses[503] == 16 && s.statuses[400] == 16 && time.Since(began) == 0 && s.Metrics().Shed == 16, "%v %v", s.statuses, time.Since(began))
		wantNobody(t, s.Server)
		x := &kernel.Exchange{Kernel: s.kernel, Slot: kernel.Slot{Usage: s.kernel.Usage.Of(ann.ID)}}
		err := x.Pay(1)
		assert.True(t, errors.Is(err, failure.ErrBusy) && x.BeyondShare, "got %v, want ErrBusy of a user who is beyond the share", err)
	})
}

// TestABodyOfAKnownLengthIsSetAsideAtOnce when the first of it has come: three payments, and not one for each doubling.
func TestABodyOfAKnownLengthIsSetAsideAtOnce(t *testing.T) {
	const size = 1 << 20
	for name, length := range map[string]int64{"known": size, "chunked": -1} {
		r := httptest.NewRequest("POST", "/", strings.NewReader(strings.Repeat("x", size)))
		r.ContentLength = length
		var payments []int64
		body, err := kernel.ReadBody(httptest.NewRecorder(), r, size, func(n int64) error {
			payments = append(payments, n)
			return nil
		})
		few := len(payments) <= 3
		assert.True(t, err == nil && len(body) == size && few == (length > 0), "%s: %d bytes, %v, payments of %v bytes", name, len(body), err, payments)
	}
}

// TestLargeAnswersArePaidFor holds gateway/INTERFACE.md, "Fair shares": an answer waits for what was charged before, one of who owes too much is
// refused unless something was changed, and small answers and other users wait for nothing.
func TestLargeAnswersArePaidFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Options{})
		require.NoError(t, err)
		size := kernel.LargeAnswerBytes
		answer := func() (*message.Reply, error) {
			reply := smallReply("leave", instanceOne, 1, true)
			reply.Public = data.Value(`{"a":"` + strings.Repeat("x", size) + `"}`)
			return reply, nil
		}
		s.Open(Services{Credentials: fakeCredentials{}, Sessions: new(fakeSessions), Workflows: &fakeWorkflows{
			load: func(context.Context, *message.Load) (*message.Reply, error) { return answer() },
			send: func(context.Context, *message.Event) (*message.Reply, error) { return answer() },
		}})
		s.kernel.Started = time.Now().Add(-time.Hour) // there is credit then
		s.kernel.Limits.UserBytes = 5 << 20
		ask := func(token string) (status int, took time.Duration) {
			w, began := newRecorder(), time.Now()
			s.ServeHTTP(w, newTestRequest("GET", "/workflow/api/v1/instance/leave/"+instanceOne, "", "Authorization: svc.token "+token))
			return w.status, time.Since(began)
		}
		size = 4 << 20
		for n, want := range []time.Duration{0, 600 * time.Millisecond, 800 * time.Millisecond} { // 0.8 s for each, and 0.2 s of credit
			status, took := ask(tokenAnn)
			assert.True(t, status == 200 && (took-want).Abs() <= time.Millisecond, "answer %d: got %d after %s, want 200 after %s", n, status, took, want)
		}
		s.owe(ann.ID)
		status, took := ask(tokenAnn)
		assert.True(t, status == 503 && took == 0, "who owes too much: got %d after %s, want 503", status, took)
		status, took = ask(tokenBob)
		assert.True(t, status == 200 && took == 0, "another user: got %d after %s, want 200", status, took)
		assert.Equal(t, uint64(1), s.Metrics().Shed, "are counted as refused, want 1")
		w, began := newRecorder(), time.Now()
		s.ServeHTTP(w, newTestRequest("POST", "/workflow/api/v1/event", eventBody, "Content-Type: application/json", "Authorization: svc.token "+tokenAnn))
		assert.True(t, w.status == 200 && time.Since(began) == 0, "an event: got %d after %s, want 200", w.status, time.Since(began))
		<-time.After(toll.WaitMax / 2) // it may be charged again
		for range 2 {
			w, began = newRecorder(), time.Now()
			s.ServeHTTP(w, newTestRequest("POST", "/workflow/api/v1/event", eventBody, "Content-Type: application/json", "Authorization: svc.token "+tokenAnn))
			assert.True(t, w.status == 200 && time.Since(began) == 0 && s.Metrics().Shed == 1, "%v %v", w.status, time.Since(began))
		}
		size = kernel.LargeAnswerBytes / 2
		status, took = ask(tokenAnn)
		assert.True(t, status == 200 && took == 0, "a small answer: got %d after %s, want 200", status, took)
		wantNobody(t, s)
	})
}

// TestStrangersHaveOneAccount for large bodies, and sign in beside it.
func TestStrangersHaveOneAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, _ := startPatient(t, Options{})
		s := &bodySender{Server: inner, statuses: map[int]int{}}
		const size = kernel.AnonymousBodyBytesMax
		began := time.Now()
		for range 64 {
			s.send("/session", "application/json", size, strings.NewReader(strings.Repeat("x", size)))
		}
		synctest.Wait()
		w := newRecorder()
		s.ServeHTTP(w, newTestRequest("POST", "/session", signInBody, "Content-Type: application/json"))
		took := time.Since(began)
		assert.True(t, w.status == 200 && took == 0, "signing in beside them: got %d after %v, want 200 at once", w.status, took)
		s.all.Wait()
		due := time.Duration(63*(size-kernel.BodyFirstBytes)-toll.CreditBytes) * time.Second / time.Duration(s.kernel.Limits.UserBytes)
		took = time.Since(began)
		assert.True(t, took >= due && s.statuses[400] == 64, "got the answers %v after %v, want 64 times 400, after %v at least", s.statuses, took, due)
	})
}

// TestWhatWaitsToBePaidEndsWithTheServer holds that nobody waits for longer than the server is there.
func TestWhatWaitsToBePaidEndsWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, _ := startPatient(t, Options{})
		s := &bodySender{Server: inner, statuses: map[int]int{}}
		s.owe(ann.ID)
		began := time.Now()
		<-time.After(toll.WaitMax / 2)
		s.send("/workflow/api/v1/event", "application/json", 1<<20, strings.NewReader(strings.Repeat("x", 1<<20)), "Authorization: svc.token "+tokenAnn)
		synctest.Wait()
		s.kernel.Cancel()
		s.all.Wait()
		took := time.Since(began)
		assert.True(t, s.statuses[http.StatusServiceUnavailable] == 1 && took == toll.WaitMax/2, "got %v after %v", s.statuses, took)
	})
}
