package identity

import (
	"container/list"
	"fmt"
	"net/netip"
	"sync"
	"time"
)

// AttemptsError is what SignIn answers when an account or an address has to wait
// after too many failures. It wraps ErrTooManyAttempts.
type AttemptsError struct {
	// Wait is the time until the next attempt is looked at; above zero.
	Wait time.Duration
}

func (e *AttemptsError) Error() string {
	return fmt.Sprintf("%v: wait %v", ErrTooManyAttempts, e.Wait)
}

func (e *AttemptsError) Unwrap() error { return ErrTooManyAttempts }

// backoff says how long failures keep the next attempt waiting.
type backoff struct {
	// free failures have no consequence.
	free int
	// first is the wait after the failure behind them. Each further one doubles
	// it, up to longest.
	first, longest time.Duration
	// forget is the time in which one failure is forgotten, when there is no
	// other.
	forget time.Duration
}

var (
	// An account allows about 300 guesses a day once it waits.
	accountBackoff = backoff{free: 4, first: time.Second, longest: 5 * time.Minute, forget: 10 * time.Minute}
	// Behind an address there may be a whole company.
	addressBackoff = backoff{free: 29, first: time.Second, longest: 2 * time.Minute, forget: time.Minute}
)

// wait is the time that so many failures cost.
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

// countMax is the number of failures from which on another changes nothing, so
// that it takes a bounded time to forget them.
func (b *backoff) countMax() int {
	count := b.free + 1
	for b.wait(count) < b.longest {
		count++
	}
	return count
}

// failures are those of one account or address.
type failures[K comparable] struct {
	key   K
	count int
	last  time.Time
}

// failureTable remembers failures by key. The newest are in front; when it is
// full the oldest leave.
type failureTable[K comparable] struct {
	backoff backoff
	size    int
	byKey   map[K]*list.Element // of *failures[K]
	order   *list.List
}

func newFailureTable[K comparable](b backoff, size int) failureTable[K] {
	return failureTable[K]{backoff: b, size: size, byKey: map[K]*list.Element{}, order: list.New()}
}

// at returns the failures of a key that are not forgotten, and how long the next
// attempt has to wait.
func (t *failureTable[K]) at(key K, now time.Time) (f failures[K], wait time.Duration) {
	element, known := t.byKey[key]
	if !known {
		return failures[K]{key: key}, 0
	}
	f = *element.Value.(*failures[K])
	// NB: a clock that is set back must not make anybody wait longer.
	passed := max(0, now.Sub(f.last))
	wait = max(0, t.backoff.wait(f.count)-passed)
	f.count = max(0, f.count-int(passed/t.backoff.forget))
	return f, wait
}

// put keeps the failures of a key, or forgets it when there are none.
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

// touch keeps a key from being the oldest.
func (t *failureTable[K]) touch(key K) {
	if element, known := t.byKey[key]; known {
		t.order.MoveToFront(element)
	}
}

// count adds a failure.
func (t *failureTable[K]) count(before failures[K], now time.Time) {
	t.put(failures[K]{key: before.key, count: min(before.count+1, t.backoff.countMax()), last: now})
}

// takeBack undoes count, as far as other attempts have not gone on from it.
func (t *failureTable[K]) takeBack(before failures[K], now time.Time) {
	element, known := t.byKey[before.key]
	if !known {
		return
	}
	f := *element.Value.(*failures[K])
	if f.last.Equal(now) && f.count == before.count+1 {
		f = before
	} else {
		f.count--
	}
	t.put(f)
}

// attempts bounds how often passwords can be guessed. It keeps nothing on disk:
// a restart forgets all failures.
type attempts struct {
	mu struct {
		sync.Mutex
		accounts  failureTable[UserID]
		addresses failureTable[netip.Prefix]
	}
}

func newAttempts(size int) *attempts {
	a := new(attempts)
	a.mu.accounts = newFailureTable[UserID](accountBackoff, size)
	a.mu.addresses = newFailureTable[netip.Prefix](addressBackoff, size)
	return a
}

// attempt is one sign-in between begin and its outcome.
type attempt struct {
	attempts *attempts
	begun    time.Time
	account  failures[UserID]
	address  failures[netip.Prefix]
}

// nobody stands for all names that no account can have. They count by address
// alone, where there is one: in one account together, whoever mistypes a name
// would wait for others.
const nobody UserID = ""

// begin counts a failure in advance, so that any number of attempts at a time
// are no more than one after the other. Of the outcomes below exactly one must
// follow, unless the attempt failed. The error is an AttemptsError: such an
// attempt is not looked at and does not count.
func (a *attempts) begin(user UserID, address netip.Addr, now time.Time) (*attempt, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	account, wait := a.mu.accounts.at(user, now)
	from, addressWait := a.mu.addresses.at(network(address), now)
	if wait = max(wait, addressWait); wait > 0 {
		a.mu.accounts.touch(user)
		a.mu.addresses.touch(from.key)
		return nil, &AttemptsError{Wait: wait}
	}
	if user != nobody || !from.key.IsValid() {
		a.mu.accounts.count(account, now)
	}
	if from.key.IsValid() {
		a.mu.addresses.count(from, now)
	}
	return &attempt{a, now, account, from}, nil
}

// succeeded forgets the failures of the account. Those of the address stay:
// otherwise one account of one's own would do for guessing at all others.
func (t *attempt) succeeded() {
	a := t.attempts
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.accounts.put(failures[UserID]{key: t.account.key})
	a.mu.addresses.takeBack(t.address, t.begun)
}

// abandoned is for attempts that nobody looked at.
func (t *attempt) abandoned() {
	a := t.attempts
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.accounts.takeBack(t.account, t.begun)
	a.mu.addresses.takeBack(t.address, t.begun)
}

// forget drops the failures of an account, whose password is new.
func (a *attempts) forget(user UserID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.accounts.put(failures[UserID]{key: user})
}

// network is what counts as one address: an IPv4 address, or the 64 bits of an
// IPv6 address that a provider gives to one customer. Of the zero address, which
// stands for an unknown one, it is invalid and has no failures.
func network(address netip.Addr) netip.Prefix {
	address = address.Unmap().WithZone("")
	bits := 64
	if address.Is4() {
		bits = 32
	}
	prefix, _ := address.Prefix(bits) // the zero prefix for the zero address
	return prefix
}
