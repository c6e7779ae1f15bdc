package storetest

import (
	"errors"
	"fmt"
	"sync"

	"troupe/persistence"
)

func barrierIsLast(open Opener) error {
	return with(open, func(b *bench) error {
		arrived := b.syncs.hold()
		acks := make([]*ack, 10)
		for n := range acks {
			acks[n] = newAck()
			b.Append(b.setting(n), acks[n])
		}
		barrier := newAck()
		b.Barrier(barrier)
		<-arrived
		if barrier.answered() {
			return errors.New("the barrier was told while a sync before it hung")
		}
		b.syncs.release()
		if err := barrier.wait(); err != nil {
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
	return with(open, func(b *bench) error {
		barrier := newAck()
		b.Barrier(barrier)
		return barrier.wait()
	})
}

func emptyAppend(open Opener) error {
	return with(open, func(b *bench) error {
		return commit(b, b.NewWrites(persistence.Meta))
	})
}

// manyInFlight appends more than a log can have waiting for one sync, from one
// goroutine, while the sync hangs. A journal needs room in memory for that.
func manyInFlight(open Opener) error {
	return with(open, func(b *bench) error {
		const appends = 4500
		b.syncs.hold()
		for n := range appends {
			b.Append(b.setting(n), ignore{})
		}
		b.syncs.release()
		end := newAck()
		b.Barrier(end)
		if err := end.wait(); err != nil {
			return err
		}
		j, err := b.reopened(open)
		if err != nil {
			return err
		}
		return errors.Join(expectSettings(j, appends), j.Close())
	})
}

func countersAddUp(open Opener) error {
	return with(open, func(b *bench) error {
		const writers, each = 8, 100
		var wg sync.WaitGroup
		for writer := range writers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range each {
					w := b.NewWrites(1)
					w.Add(persistence.CountKey(nil, 1, workflow, 1), 3)
					w.Add(persistence.CountKey(nil, 1, workflow, 2), -1)
					if writer == 0 {
						_ = commit(b, w)
						continue
					}
					b.Append(w, ignore{})
				}
			}()
		}
		wg.Wait()
		end := newAck()
		b.Barrier(end)
		if err := end.wait(); err != nil {
			return err
		}
		j, err := b.reopened(open)
		if err != nil {
			return err
		}
		for version, want := range map[uint64]int64{1: 3 * writers * each, 2: -writers * each} {
			for state, j := range map[string]Journal{"running": b, "restarted": j} {
				value, _, err := load(j, persistence.CountKey(nil, 1, workflow, version))
				if err != nil {
					return err
				}
				if got, err := persistence.ParseCount(value); err != nil || got != want {
					return fmt.Errorf("%s: counter %d is %d (%v), want %d", state, version, got, err, want)
				}
			}
		}
		return j.Close()
	})
}

func closeWaits(open Opener) error {
	b, err := newBench(open)
	if err != nil {
		return err
	}
	arrived := b.syncs.hold()
	a := newAck()
	b.Append(b.setting(0), a)
	<-arrived
	closed := make(chan error, 1)
	go func() { closed <- b.Close() }()
	select {
	case err := <-closed:
		b.syncs.release()
		return fmt.Errorf("Close returned (%v) while an append was waiting for its sync", err)
	default:
	}
	b.syncs.release()
	if err := <-closed; err != nil {
		return err
	}
	if !a.answered() {
		return errors.New("Close returned before the append was answered")
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
	j, err := b.reopened(open)
	if err != nil {
		return err
	}
	return errors.Join(expectSettings(j, 0), j.Close())
}
