package load

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// pacer says when the requests of an open loop are due. Its fields are read when it is over.
type pacer struct {
	rate   float64
	first  time.Time
	window window

	missed int64 // due inside the window and sent by nobody
}

// run puts the time of each request into due, when it has come, and closes due
// when the window is over. It never waits for a receiver.
func (p *pacer) run(ctx context.Context, due chan time.Time) {
	defer close(due)
	// A thread of its own, because sleeping precisely blocks one.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for k := 0; ; k++ {
		at := p.first.Add(time.Duration(float64(k) / p.rate * float64(time.Second)))
		if !at.Before(p.window.end) || !sleepUntil(ctx, at) {
			break
		}
		select {
		case due <- at:
		default:
			p.miss(at)
		}
	}
	for { // nobody sends what is left; the run is over
		select {
		case at := <-due:
			p.miss(at)
		default:
			return
		}
	}
}

func (p *pacer) miss(at time.Time) {
	if p.window.contains(at) {
		p.missed++
	}
}

// sleepMax is how long a sleep does not look at its context.
const sleepMax = 50 * time.Millisecond

// sleepUntil sleeps until t has come. It is false when ctx ended before.
func sleepUntil(ctx context.Context, t time.Time) bool {
	for {
		left := time.Until(t)
		if left <= 0 {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		sleep(min(left, sleepMax))
	}
}

// Sleep reports whether d has passed before ctx ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// restMin is how long ago the last request was sent when a connection is looked at before
// the next. Before that there was hardly time for an answer and the end of the connection.
const restMin = time.Millisecond

// rested opens the connection again when the server has ended it since the last request. A server that ends gracefully
// does that, and nothing is lost by it. begun is when the next request was due.
func (w *worker) rested(ctx context.Context, win window, begun time.Time) error {
	var err error
	for err == nil && (w.conn.conn == nil || time.Since(w.conn.last) >= restMin && w.conn.stale()) {
		err = w.redial(ctx, win)
	}
	if win.open && errors.Is(err, errOver) && win.contains(begun) {
		w.tally.record(&sent{fault: &fault{kind: -1, reason: "there was no connection until the end"}}, 0, part{})
	}
	return err
}

// How long a worker waits before it connects again when the last attempt brought no
// right answer: twice as long each time.
const (
	redialWaitMin = 10 * time.Millisecond
	redialWaitMax = time.Second
)

// redial opens the connection again, however long the server is gone. Each attempt that fails is an error of the result.
// If there is another node, that one is asked instead.
func (w *worker) redial(ctx context.Context, win window) error {
	for {
		if err := w.pause(ctx, win); err != nil {
			return err
		}
		w.wait = min(max(2*w.wait, redialWaitMin), redialWaitMax)
		err := w.conn.dial(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if win.contains(time.Now()) {
			w.tally.record(&sent{fault: connectFault(err)}, 0, part{})
		}
		now := time.Now()
		w.conn.down = now.Add(redialWaitMax)
		if other := w.another(now); other != nil {
			w.conn = other
			return nil
		}
	}
}

// pause waits before the next attempt, not all workers equally long. After the window there is none.
func (w *worker) pause(ctx context.Context, win window) error {
	if w.wait > 0 {
		wait := w.wait/2 + time.Duration(w.random.Int64N(int64(w.wait)))
		Sleep(ctx, min(wait, max(0, time.Until(win.end))))
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if !time.Now().Before(win.end) {
		return errOver
	}
	return nil
}
