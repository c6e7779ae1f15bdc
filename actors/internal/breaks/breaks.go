// Package breaks has long work leave a processor to others in between. Go's scheduler takes a processor away after 10
// ms at the earliest, and looks for what has come over the network only where nothing else can run, so two requests of
// a tenth of a second on two processors had all others wait for tens of milliseconds.
package breaks

import "time"

const piece = time.Millisecond

// longest is the longest break: what came before may have been a wait.
const longest = 250 * time.Millisecond

// Breaks are those of one piece of work, which calls Take often. One goroutine uses them at a time.
type Breaks struct {
	free  time.Duration // how long it works without any
	times time.Duration // a break is so many times as long as what came before it
	each  int           // how many calls of Take there are for one look at the clock

	begun time.Time     // of what comes before the next break
	left  time.Duration // of free
	calls int
}

// New begins work that takes no break before free is over. A break is so many times as long as what came before it. The
// clock costs 50 ns, and is looked at once for so many calls of Take as each says.
func New(free time.Duration, times, each int) *Breaks {
	b := &Breaks{free: free, times: time.Duration(times), each: each}
	b.Begin()
	return b
}

// Begin begins the work again.
func (b *Breaks) Begin() { b.begun, b.left = time.Now(), b.free }

// Take takes a break if one is due. It ends early when done is closed; nil never is.
func (b *Breaks) Take(done <-chan struct{}) {
	if b.calls++; b.calls%b.each != 0 {
		return
	}
	took := time.Since(b.begun)
	if took < max(piece, b.left) {
		return
	}
	pause := time.NewTimer(min((took-b.left)*b.times, longest))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-done:
	}
	b.begun, b.left = time.Now(), 0
}
