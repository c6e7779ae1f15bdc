package attempts

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
)

var (
	someDay = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	nearby  = netip.MustParseAddr("192.0.2.7")
	afar    = netip.MustParseAddr("2001:db8::7")
)

// door counts attempts at a time that a test sets.
type door struct {
	*Attempts
	t   *testing.T
	now time.Time
}

func newDoor(t *testing.T, size int) *door { return &door{New(size), t, someDay} }

// try begins an attempt and leaves it as failed. It returns the wait.
func (d *door) try(user string, from netip.Addr) time.Duration {
	d.t.Helper()
	_, err := d.Begin(user, from, d.now)
	if err == nil {
		return 0
	}
	var late *failure.Error
	require.True(d.t, errors.As(err, &late) && errors.Is(err, failure.ErrQuota) && late.Wait > 0, "begin: got %v, want an error with a wait", err)
	return late.Wait
}

func (d *door) waits(what string, user string, from netip.Addr, want time.Duration) {
	d.t.Helper()
	assert.Equal(d.t, want, d.try(user, from), "%s: %s waits", what, user)
}

// enter begins an attempt that must be looked at.
func (d *door) enter(user string, from netip.Addr) *Attempt {
	d.t.Helper()
	x, err := d.Begin(user, from, d.now)
	require.NoError(d.t, err, "%s from %s", user, from)
	return x
}

func (d *door) counted() int { return len(d.mu.accounts.byKey) + len(d.mu.addresses.byKey) }

func named(n int) string { return fmt.Sprintf("user%d", n) }

// TestAccountBacksOff holds the growing wait of an account: it is bounded, a quiet time
// brings all attempts back, and neither an attempt which came too soon nor a clock
// that is set back makes it longer.
func TestAccountBacksOff(t *testing.T) {
	d, nowhere := newDoor(t, 100), netip.Addr{}
	for range 5 {
		d.waits("at first", "john.doe", nowhere, 0)
	}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300} {
		failures := fmt.Sprintf("after %d failures", 5+i)
		want *= time.Second
		for range 3 {
			d.waits(failures, "john.doe", nowhere, want)
		}
		d.now = d.now.Add(want - time.Millisecond)
		d.waits(failures+", just before the end", "john.doe", nowhere, time.Millisecond)
		d.now = d.now.Add(time.Millisecond)
		d.waits(failures+", at the end", "john.doe", nowhere, 0)
	}
	d.waits("another account", "mary.major", nowhere, 0)
	for range 10_000 {
		d.now = d.now.Add(d.try("john.doe", nowhere))
	}
	assert.LessOrEqual(t, d.try("john.doe", nowhere), 5*time.Minute, "after 10,000 attempts")
	d.now = d.now.Add(3 * time.Hour)
	for range 5 {
		d.waits("after a quiet time", "john.doe", nowhere, 0)
	}
	d.now = d.now.Add(-time.Hour)
	d.waits("with a clock that is set back", "john.doe", nowhere, time.Second)
}

// TestSuccessForgetsTheAccountOnly holds that an account of one's own does not help to
// guess at others from one address.
func TestSuccessForgetsTheAccountOnly(t *testing.T) {
	d, guessed := newDoor(t, 100), 0
	for n := range 1000 {
		if own, err := d.Begin("own", nearby, d.now); err == nil {
			own.Succeeded()
		}
		if d.try(named(n), nearby) == 0 {
			guessed++
		}
	}
	assert.Equal(t, 600, guessed, "one address guessed")
	d.waits("from another address", "mary.major", afar, 0)
	for range 3 {
		for range 4 {
			d.try("john.doe", afar)
		}
		d.enter("john.doe", afar).Succeeded()
	}
}

// TestAttemptsCountInAdvance holds that concurrent attempts are limited like successive
// ones, and that an abandoned attempt counts for nothing.
func TestAttemptsCountInAdvance(t *testing.T) {
	d := newDoor(t, 100)
	var begun []*Attempt
	for range 5 {
		begun = append(begun, d.enter("john.doe", nearby))
	}
	d.waits("a sixth at a time", "john.doe", nearby, time.Second)
	for _, x := range begun {
		x.Abandoned()
	}
	assert.Zero(t, d.counted(), "entries are left of abandoned attempts")
	for range 5 {
		d.try("john.doe", nearby)
	}
	d.now = d.now.Add(time.Second)
	d.enter("john.doe", nearby).Abandoned()
	d.waits("after an abandoned attempt", "john.doe", nearby, 0)
}

// TestGuessesDoNotLockOutOthers holds actors/identity/DESIGN.md, "Failed sign-ins":
// who guesses at names keeps nobody else behind the same address from signing in.
func TestGuessesDoNotLockOutOthers(t *testing.T) {
	d := newDoor(t, 1000)
	for n := range 40 {
		d.try(named(n), nearby)
	}
	d.enter("john.doe", nearby).Succeeded()
	// Now the address is a known place of john.doe, whatever else comes from it.
	for n := range 10_000 {
		d.try(named(n), nearby)
		d.try("john.doe", afar)
	}
	assert.NotZero(t, d.try("mary.major", nearby), "after 10,000 failures the address does not wait")
	for range 3 {
		d.enter("john.doe", nearby).Succeeded()
	}
	assert.NotZero(t, d.try("john.doe", afar), "a sign-in from a known place has forgotten the failures from elsewhere")
	// The address gets four hashes a second.
	looked := 0
	for range 1000 {
		d.now = d.now.Add(10 * time.Millisecond)
		if d.try("mary.major", nearby) == 0 {
			looked++
			d.Forget("mary.major") // only the address bounds this
		}
	}
	assert.Equal(t, 40, looked, "in ten seconds")
}

// TestKnownPlaces holds that a place has the waits of an account, and what makes
// it known and unknown.
func TestKnownPlaces(t *testing.T) {
	d := newDoor(t, 100)
	d.enter("john.doe", nearby).Succeeded()
	d.enter("john.doe", netip.Addr{}).Succeeded() // makes no place known
	for range 5 {
		d.waits("in a known place", "john.doe", nearby, 0)
	}
	d.waits("in a known place after five failures", "john.doe", nearby, time.Second)
	assert.Zero(t, d.counted(), "failures in a known place count elsewhere")
	d.enter("john.doe", afar).Succeeded() // the account does not wait for the place
	d.now = d.now.Add(time.Second)
	d.enter("john.doe", nearby).Abandoned()
	d.enter("john.doe", nearby).Succeeded()
	for n := range 2 * placesMax {
		d.enter("john.doe", netip.AddrFrom4([4]byte{10, 0, 0, byte(n)})).Succeeded()
		d.enter("john.doe", nearby).Succeeded() // in use, so it stays
	}
	got := d.mu.places["john.doe"]
	assert.True(t, len(got) == placesMax && got[0].key == network(nearby), "places: got %v, want %d, the last one first", got, placesMax)
	d.Forget("john.doe")
	assert.Nil(t, d.mu.places["john.doe"], "after a new password: got the places")
}

// TestAttemptsAreBounded holds the size of the tables. An account that is tried again
// and again stays in a full table.
func TestAttemptsAreBounded(t *testing.T) {
	const size = 50
	d := newDoor(t, size)
	for i := range 2000 {
		d.try(named(i), netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
		d.now = d.now.Add(time.Second)
		if i%20 == 0 {
			d.try("john.doe", nearby)
		}
	}
	accounts, addresses := &d.mu.accounts, &d.mu.addresses
	assert.True(t, len(accounts.byKey) == size && accounts.order.Len() == size && len(addresses.byKey) == size && addresses.order.Len() == size,
		"got %d and %d accounts, %d and %d addresses, want %d", len(accounts.byKey), accounts.order.Len(), len(addresses.byKey), addresses.order.Len(), size)
	f, _ := accounts.at("john.doe", d.now)
	assert.GreaterOrEqual(t, f.count, 5, "an account that is tried again and again")
}

func TestNetwork(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7":              "192.0.2.7/32",
		"::ffff:192.0.2.7":       "192.0.2.7/32",
		"2001:db8:1:2:3:4:5:6":   "2001:db8:1:2::/64",
		"fe80::1%eth0":           "fe80::/64",
		"2001:db8:1:2:ffff::1":   "2001:db8:1:2::/64",
		"::1":                    "::/64",
		"2001:db8:1:3::":         "2001:db8:1:3::/64",
		"::ffff:255.255.255.255": "255.255.255.255/32",
	} {
		assert.Equal(t, want, network(netip.MustParseAddr(text)).String(), text)
	}
	assert.False(t, network(netip.Addr{}).IsValid(), "the unknown address has a network")
}
