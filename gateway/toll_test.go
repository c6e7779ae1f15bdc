package gateway_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/gateway/toll"
)

const (
	second = 4 * toll.CreditBytes // what the accounts of these tests pay in a second
	start  = time.Hour
)

// TestWhatIsChargedIsWaitedFor: the credit goes at once, what is behind it when everything before it is paid.
func TestWhatIsChargedIsWaitedFor(t *testing.T) {
	var a toll.Account
	for i, step := range []struct {
		now  time.Duration
		n    int64
		want time.Duration
	}{
		{0, toll.CreditBytes, 0},
		{0, toll.CreditBytes, 0}, // the credit is what may be owed when it begins
		{0, toll.CreditBytes, time.Second / 4},
		{time.Second / 4, 1, time.Second / 4},
		{time.Second / 2, 1, 0},
		{time.Hour, toll.CreditBytes, 0}, // an hour without bytes gives no more credit
		{time.Hour, toll.CreditBytes, 0},
		{time.Hour, toll.CreditBytes, time.Second / 4},
	} {
		wait, ok := a.Charge(start+step.now, step.n, second)
		off := wait - step.want
		assert.True(t, ok && off >= 0 && off <= time.Microsecond, "step %d: got %v, %v, want %v", i, wait, ok, step.want)
	}
}

// TestWhoOwesTooMuchIsChargedNothing, and may send again as soon as enough is paid.
func TestWhoOwesTooMuchIsChargedNothing(t *testing.T) {
	var a toll.Account
	owed := int64(0)
	for {
		if _, ok := a.Charge(start, toll.CreditBytes, second); !ok {
			break
		}
		owed += toll.CreditBytes
	}
	assert.Equal(t, int64(toll.CreditBytes+second+toll.CreditBytes), owed, "bytes are owed, want the credit, those of toll.WaitMax and one body")
	for range 100 {
		_, ok := a.Charge(start, toll.CreditBytes, second)
		assert.False(t, ok, "more was charged")
	}
	wait, ok := a.Charge(start+time.Second/4, 1, second)
	assert.True(t, ok && wait == toll.WaitMax, "a quarter of a second later: got %v, %v, want %v", wait, ok, toll.WaitMax)
}

// TestManyAtOnceAreChargedOneByOne: no two get the same time.
func TestManyAtOnceAreChargedOneByOne(t *testing.T) {
	var a toll.Account
	var all sync.WaitGroup
	var sum atomic.Int64
	for range 16 {
		all.Go(func() {
			wait, ok := a.Charge(start, toll.CreditBytes/4, second)
			assert.True(t, ok, "refused")
			sum.Add(int64(wait))
		})
	}
	all.Wait()
	// Five go at once: four have the credit, and the fifth begins when nothing is owed. The others wait in turn.
	want := int64(11*12/2) * int64(time.Second/16)
	assert.Equal(t, want, sum.Load(), "all waited %v together, want %v", time.Duration(sum.Load()), time.Duration(want))
}
