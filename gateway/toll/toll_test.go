package toll

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	second = 4 * CreditBytes // what the accounts of these tests pay in a second
	start  = time.Hour
)

// TestWhatIsChargedIsWaitedFor: the credit goes at once, what is behind it when everything before it is paid.
func TestWhatIsChargedIsWaitedFor(t *testing.T) {
	var a Account
	for i, step := range []struct {
		now  time.Duration
		n    int64
		want time.Duration
	}{
		{0, CreditBytes, 0},
		{0, CreditBytes, 0}, // the credit is what may be owed when it begins
		{0, CreditBytes, time.Second / 4},
		{time.Second / 4, 1, time.Second / 4},
		{time.Second / 2, 1, 0},
		{time.Hour, CreditBytes, 0}, // an hour without bytes gives no more credit
		{time.Hour, CreditBytes, 0},
		{time.Hour, CreditBytes, time.Second / 4},
	} {
		wait, ok := a.Charge(start+step.now, step.n, second)
		if off := wait - step.want; !ok || off < 0 || off > time.Microsecond {
			t.Errorf("step %d: got %v, %v, want %v", i, wait, ok, step.want)
		}
	}
}

// TestWhoOwesTooMuchIsChargedNothing, and may send again as soon as enough is paid.
func TestWhoOwesTooMuchIsChargedNothing(t *testing.T) {
	var a Account
	owed := int64(0)
	for {
		if _, ok := a.Charge(start, CreditBytes, second); !ok {
			break
		}
		owed += CreditBytes
	}
	if owed != CreditBytes+second+CreditBytes {
		t.Errorf("%d bytes are owed, want the credit, those of WaitMax and one body", owed)
	}
	for range 100 {
		if _, ok := a.Charge(start, CreditBytes, second); ok {
			t.Error("more was charged")
		}
	}
	if wait, ok := a.Charge(start+time.Second/4, 1, second); !ok || wait != WaitMax {
		t.Errorf("a quarter of a second later: got %v, %v, want %v", wait, ok, WaitMax)
	}
}

// TestManyAtOnceAreChargedOneByOne: no two get the same time.
func TestManyAtOnceAreChargedOneByOne(t *testing.T) {
	var a Account
	var all sync.WaitGroup
	var sum atomic.Int64
	for range 16 {
		all.Go(func() {
			wait, ok := a.Charge(start, CreditBytes/4, second)
			if !ok {
				t.Error("refused")
			}
			sum.Add(int64(wait))
		})
	}
	all.Wait()
	// Five go at once: four have the credit, and the fifth begins when nothing is owed. The others wait in turn.
	if want := int64(11*12/2) * int64(time.Second/16); sum.Load() != want {
		t.Errorf("all waited %v together, want %v", time.Duration(sum.Load()), time.Duration(want))
	}
}
