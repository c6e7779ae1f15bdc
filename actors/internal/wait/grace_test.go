package wait

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
)

func TestWaitReturnsWhenEarlierReadersHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p Period
		p.Wait() // nobody is there
		early := []Reader{p.Enter(0), p.Enter(1), p.Enter(1)}
		returned := make(chan struct{})
		go func() { p.Wait(); close(returned) }()
		synctest.Wait()
		late := p.Enter(1) // does not hold it up, and is not held up
		for _, r := range early {
			select {
			case <-returned:
				t.Fatal("Wait returned before its readers left")
			default:
			}
			p.Leave(r)
			synctest.Wait()
		}
		<-returned
		p.Leave(late)
		p.Wait()
		for row := range p.readers {
			for i := range p.readers[row] {
				assert.Zero(t, p.readers[row][i].n.Load(), "readers are counted when all have left")
			}
		}
	})
}

// TestNobodyReadsWhatIsGone: readers that load the value between Enter and Leave
// never see one that was retired after a Wait.
func TestNobodyReadsWhatIsGone(t *testing.T) {
	type value struct{ retired atomic.Bool }
	var p Period
	var current atomic.Pointer[value]
	current.Store(&value{})
	var wg sync.WaitGroup
	var stop atomic.Bool
	var reads atomic.Int64
	for hint := range uint16(4) {
		wg.Go(func() {
			for !stop.Load() {
				r := p.Enter(hint)
				v := current.Load()
				for range 2 { // also while it holds on to the value
					assert.False(t, v.retired.Load(), "a reader has a value that was retired")
				}
				p.Leave(r)
				reads.Add(1)
			}
		})
	}
	for n := 0; n < 2000 || reads.Load() < 10_000; n++ {
		old := current.Swap(&value{})
		p.Wait()
		old.retired.Store(true)
	}
	stop.Store(true)
	wg.Wait()
}

func BenchmarkReader(b *testing.B) {
	var p Period
	var hints atomic.Uint32
	b.RunParallel(func(pb *testing.PB) {
		hint := uint16(hints.Add(1))
		for pb.Next() {
			p.Leave(p.Enter(hint))
		}
	})
}

// TestWaitsDoNotHoldUpTheClock: one that waits for its turn is at rest, so that the time of a test goes on.
func TestWaitsDoNotHoldUpTheClock(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		var p Period
		r := p.Enter(0)
		var waits sync.WaitGroup
		for range 3 {
			waits.Go(p.Wait)
		}
		synctest.Wait() // NB: with a mutex it never returns
		p.Leave(r)
		waits.Wait()
	})
}
