package supervise

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"troupe/actors"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T, most int, wait time.Duration) (*Supervisor, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	system := actors.NewSystem(zerolog.Nop())
	s := Start(Options{System: system, Name: "test", WorkersMax: most, WaitMax: wait, Log: zerolog.New(log)})
	t.Cleanup(func() {
		if err := errors.Join(s.Stop(context.Background()), system.Stop(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return s, log
}

func TestWorkRunsAndItsErrorComesBack(t *testing.T) {
	s, _ := start(t, 0, time.Minute)
	want := errors.New("from the work")
	var ran atomic.Int64
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if err := s.Do(t.Context(), "john", "count", func(context.Context) error { ran.Add(1); return want }); !errors.Is(err, want) {
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
	if m := s.Metrics(); ran.Load() != 200 || m.Begun != 200 || m.Open != 0 {
		t.Errorf("%d ran, %+v", ran.Load(), m)
	}
}

func TestOneThatWaitsHoldsUpNobody(t *testing.T) {
	s, _ := start(t, 2, time.Millisecond)
	release, begun := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Do(t.Context(), "john", "slow", func(context.Context) error { close(begun); <-release; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-begun
	for range 5 {
		if err := s.Do(t.Context(), "mary", "fast", func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
	}
	second := make(chan struct{})
	wg.Go(func() {
		if err := s.Do(t.Context(), "mary", "slow", func(context.Context) error { close(second); <-release; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-second
	if err := s.Do(t.Context(), "john", "third", func(context.Context) error { t.Error("it ran"); return nil }); !errors.Is(err, ErrBusy) {
		t.Errorf("a third: got %v, want ErrBusy", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stop with open requests: got %v", err)
	}
	close(release)
	wg.Wait()
	if err := s.Do(t.Context(), "john", "late", func(context.Context) error { return nil }); !errors.Is(err, ErrStopped) {
		t.Errorf("after Stop: got %v, want ErrStopped", err)
	}
}

// TestOneUserLeavesHalfOfTheWorkers to others, waits for one, and is sent away by
// Stop.
func TestOneUserLeavesHalfOfTheWorkers(t *testing.T) {
	s, _ := start(t, 4, time.Hour)
	release, begun := make(chan struct{}), make(chan struct{})
	answers := make(chan error, 4)
	slow := func(context.Context) error { begun <- struct{}{}; <-release; return nil }
	for range 4 {
		go func() { answers <- s.Do(t.Context(), "john", "slow", slow) }()
	}
	<-begun
	<-begun
	for s.workers.Waiting() < 2 {
		runtime.Gosched()
	}
	if err := s.Do(t.Context(), "mary", "fast", func(context.Context) error { return nil }); err != nil {
		t.Errorf("mary, while john has half: %v", err)
	}
	release <- struct{}{}
	<-begun // john's third
	if err := <-answers; err != nil {
		t.Errorf("john's first: %v", err)
	}
	stopped := make(chan error)
	go func() { stopped <- s.Stop(t.Context()) }()
	if err := <-answers; !errors.Is(err, ErrStopped) {
		t.Errorf("john's fourth, which waits: got %v, want ErrStopped", err)
	}
	close(release)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := <-answers; err != nil {
			t.Errorf("what was accepted: %v", err)
		}
	}
}

// TestStopThatRunsOutOfTimeLeavesNobodyWaiting: what is in the mailbox is still
// answered.
func TestStopThatRunsOutOfTimeLeavesNobodyWaiting(t *testing.T) {
	for range 20 {
		s, _ := start(t, 0, time.Minute)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if err := s.Do(t.Context(), "john", "x", func(context.Context) error { return nil }); err != nil && !errors.Is(err, ErrStopped) {
					t.Error(err)
				}
			})
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_ = s.Stop(ended) // may find some open
		wg.Wait()
	}
}

func TestAPanicCostsOnlyItsRequest(t *testing.T) {
	s, log := start(t, 0, time.Minute)
	for range 20 { // more than protoactor restarts an actor
		if err := s.Do(t.Context(), "john", "bad", func(context.Context) error { panic("oh") }); !errors.Is(err, ErrPanicked) {
			t.Errorf("got %v, want ErrPanicked", err)
		}
	}
	if err := s.Do(t.Context(), "john", "good", func(context.Context) error { return nil }); err != nil {
		t.Errorf("the next request: %v", err)
	}
	if s.Metrics().Panics != 20 || !strings.Contains(log.String(), `"request":"bad"`) {
		t.Errorf("%+v, log %s", s.Metrics(), log)
	}
}

func TestACallerWhoHasGoneIsNotWorkedFor(t *testing.T) {
	s, _ := start(t, 0, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Do(ctx, "john", "gone", func(context.Context) error { t.Error("it ran"); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
