package attempts

import (
	"container/list"
	"time"
)

type backoff struct {
	free int // free failures have no consequence
	// first is the wait after the failure behind them. Each further one doubles it, up to longest.
	first, longest time.Duration
	forget         time.Duration // the time in which one failure is forgotten, when there is no other
}

var (
	// An account allows about 300 guesses a day once it waits. So does a known place.
	accountBackoff = backoff{free: 4, first: time.Second, longest: 5 * time.Minute, forget: 10 * time.Minute}
	// addressBackoff: a whole company may share an address, so after 600 failures four hashes a second remain, a tenth
	// of a core.
	addressBackoff = backoff{free: 599, first: time.Second / 4, longest: time.Second / 4, forget: time.Second / 4}
)

func (b *backoff) wait(count int) time.Duration {
	wait := b.first
	for n := b.free + 1; n < count && wait < b.longest; n++ {
		wait *= 2
	}
	if count <= b.free {
		return 0
	}
	return min(wait, b.longest)
}

// countMax bounds the count, so that failures are forgotten in a bounded time: one more would not lengthen the wait.
func (b *backoff) countMax() int {
	count := b.free + 1
	for b.wait(count) < b.longest {
		count++
	}
	return count
}

type failures[K comparable] struct {
	key   K
	count int
	last  time.Time
}

// at returns the failures that are not forgotten, and how long the next attempt has to wait.
func (f failures[K]) at(b *backoff, now time.Time) (left failures[K], wait time.Duration) {
	// NB: a clock that is set back must not make anybody wait longer.
	passed := max(0, now.Sub(f.last))
	wait = max(0, b.wait(f.count)-passed)
	f.count = max(0, f.count-int(passed/b.forget))
	return f, wait
}

func (f failures[K]) next(b *backoff, now time.Time) failures[K] {
	return failures[K]{key: f.key, count: min(f.count+1, b.countMax()), last: now}
}

// When other attempts have failed since, only the count goes down.
func (f failures[K]) takeBack(before failures[K], begun time.Time) failures[K] {
	if f.last.Equal(begun) && f.count == before.count+1 {
		return before
	}
	f.count--
	return f
}

// failureTable remembers failures by key. The newest are in front; when it is full the oldest leave.
type failureTable[K comparable] struct {
	backoff backoff
	size    int
	byKey   map[K]*list.Element // of *failures[K]
	order   *list.List
}

func newFailureTable[K comparable](b backoff, size int) failureTable[K] {
	return failureTable[K]{backoff: b, size: size, byKey: map[K]*list.Element{}, order: list.New()}
}

// at returns the failures of a key that are not forgotten, and how long the next attempt has to wait.
func (t *failureTable[K]) at(key K, now time.Time) (f failures[K], wait time.Duration) {
	element, known := t.byKey[key]
	if !known {
		return failures[K]{key: key}, 0
	}
	return element.Value.(*failures[K]).at(&t.backoff, now)
}

func (t *failureTable[K]) put(f failures[K]) {
	element, known := t.byKey[f.key]
	switch {
	case f.count <= 0:
		if known {
			t.order.Remove(element)
			delete(t.byKey, f.key)
		}
	case known:
		*element.Value.(*failures[K]) = f
		t.order.MoveToFront(element)
	default:
		if len(t.byKey) >= t.size {
			oldest := t.order.Back()
			t.order.Remove(oldest)
			delete(t.byKey, oldest.Value.(*failures[K]).key)
		}
		t.byKey[f.key] = t.order.PushFront(&f)
	}
}

func (t *failureTable[K]) touch(key K) {
	if element, known := t.byKey[key]; known {
		t.order.MoveToFront(element)
	}
}

func (t *failureTable[K]) count(before failures[K], now time.Time) {
	t.put(before.next(&t.backoff, now))
}

func (t *failureTable[K]) takeBack(before failures[K], begun time.Time) {
	if element, known := t.byKey[before.key]; known {
		t.put(element.Value.(*failures[K]).takeBack(before, begun))
	}
}
