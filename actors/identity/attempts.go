package identity

import (
	"container/list"
	"net/netip"
	"slices"
	"sync"
	"time"

	"troupe/actors/failure"
)

// tooManyAttempts is what SignIn answers when an account or an address has to wait
// after too many failures. wait, above zero, is the time until the next attempt is
// looked at.
func tooManyAttempts(wait time.Duration) error {
	return &failure.Error{
		Kind: failure.ErrQuota, Wait: wait,
		Reason: "too many failed attempts; the credentials were not checked, try again later",
	}
}

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
	// An account allows about 300 guesses a day once it waits. So does a known place.
	accountBackoff = backoff{free: 4, first: time.Second, longest: 5 * time.Minute, forget: 10 * time.Minute}
	// A whole company may share an address, so this bounds only what an address
	// costs: after 600 failures four hashes a second, a tenth of a core.
	addressBackoff = backoff{free: 599, first: time.Second / 4, longest: time.Second / 4, forget: time.Second / 4}
)

// wait is how long so many failures keep the next attempt waiting.
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

// countMax bounds the count, so that failures are forgotten in a bounded time: one
// more would not lengthen the wait.
func (b *backoff) countMax() int {
	count := b.free + 1
	for b.wait(count) < b.longest {
		count++
	}
	return count
}

// failures are those of one account, address or place.
type failures[K comparable] struct {
	key   K
	count int
	last  time.Time
}

// at returns the failures that are not forgotten, and how long the next attempt
// has to wait.
func (f failures[K]) at(b *backoff, now time.Time) (left failures[K], wait time.Duration) {
	// NB: a clock that is set back must not make anybody wait longer.
	passed := max(0, now.Sub(f.last))
	wait = max(0, b.wait(f.count)-passed)
	f.count = max(0, f.count-int(passed/b.forget))
	return f, wait
}

// next adds a failure.
func (f failures[K]) next(b *backoff, now time.Time) failures[K] {
	return failures[K]{key: f.key, count: min(f.count+1, b.countMax()), last: now}
}

// takeBack undoes the call of next on before at the time begun. When other attempts
// have failed since, only the count goes down.
func (f failures[K]) takeBack(before failures[K], begun time.Time) failures[K] {
	if f.last.Equal(begun) && f.count == before.count+1 {
		return before
	}
	f.count--
	return f
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
	return element.Value.(*failures[K]).at(&t.backoff, now)
}

// put stores the failures of a key, or removes the key when there are none.
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

// touch makes a key the newest.
func (t *failureTable[K]) touch(key K) {
	if element, known := t.byKey[key]; known {
		t.order.MoveToFront(element)
	}
}

// count adds a failure.
func (t *failureTable[K]) count(before failures[K], now time.Time) {
	t.put(before.next(&t.backoff, now))
}

// takeBack undoes count as failures.takeBack does.
func (t *failureTable[K]) takeBack(before failures[K], begun time.Time) {
	if element, known := t.byKey[before.key]; known {
		t.put(element.Value.(*failures[K]).takeBack(before, begun))
	}
}

// placesMax bounds the known places of an account. The one that was used longest
// ago leaves first.
const placesMax = 8

// knownPlaces has the addresses from which each account was signed in by its
// password, the last one first, with their own failures. Only a right password
// makes an entry, so it is bounded by the accounts there are.
type knownPlaces map[UserID][]failures[netip.Prefix]

// find returns the place, which may be changed until the next call of know, or
// nil when it is not known.
func (p knownPlaces) find(user UserID, from netip.Prefix) *failures[netip.Prefix] {
	list := p[user]
	if i := slices.IndexFunc(list, func(f failures[netip.Prefix]) bool { return f.key == from }); i >= 0 {
		return &list[i]
	}
	return nil
}

// know makes a place known, without failures.
func (p knownPlaces) know(user UserID, from netip.Prefix) {
	if !from.IsValid() {
		return
	}
	others := slices.DeleteFunc(p[user], func(f failures[netip.Prefix]) bool { return f.key == from })
	list := slices.Insert(others, 0, failures[netip.Prefix]{key: from})
	p[user] = list[:min(len(list), placesMax)]
}

// attempts bounds how often passwords can be guessed, and what guessing costs
// (actors/identity/DESIGN.md, "Failed sign-ins"). It keeps nothing on disk: a
// restart forgets all failures and places.
type attempts struct {
	mu struct {
		sync.Mutex
		places    knownPlaces
		accounts  failureTable[UserID]
		addresses failureTable[netip.Prefix]
	}
}

func newAttempts(size int) *attempts {
	a := new(attempts)
	a.mu.places = knownPlaces{}
	a.mu.accounts = newFailureTable[UserID](accountBackoff, size)
	a.mu.addresses = newFailureTable[netip.Prefix](addressBackoff, size)
	return a
}

// attempt is one sign-in between begin and its outcome. What failed before is as
// it was at begin.
type attempt struct {
	attempts *attempts
	begun    time.Time
	user     UserID
	from     netip.Prefix // invalid when the address is unknown
	// fromPlace: it came from a known place, where only the failures there count.
	fromPlace bool
	place     failures[netip.Prefix]
	account   failures[UserID]
	address   failures[netip.Prefix]
}

// nobody stands for all names that no account can have. They count by address alone,
// where the address is known: one count for all of them would make people who mistype
// their names wait for each other.
const nobody UserID = ""

// begin counts a failure in advance, so that concurrent attempts are limited like
// successive ones. succeeded or abandoned must follow, unless the attempt failed. The
// error is tooManyAttempts: such an attempt is not looked at and does not count.
func (a *attempts) begin(user UserID, address netip.Addr, now time.Time) (*attempt, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	try := &attempt{attempts: a, begun: now, user: user, from: network(address)}
	wait := a.enterLocked(try)
	if wait > 0 {
		return nil, tooManyAttempts(wait)
	}
	return try, nil
}

// enterLocked counts the attempt, or returns how long it has to wait.
func (a *attempts) enterLocked(try *attempt) time.Duration {
	if place := a.mu.places.find(try.user, try.from); place != nil {
		before, wait := place.at(&accountBackoff, try.begun)
		if wait == 0 {
			try.fromPlace, try.place = true, before
			*place = before.next(&accountBackoff, try.begun)
		}
		return wait
	}
	var accountWait, addressWait time.Duration
	try.account, accountWait = a.mu.accounts.at(try.user, try.begun)
	try.address, addressWait = a.mu.addresses.at(try.from, try.begun)
	if wait := max(accountWait, addressWait); wait > 0 {
		a.mu.accounts.touch(try.user)
		a.mu.addresses.touch(try.from)
		return wait
	}
	if try.user != nobody || !try.from.IsValid() {
		a.mu.accounts.count(try.account, try.begun)
	}
	if try.from.IsValid() {
		a.mu.addresses.count(try.address, try.begun)
	}
	return 0
}

// succeeded makes the place known. From a new place it also forgets the failures of
// the account. From a known place it does not: somebody else may be guessing
// elsewhere. The failures of the address stay: otherwise an attacker with one account
// could guess at all others.
func (t *attempt) succeeded() {
	a := t.attempts
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.places.know(t.user, t.from)
	if t.fromPlace {
		return
	}
	a.mu.accounts.put(failures[UserID]{key: t.user})
	a.mu.addresses.takeBack(t.address, t.begun)
}

// abandoned takes back an attempt whose password was not compared.
func (t *attempt) abandoned() {
	a := t.attempts
	a.mu.Lock()
	defer a.mu.Unlock()
	if !t.fromPlace {
		a.mu.accounts.takeBack(t.account, t.begun)
		a.mu.addresses.takeBack(t.address, t.begun)
		return
	}
	if place := a.mu.places.find(t.user, t.from); place != nil && place.count > 0 {
		*place = place.takeBack(t.place, t.begun)
	}
}

// holder is whose share of the hashes the attempt uses.
func (t *attempt) holder() hashHolder {
	if t.fromPlace {
		return hashHolder{user: t.user}
	}
	return hashHolder{from: t.from}
}

// forget drops the failures and the known places of an account that has a new
// password: the old one made the places known.
func (a *attempts) forget(user UserID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.accounts.put(failures[UserID]{key: user})
	delete(a.mu.places, user)
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
