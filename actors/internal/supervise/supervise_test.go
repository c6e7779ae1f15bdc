package supervise

import (
	"bytes"
	"context"
	"errors"
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

func start(t *testing.T, most int) (*Supervisor, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	system := actors.NewSystem(zerolog.Nop())
	s := Start(Options{System: system, Name: "test", WorkersMax: most, Log: zerolog.New(log)})
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		system.Stop()
	})
	return s, log
}

func TestWorkRunsAndItsErrorComesBack(t *testing.T) {
	s, _ := start(t, 0)
	want := errors.New("from the work")
	var ran atomic.Int64
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if err := s.Do(t.Context(), "count", func(context.Context) error { ran.Add(1); return want }); !errors.Is(err, want) {
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
	s, _ := start(t, 2)
	release, begun := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Do(t.Context(), "slow", func(context.Context) error { close(begun); <-release; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-begun
	for range 5 {
		if err := s.Do(t.Context(), "fast", func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
	}
	second := make(chan struct{})
	wg.Go(func() {
		if err := s.Do(t.Context(), "slow", func(context.Context) error { close(second); <-release; return nil }); err != nil {
			t.Error(err)
		}
	})
	<-second
	if err := s.Do(t.Context(), "third", func(context.Context) error { t.Error("it ran"); return nil }); !errors.Is(err, ErrBusy) {
		t.Errorf("a third: got %v, want ErrBusy", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := s.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("stop with open requests: got %v", err)
	}
	close(release)
	wg.Wait()
	if err := s.Do(t.Context(), "late", func(context.Context) error { return nil }); !errors.Is(err, ErrStopped) {
		t.Errorf("after Stop: got %v, want ErrStopped", err)
	}
}

// TestStopThatRunsOutOfTimeLeavesNobodyWaiting: what is in the mailbox is still
// answered.
func TestStopThatRunsOutOfTimeLeavesNobodyWaiting(t *testing.T) {
	for range 20 {
		s, _ := start(t, 0)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if err := s.Do(t.Context(), "x", func(context.Context) error { return nil }); err != nil && !errors.Is(err, ErrStopped) {
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
	s, log := start(t, 0)
	for range 20 { // more than protoactor restarts an actor
		if err := s.Do(t.Context(), "bad", func(context.Context) error { panic("oh") }); !errors.Is(err, ErrPanicked) {
			t.Errorf("got %v, want ErrPanicked", err)
		}
	}
	if err := s.Do(t.Context(), "good", func(context.Context) error { return nil }); err != nil {
		t.Errorf("the next request: %v", err)
	}
	if s.Metrics().Panics != 20 || !strings.Contains(log.String(), `"request":"bad"`) {
		t.Errorf("%+v, log %s", s.Metrics(), log)
	}
}

func TestACallerWhoHasGoneIsNotWorkedFor(t *testing.T) {
	s, _ := start(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Do(ctx, "gone", func(context.Context) error { t.Error("it ran"); return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}
