package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"troupe/persistence"
	"troupe/persistence/key"
)

// orderAck notes the order of answers.
type orderAck struct {
	writer, n int
	told      func(writer, n int)
}

func (a orderAck) Committed(error) { a.told(a.writer, a.n) }

func answersInOrder(open Opener) error {
	return with(open, func(b *bench) error {
		const writers, each = 8, 300
		var last [writers]int // next n that each writer expects; only Committed touches it
		var inside atomic.Int32
		var mu sync.Mutex
		var wrong error
		told := func(writer, n int) {
			if inside.Add(1) != 1 {
				mu.Lock()
				wrong = errors.New("two waiters were told at the same time")
				mu.Unlock()
			}
			if last[writer] != n {
				mu.Lock()
				wrong = fmt.Errorf("writer %d: told %d, want %d", writer, n, last[writer])
				mu.Unlock()
			}
			last[writer]++
			inside.Add(-1)
		}
		var wg sync.WaitGroup
		for writer := range writers {
			wg.Go(func() {
				for n := range each {
					b.Append(b.setting(writer), orderAck{writer, n, told})
				}
			})
		}
		wg.Wait()
		if err := barrier(b); err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for writer, n := range last {
			if n != each && wrong == nil {
				wrong = fmt.Errorf("writer %d: %d answers, want %d", writer, n, each)
			}
		}
		return wrong
	})
}

func answeredOnce(open Opener) error {
	b, err := newBench(open)
	if err != nil {
		return err
	}
	const appends = 500
	var again atomic.Int32
	acks := make([]*ack, appends)
	var wg sync.WaitGroup
	for n := range acks {
		acks[n] = newAck()
		acks[n].extra = func() { again.Add(1) }
		wg.Go(func() {
			if n%10 == 0 {
				b.Barrier(acks[n])
				return
			}
			b.Append(b.setting(n), acks[n])
		})
	}
	wg.Wait()
	if err := b.Close(); err != nil {
		return err
	}
	for n, a := range acks {
		if !a.answered() {
			return fmt.Errorf("append %d was not answered by the time Close had returned", n)
		}
	}
	if again.Load() > 0 {
		return fmt.Errorf("%d waiters were told twice", again.Load())
	}
	return nil
}

func barrierIsLast(open Opener) error {
	return with(open, func(b *bench) error {
		arrived := b.syncs.hold()
		acks := b.appendAll(10)
		last := newAck()
		b.Barrier(last)
		hangs(arrived, acks[0])
		if last.answered() {
			return errors.New("the barrier was told while a sync before it hung")
		}
		b.syncs.release()
		if err := last.wait(); err != nil {
			return fmt.Errorf("barrier: got %w, want nil", err)
		}
		for n, a := range acks {
			if !a.answered() {
				return fmt.Errorf("the barrier was told before append %d", n)
			}
		}
		return nil
	})
}

func barrierAlone(open Opener) error {
	return with(open, func(b *bench) error { return barrier(b) })
}

func emptyAppend(open Opener) error {
	return with(open, func(b *bench) error { return commit(b, b.NewBatch(key.Meta)) })
}

func closeWaits(open Opener) error {
	b, err := newBench(open)
	if err != nil {
		return err
	}
	arrived := b.syncs.hold()
	a := newAck()
	b.Append(b.setting(0), a)
	hangs(arrived, a)
	closed := make(chan error, 1)
	go func() { closed <- b.Close() }()
	select {
	case err := <-closed:
		b.syncs.release()
		return fmt.Errorf("close returned (%v) while an append was waiting for its sync", err)
	default:
	}
	b.syncs.release()
	if err := <-closed; err != nil {
		return err
	}
	if !a.answered() {
		return errors.New("close returned before the append was answered")
	}
	return a.wait()
}

func refusedAfterClose(open Opener) error {
	b, err := newBench(open)
	if err != nil {
		return err
	}
	w := b.setting(0)
	if err := b.Close(); err != nil {
		return err
	}
	if err := commit(b, w); !errors.Is(err, persistence.ErrClosed) {
		return fmt.Errorf("append after Close: got %v, want %v", err, persistence.ErrClosed)
	}
	return b.afterCrash(open, func(j Journal) error { return expectSettings(j, 0) })
}
