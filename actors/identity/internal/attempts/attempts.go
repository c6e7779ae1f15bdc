// Package attempts bounds how often passwords can be guessed: failures by account, by address and by place, and how
// long they keep the next attempt waiting (actors/identity/DESIGN.md, "Failed sign-ins"). It knows no users, no
// passwords and no store.
package attempts

import (
	"net/netip"
	"slices"
	"sync"
	"time"

	"troupe/actors/failure"
)

func tooManyAttempts(wait time.Duration) error {
	return &failure.Error{
		Kind: failure.ErrQuota, Wait: wait,
		Reason: "too many failed attempts; the credentials were not checked, try again later",
	}
}

const placesMax = 8

// Only a right password makes an entry, so it is bounded by the accounts there are.
type knownPlaces map[string][]failures[netip.Prefix]

// find returns the place, which may be changed until the next call of know, or nil when it is not known.
func (p knownPlaces) find(user string, from netip.Prefix) *failures[netip.Prefix] {
	list := p[user]
	if i := slices.IndexFunc(list, func(f failures[netip.Prefix]) bool { return f.key == from }); i >= 0 {
		return &list[i]
	}
	return nil
}

func (p knownPlaces) know(user string, from netip.Prefix) {
	if !from.IsValid() {
		return
	}
	others := slices.DeleteFunc(p[user], func(f failures[netip.Prefix]) bool { return f.key == from })
	list := slices.Insert(others, 0, failures[netip.Prefix]{key: from})
	p[user] = list[:min(len(list), placesMax)]
}

// Attempts bounds how often passwords can be guessed, and what guessing costs (actors/identity/DESIGN.md, "Failed
// sign-ins").
type Attempts struct {
	mu struct {
		sync.Mutex
		places    knownPlaces
		accounts  failureTable[string]
		addresses failureTable[netip.Prefix]
	}
}

// New remembers failures of at most size accounts and as many addresses.
func New(size int) *Attempts {
	a := new(Attempts)
	a.mu.places = knownPlaces{}
	a.mu.accounts = newFailureTable[string](accountBackoff, size)
	a.mu.addresses = newFailureTable[netip.Prefix](addressBackoff, size)
	return a
}

// Attempt is one sign-in between Begin and its outcome. What failed before is as it was at begin.
type Attempt struct {
	attempts  *Attempts
	begun     time.Time
	user      string
	from      netip.Prefix // invalid when the address is unknown
	fromPlace bool         // it came from a known place, where only the failures there count
	place     failures[netip.Prefix]
	account   failures[string]
	address   failures[netip.Prefix]
}

// They count by address alone, where the address is known: one count for all of them would make people who mistype
// their names wait for each other.
const Nobody = ""

// Begin counts a failure in advance, so that concurrent attempts are limited like successive ones. Succeeded or
// Abandoned must follow, unless the attempt failed.
func (a *Attempts) Begin(user string, address netip.Addr, now time.Time) (*Attempt, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	try := &Attempt{attempts: a, begun: now, user: user, from: network(address)}
	wait := a.enterLocked(try)
	if wait > 0 {
		return nil, tooManyAttempts(wait)
	}
	return try, nil
}

func (a *Attempts) enterLocked(try *Attempt) time.Duration {
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
	if try.user != Nobody || !try.from.IsValid() {
		a.mu.accounts.count(try.account, try.begun)
	}
	if try.from.IsValid() {
		a.mu.addresses.count(try.address, try.begun)
	}
	return 0
}

// Succeeded makes the place known, and forgets the failures of the account from a new one: somebody else may be
// guessing elsewhere. The failures of the address stay: otherwise an attacker with one account could guess at all
// others.
func (t *Attempt) Succeeded() {
	a := t.attempts
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.places.know(t.user, t.from)
	if t.fromPlace {
		return
	}
	a.mu.accounts.put(failures[string]{key: t.user})
	a.mu.addresses.takeBack(t.address, t.begun)
}

// Abandoned takes back an attempt whose password was not compared.
func (t *Attempt) Abandoned() {
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

// Place is the address that the attempt comes from, invalid when that is unknown; known: the account was signed in from
// there before.
func (t *Attempt) Place() (from netip.Prefix, known bool) { return t.from, t.fromPlace }

// Forget drops the failures and the known places of an account that has a new password: the old one made the places
// known.
func (a *Attempts) Forget(user string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mu.accounts.put(failures[string]{key: user})
	delete(a.mu.places, user)
}

// Accounts is how many accounts have failures that are remembered.
func (a *Attempts) Accounts() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.mu.accounts.byKey)
}

// network is what counts as one address: an IPv4 address, or the 64 bits of an IPv6 address that a provider gives to
// one customer.
func network(address netip.Addr) netip.Prefix {
	address = address.Unmap().WithZone("")
	bits := 64
	if address.Is4() {
		bits = 32
	}
	prefix, _ := address.Prefix(bits) // the zero prefix for the zero address
	return prefix
}
