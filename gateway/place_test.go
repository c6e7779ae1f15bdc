package gateway

import (
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/gateway/internal/instances"
	"troupe/gateway/internal/kernel"
	"troupe/persistence/clocktest"
)

// askAs carries an event of a user out, beside streams, and returns the status.
func askAs(s *Server, token string) int {
	w := newRecorder()
	s.ServeHTTP(w, newTestRequest("POST", "/workflow/api/v1/event", eventBody, "Authorization: svc.token "+token))
	return w.status
}

// wantNobody holds that nothing is counted any more.
func wantNobody(t *testing.T, s *Server) {
	t.Helper()
	u := s.kernel.Usage.Of(ann.ID)
	if s.kernel.InFlight.Load() != 0 || s.kernel.Idle.Load() != 0 || u.Requests.Load() != 0 || u.Idle.Load() != 0 || s.groups.instances.Shares.Batches.Load() != 0 || s.groups.instances.Shares.Bytes.Load() != 0 || u.BatchBytes.Load() != 0 {
		t.Errorf("at the end %d requests are in flight, %d idle, of the user %d and %d; %d batches and %d bytes", s.kernel.InFlight.Load(), s.kernel.Idle.Load(),
			u.Requests.Load(), u.Idle.Load(), s.groups.instances.Shares.Batches.Load(), s.groups.instances.Shares.Bytes.Load())
	}
}

// TestSilentBatchesHaveNoPlaces holds gateway/INTERFACE.md, "Batches": however many batches of one user wait for lines, all others have
// their places, also when there are few of them.
func TestSilentBatchesHaveNoPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := startPatient(t, Options{InFlightMax: 8})
		var silent []*stream
		for range 300 {
			silent = append(silent, openStream(s, w, tokenAnn))
			synctest.Wait()
		}
		assert.Zero(t, s.Metrics().InFlight, "requests are in flight, want none")
		for range 8 {
			mine, others := askAs(s, tokenAnn), askAs(s, tokenBob)
			require.True(t, mine == 200 && others == 200, "beside silent batches: got %d, and %d for another user, want 200", mine, others)
		}
		s.kernel.Pressure.Limit.Store(2) // processors have become short
		mine, others := askAs(s, tokenAnn), askAs(s, tokenBob)
		assert.True(t, mine == 200 && others == 200, "with two places: got %d, and %d for another user, want 200", mine, others)
		for _, b := range silent {
			got := b.end(t)
			require.True(t, b.answer.Code == 200 && got == "", "a silent batch: got %d %q", b.answer.Code, got)
		}
		wantNobody(t, s)
	})
}

// TestLinesThatAreWorkedOnHavePlaces: a batch counts from its line to the answer. One that finds no place for its line waits
// for one.
func TestLinesThatAreWorkedOnHavePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := startPatient(t, Options{InFlightMax: 8}) // four for one user
		var all []*stream
		for range 6 {
			all = append(all, openStream(s, w, tokenAnn))
			synctest.Wait()
		}
		for _, b := range all {
			b.send(t, 1)
		}
		if n := s.Metrics().InFlight; n != 4 || len(w.asked) != 4 || s.groups.instances.Shares.Batches.Load() != 4 {
			t.Fatalf("%d are in flight, %d lines handed over, %d batches share the window; want 4", n, len(w.asked), s.groups.instances.Shares.Batches.Load())
		}
		mine, others := askAs(s, tokenAnn), askAs(s, tokenBob)
		assert.True(t, mine == 503 && others == 200, "beside four lines: got %d, and %d for another user, want 503 and 200", mine, others)
		(<-w.asked).Answered(smallReply("leave", instanceOne, 2, false), nil)
		clocktest.Advance(2 * instances.PlacePauseMax)
		n := s.Metrics().InFlight
		assert.True(t, n == 4 && len(w.asked) == 4, "when one is answered: %d are in flight, %d lines handed over, want 4", n, len(w.asked))
		for range 5 {
			(<-w.asked).Answered(smallReply("leave", instanceOne, 2, false), nil)
			clocktest.Advance(2 * instances.PlacePauseMax)
		}
		assert.Equal(t, 200, askAs(s, tokenAnn), "when all are answered")
		for _, b := range all {
			got := b.end(t)
			assert.Equal(t, 1, strings.Count(got, `"status":200`), "got %q, want one result", got)
		}
		wantNobody(t, s)
	})
}

// TestSilentBatchesAreBounded by the connections of their user, and by the memory of their lines.
func TestSilentBatchesAreBounded(t *testing.T) {
	for name, c := range map[string]struct {
		options Options
		used    int64 // bytes of the user's batches
		most    int
	}{
		"half of the connections": {Options{ConnectionsMax: 64}, 0, 32},
		"half of the memory":      {Options{}, instances.BatchBodiesMax/2 - 3*instances.LineBytes, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, w := startPatient(t, c.options)
				s.kernel.Usage.Of(ann.ID).BatchBytes.Store(c.used)
				var silent []*stream
				for range c.most {
					silent = append(silent, openStream(s, w, tokenAnn))
					synctest.Wait()
				}
				more := openStream(s, w, tokenAnn)
				if <-more.done; more.answer.Code != 503 {
					t.Errorf("batch %d: got %d, want 503", c.most+1, more.answer.Code)
				}
				assert.Equal(t, 200, askAs(s, tokenBob), "another user")
				for _, b := range silent {
					if b.end(t); b.answer.Code != 200 {
						t.Errorf("a silent batch: got %d, want 200", b.answer.Code)
					}
				}
				s.kernel.Usage.Of(ann.ID).BatchBytes.Add(-c.used)
				wantNobody(t, s)
			})
		})
	}
}

// TestASilentBatchEndsWhenTheServerDrains: Stop waits for its last line.
func TestASilentBatchEndsWhenTheServerDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := startPatient(t, Options{})
		b := openStream(s, w, tokenAnn)
		synctest.Wait()
		s.kernel.Draining.Store(true)
		assert.Equal(t, int64(1), s.kernel.InFlight.Load(), "Stop does not wait for it")
		clocktest.Advance(time.Second)
		assert.Contains(t, b.end(t), `"status":503`)
		wantNobody(t, s)
	})
}

// TestNoTwoTakeTheLastPlace, of batches that get lines and have none again at any time.
func TestNoTwoTakeTheLastPlace(t *testing.T) {
	s, err := New(Options{})
	require.NoError(t, err)
	s.kernel.Pressure.Limit.Store(2) // one for one user
	usage := new(kernel.UserUsage)
	var working atomic.Int64
	var end sync.WaitGroup
	for range 4 {
		x := &kernel.Exchange{Kernel: s.kernel, Slot: kernel.Slot{Usage: usage, Counted: true}}
		s.kernel.InFlight.Add(1)
		usage.Requests.Add(1)
		x.LeaveSlot()
		end.Go(func() {
			for took := 0; took < 300_000 && !t.Failed(); {
				if !x.TakeSlot() {
					runtime.Gosched()
					continue
				}
				assert.LessOrEqual(t, working.Add(1), int64(1), "are worked on, want 1")
				working.Add(-1)
				x.LeaveSlot()
				took++
			}
		})
	}
	end.Wait()
	assert.Zero(t, s.kernel.Working(), "at the end")
}
