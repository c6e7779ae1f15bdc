// Package breaks has long work leave a processor to others in between.
//
// The scheduler of Go takes a processor away after 10 ms at the earliest, and looks for what has come over the network only where nothing
// else can run. Two requests of a tenth of a second on two processors so had all others wait for tens of milliseconds.
package breaks

import "time"

// piece is how long work goes on between two breaks.
const piece = time.Millisecond

// Breaks are those of one piece of work, which calls Take often. The zero value has no breaks.
type Breaks struct {
	Free  time.Duration // how long it works without any
	Times int           // a break is so many times as long as what came before it

	begun time.Time // of what comes before the next break
	free  time.Duration
}

// Begin begins the work, behind which it may be called again.
func (b *Breaks) Begin() { b.begun, b.free = time.Now(), b.Free }

// Take takes a break if one is due. It ends early when done is closed; nil never is.
func (b *Breaks) Take(done <-chan struct{}) {
	took := time.Since(b.begun)
	if b.Times == 0 || took < max(piece, b.free) {
		return
	}
	pause := time.NewTimer((took - b.free) * time.Duration(b.Times))
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-done:
	}
	b.begun, b.free = time.Now(), 0
}
