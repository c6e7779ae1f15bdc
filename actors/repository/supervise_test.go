package repository_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"

	"troupe/actors"
	"troupe/actors/internal/supervise"
)

func startSupervisor(t *testing.T, most int, wait time.Duration) (*supervise.Supervisor, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	system := actors.NewSystem(zerolog.Nop())
	s := supervise.Start(supervise.Options{System: system, Name: "test", WorkersMax: most, WaitMax: wait, Log: zerolog.New(log)})
	t.Cleanup(func() {
		assert.NoError(t, errors.Join(s.Stop(context.Background()), system.Stop(context.Background())))
	})
	return s, log
}

func TestWorkRunsAndItsErrorComesBack(t *testing.T) {
	s, _ := startSupervisor(t, 0, time.Minute)
	want := errors.New("from the work")
	var ran atomic.Int64
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			assert.ErrorIs(t, s.Do(t.Context(), "john", "count", func(context.Context) error { ran.Add(1); return want }), want)
		})
	}
	wg.Wait()
	if m := s.Metrics(); ran.Load() != 200 || m.Begun != 200 || m.Open != 0 {
		t.Errorf("%d ran, %+v", ran.Load(), m)
	}
}

func TestOneThatWaitsHoldsUpNobody(t *testing.T) {
	s, _ := startSupervisor(t, 2, time.Millisecond)
	release, begun := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		assert.NoError(t, s.Do(t.Context(), "john", "slow", func(context.Context) error { close(begun); <-release; return nil }))
	})
	<-begun
	for range 5 {
		assert.NoError(t, s.Do(t.Context(), "mary", "fast", func(context.Context) error { return nil }))
	}
	second := make(chan struct{})
	wg.Go(func() {
		assert.NoError(t, s.Do(t.Context(), "mary", "slow", func(context.Context) error { close(second); <-release; return nil }))
	})
	<-second
	assert.ErrorIs(t, s.Do(t.Context(), "john", "third", func(context.Context) error { t.Error("it ran"); return nil }), supervise.ErrBusy)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, s.Stop(ctx), context.DeadlineExceeded, "stop with open requests")
	close(release)
	wg.Wait()
	assert.ErrorIs(t, s.Do(t.Context(), "john", "late", func(context.Context) error { return nil }), supervise.ErrStopped, "after Stop")
}

// TestOneUserLeavesHalfOfTheWorkers to others, waits for one, and is sent away by
// Stop.
func TestOneUserLeavesHalfOfTheWorkers(t *testing.T) { synctest.Test(t, oneUserLeavesHalf) }

func oneUserLeavesHalf(t *testing.T) {
	s, _ := startSupervisor(t, 4, time.Hour)
	release, begun := make(chan struct{}), make(chan struct{})
	answers := make(chan error, 4)
	slow := func(context.Context) error { begun <- struct{}{}; <-release; return nil }
	for range 4 {
		go func() { answers <- s.Do(t.Context(), "john", "slow", slow) }()
	}
	<-begun
	<-begun
	synctest.Wait() // until his other two wait
	assert.NoError(t, s.Do(t.Context(), "mary", "fast", func(context.Context) error { return nil }), "mary, while john has half")
	release <- struct{}{}
	<-begun // john's third
	err := <-answers
	assert.NoError(t, err, "john's first")
	stopped := make(chan error)
	go func() { stopped <- s.Stop(t.Context()) }()
	err = <-answers
	assert.ErrorIs(t, err, supervise.ErrStopped, "john's fourth, which waits")
	close(release)
	err = <-stopped
	assert.NoError(t, err)
	for range 2 {
		err := <-answers
		assert.NoError(t, err, "what was accepted")
	}
}

// TestStopThatRunsOutOfTimeLeavesNobodyWaiting: what is in the mailbox is still
// answered.
func TestStopThatRunsOutOfTimeLeavesNobodyWaiting(t *testing.T) {
	for range 20 {
		s, _ := startSupervisor(t, 0, time.Minute)
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				err := s.Do(t.Context(), "john", "x", func(context.Context) error { return nil })
				assert.False(t, err != nil && !errors.Is(err, supervise.ErrStopped), err)
			})
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_ = s.Stop(ended) // may find some open
		wg.Wait()
	}
}

func TestAPanicCostsOnlyItsRequest(t *testing.T) {
	s, log := startSupervisor(t, 0, time.Minute)
	for range 20 { // more than protoactor restarts an actor
		assert.ErrorIs(t, s.Do(t.Context(), "john", "bad", func(context.Context) error { panic("oh") }), supervise.ErrPanicked)
	}
	assert.NoError(t, s.Do(t.Context(), "john", "good", func(context.Context) error { return nil }), "the next request")
	if s.Metrics().Panics != 20 || !strings.Contains(log.String(), `"request":"bad"`) {
		t.Errorf("%+v, log %s", s.Metrics(), log)
	}
}

func TestACallerWhoHasGoneIsNotWorkedFor(t *testing.T) {
	s, _ := startSupervisor(t, 0, time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, s.Do(ctx, "john", "gone", func(context.Context) error { t.Error("it ran"); return nil }), context.Canceled)
}
