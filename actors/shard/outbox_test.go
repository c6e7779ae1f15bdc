package shard_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/outbox"
	"troupe/actors/shard"
	"troupe/actors/shard/shardtest"
	"troupe/persistence"
	"troupe/persistence/clocktest"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
	"troupe/statemachine"
)

// sendings is a service whose mails are noted.
type sendings struct {
	*outbox.Service
	work  *shardtest.Work
	store *persistence.Store
	disk  *storetest.SlowDisk
	sent  chan string // ids
	shard key.Shard
	// badSend, badClock and badRules have the next attempt, the next look of the sender, and the next look for the rules of a webhook panic.
	badSend, badClock, badRules atomic.Bool
	inside                      func(ctx context.Context, workflow string) // carries out a message to another instance
}

func (s *sendings) Send(_ context.Context, a outbox.Attempt) outbox.Answer {
	if s.badSend.Swap(false) {
		panic("an attempt")
	}
	s.sent <- a.ID
	return outbox.Answer{}
}

func (s *sendings) clock() time.Time {
	if s.badClock.Swap(false) {
		panic("the clock")
	}
	return time.Now()
}

func (*sendings) URL(outbox.Attempt) string { return "" }

func startSendings(t *testing.T) *sendings {
	t.Helper()
	s := &sendings{sent: make(chan string, 10), disk: storetest.NewSlowDisk()}
	var err error
	s.store, err = persistence.Open("store", persistence.Options{FS: s.disk, Log: zerolog.Nop()})
	require.NoError(t, err)
	s.Service = outbox.New(outbox.Options{
		Held:  func() bool { return false },
		Store: s.store, Clock: s.clock, Sender: s, Log: zerolog.Nop(),
		Definition: func(string, uint64) (*statemachine.Definition, error) {
			if s.badRules.Swap(false) {
				panic("the rules")
			}
			return nil, errors.New("there is none")
		},
		Inside: func(ctx context.Context, _ key.Delivery, row *outbox.Delivery) outbox.Answer {
			s.inside(ctx, row.Workflow)
			return outbox.Answer{}
		},
		Tell: func(o *outbox.Outcome, done func(error)) {
			w := s.store.NewBatch(s.shard)
			o.Writes(w)
			done(s.store.Commit(w))
		},
	})
	s.work = shardtest.Start(s.store, shard.Background{Name: "outbox", Begin: s.Begin})
	return s
}

// mail writes a mail of an instance, and says so; committed gets what became of it.
func (s *sendings) mail(of byte, due time.Time) (committed chan error) {
	w := s.store.NewBatch(s.shard)
	outbox.Put(w, outbox.Origin{Shard: s.shard, Workflow: "w", Version: 1, Instance: key.ID{of}, Sequence: 1, At: due, Due: due}, []statemachine.Delivery{{To: []string{"a@example.org"}, Text: "x"}})
	committed = make(chan error, 1)
	go func() { committed <- s.store.Commit(w) }()
	return committed
}

func (s *sendings) stop(t *testing.T) {
	t.Helper()
	s.work.Stop(t)
	assert.NoError(t, s.store.Close())
}

// TestALaterRowMayBeReadFirst: what an instance sends may become visible when rows of later times were read before.
func TestALaterRowMayBeReadFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startSendings(t)
		defer s.stop(t)
		clocktest.Advance(time.Minute)
		now := time.Now()
		for _, of := range []struct {
			instance byte
			due      time.Time
		}{{2, now}, {1, now.Add(-time.Second)}} {
			err := <-s.mail(of.instance, of.due)
			require.NoError(t, err)
			s.Began(s.shard, "w", outbox.MailQueue, of.due)
			synctest.Wait()
			require.Len(t, s.sent, 1, "instance %d", of.instance)
			<-s.sent
		}
	})
}

// TestNothingLeavesBeforeItIsDurable: a row is visible before it is durable.
func TestNothingLeavesBeforeItIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startSendings(t)
		defer s.stop(t)
		release := s.disk.Hold()
		now := time.Now()
		committed := s.mail(1, now)
		synctest.Wait()
		rows := 0
		err := s.store.Scan(key.DeliveryPrefix(nil, s.shard, key.ID{1}), func(_, _ []byte) error { rows++; return nil })
		require.True(t, err == nil && rows == 1, "%d rows are visible, %v: the test proves nothing", rows, err)
		s.Began(s.shard, "w", outbox.MailQueue, now)
		synctest.Wait()
		assert.Empty(t, s.sent, "it has left, and is not durable")
		release()
		err = <-committed
		require.NoError(t, err)
		synctest.Wait()
		assert.Len(t, s.sent, 1, "were sent")
	})
}

// TestAWishThatPanicsIsAnswered, and the next one is carried out.
func TestAWishThatPanicsIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startSendings(t)
		defer s.stop(t)
		s.shard = s.store.ShardOf(key.ID{1})
		due := time.Now().Add(time.Hour)
		w := s.store.NewBatch(s.shard)
		outbox.Put(w, outbox.Origin{Shard: s.shard, Workflow: "w", Version: 1, Instance: key.ID{1}, Sequence: 1, At: due, Due: due}, []statemachine.Delivery{{Webhook: "hook"}})
		require.NoError(t, s.store.Commit(w))
		id := outbox.IDOf(key.Delivery{ID: key.ID{1}, Sequence: 1})
		s.badRules.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.ErrorIs(t, s.Change(ctx, id, outbox.Drop), failure.ErrInternal)
		clocktest.Advance(time.Minute)
		assert.NoError(t, s.Change(t.Context(), id, outbox.Drop), "afterwards")
	})
}

// TestTheOutboxGoesOnAfterAPanic: an attempt that panics is one that failed, and the sender of a shard begins again.
func TestTheOutboxGoesOnAfterAPanic(t *testing.T) {
	for what, broken := range map[string]func(*sendings) *atomic.Bool{
		"an attempt": func(s *sendings) *atomic.Bool { return &s.badSend }, "the sender": func(s *sendings) *atomic.Bool { return &s.badClock },
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := startSendings(t)
				defer s.stop(t)
				synctest.Wait()
				broken(s).Store(true)
				now := time.Now()
				err := <-s.mail(1, now)
				require.NoError(t, err)
				s.Began(s.shard, "w", outbox.MailQueue, now)
				synctest.Wait()
				require.True(t, len(s.sent) == 0 && !broken(s).Load(), "nothing panicked: the test proves nothing")
				clocktest.Advance(time.Minute)
				assert.Len(t, s.sent, 1, "were sent, want 1")
				rows := 0
				err = s.store.Scan(key.DeliveryPrefix(nil, s.shard, key.ID{1}), func(_, _ []byte) error { rows++; return nil })
				assert.True(t, err == nil && rows == 0, "%d rows are left, %v", rows, err)
			})
		})
	}
}
