package load

import (
	"context"
	"errors"
	"time"
)

// restMin is how long ago the last request was sent when a connection is looked at before
// the next. Before that there was hardly time for an answer and the end of the connection.
const restMin = time.Millisecond

// rested opens the connection anew when the server has ended it since the last request. A server that ends gracefully
// does that, and nothing is lost by it. begun is when the next request was due.
func (w *worker) rested(ctx context.Context, win window, begun time.Time) error {
	if time.Since(w.conn.last) < restMin || !w.conn.stale() {
		return nil
	}
	err := w.redial(ctx, win)
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

// redial opens the connection anew, however long the server is gone. Each attempt that fails is an error of the result.
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
