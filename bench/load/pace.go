package load

import (
	"context"
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
	Pace(ctx, p.rate, p.first, p.window.end, func(at time.Time) {
		select {
		case due <- at:
		default:
			p.miss(at)
		}
	})
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

// Pace calls send rate times a second from first until end has come or ctx has
// ended, evenly, each time with the moment when it was due. send must not block.
func Pace(ctx context.Context, rate float64, first, end time.Time, send func(due time.Time)) {
	// A thread of its own, because sleeping precisely blocks one.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for k := 0; ; k++ {
		at := first.Add(time.Duration(float64(k) / rate * float64(time.Second)))
		if !at.Before(end) || !sleepUntil(ctx, at) {
			return
		}
		send(at)
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
