package identity

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"troupe/actors/failure"
)

var (
	someDay = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	nearby  = netip.MustParseAddr("192.0.2.7")
	afar    = netip.MustParseAddr("2001:db8::7")
)

// try begins an attempt and leaves it as failed. It returns the wait.
func try(t *testing.T, a *attempts, user UserID, from netip.Addr, now time.Time) time.Duration {
	t.Helper()
	_, err := a.begin(user, from, now)
	if err == nil {
		return 0
	}
	var late *failure.Error
	if !errors.As(err, &late) || !errors.Is(err, failure.ErrQuota) || late.Wait <= 0 {
		t.Fatalf("begin: got %v, want an error with a wait", err)
	}
	return late.Wait
}

// signIn begins an attempt and leaves it as succeeded.
func signIn(t *testing.T, a *attempts, user UserID, from netip.Addr, now time.Time) {
	t.Helper()
	x, err := a.begin(user, from, now)
	if err != nil {
		t.Fatalf("%s from %s: %v", user, from, err)
	}
	x.succeeded()
}

// TestAccountBacksOff holds the growing wait of an account: it is bounded, a quiet time
// brings all attempts back, and neither an attempt which came too soon nor a clock
// that is set back makes it longer.
func TestAccountBacksOff(t *testing.T) {
	a, now := newAttempts(100), someDay
	for i := range 5 {
		if wait := try(t, a, "john.doe", netip.Addr{}, now); wait != 0 {
			t.Fatalf("attempt %d waits %v, want none of the first five to wait", i, wait)
		}
	}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300} {
		want *= time.Second
		for range 3 {
			if wait := try(t, a, "john.doe", netip.Addr{}, now); wait != want {
				t.Errorf("after %d failures: got %v to wait, want %v", 5+i, wait, want)
			}
		}
		if wait := try(t, a, "john.doe", netip.Addr{}, now.Add(want-time.Millisecond)); wait != time.Millisecond {
			t.Errorf("just before the end: got %v, want 1ms", wait)
		}
		now = now.Add(want)
		if wait := try(t, a, "john.doe", netip.Addr{}, now); wait != 0 {
			t.Errorf("after %d failures and %v: it still waits %v", 5+i, want, wait)
		}
	}
	if wait := try(t, a, "mary.major", netip.Addr{}, now); wait != 0 {
		t.Errorf("another account waits %v", wait)
	}
	for range 10_000 {
		now = now.Add(try(t, a, "john.doe", netip.Addr{}, now))
	}
	if wait := try(t, a, "john.doe", netip.Addr{}, now); wait > 5*time.Minute {
		t.Errorf("after 10,000 attempts: got %v to wait, want at most 5 minutes", wait)
	}
	now = now.Add(3 * time.Hour)
	for i := range 5 {
		if wait := try(t, a, "john.doe", netip.Addr{}, now); wait != 0 {
			t.Errorf("attempt %d after a quiet time waits %v", i, wait)
		}
	}
	if wait := try(t, a, "john.doe", netip.Addr{}, now.Add(-time.Hour)); wait != time.Second {
		t.Errorf("a clock that is set back: got %v to wait, want 1s", wait)
	}
}

func TestSuccessForgetsTheAccountOnly(t *testing.T) {
	a, now := newAttempts(100), someDay
	// One account of one's own must not help to guess at others from one place.
	guessed := 0
	for i := range 1000 {
		if own, err := a.begin("own", nearby, now); err == nil {
			own.succeeded()
		}
		if try(t, a, UserID(fmt.Sprintf("user%d", i)), nearby, now) == 0 {
			guessed++
		}
	}
	if guessed != 600 {
		t.Errorf("one address guessed at %d accounts at once, want 600", guessed)
	}
	if wait := try(t, a, "mary.major", afar, now); wait != 0 {
		t.Errorf("another address waits %v", wait)
	}
	for range 3 {
		for range 4 {
			try(t, a, "john.doe", afar, now)
		}
		signIn(t, a, "john.doe", afar, now)
	}
}

// TestAttemptsCountInAdvance holds that concurrent attempts are limited like successive
// ones.
func TestAttemptsCountInAdvance(t *testing.T) {
	a := newAttempts(100)
	var begun []*attempt
	for range 1000 {
		if x, err := a.begin("john.doe", nearby, someDay); err == nil {
			begun = append(begun, x)
		}
	}
	if len(begun) != 5 {
		t.Fatalf("%d attempts at a time, want 5", len(begun))
	}
	for _, x := range begun {
		x.abandoned()
	}
	if n := len(a.mu.accounts.byKey) + len(a.mu.addresses.byKey); n != 0 {
		t.Errorf("%d entries are left of attempts that nobody looked at", n)
	}
	// What was abandoned while an account waits does not make it wait longer.
	for range 5 {
		try(t, a, "john.doe", nearby, someDay)
	}
	later := someDay.Add(time.Second)
	x, err := a.begin("john.doe", nearby, later)
	if err != nil {
		t.Fatal(err)
	}
	x.abandoned()
	if wait := try(t, a, "john.doe", nearby, later); wait != 0 {
		t.Errorf("after an abandoned attempt: got %v to wait, want none", wait)
	}
}

// TestGuessesDoNotLockOutOthers holds actors/identity/DESIGN.md, "Failed sign-ins":
// who guesses at names keeps nobody else behind the same address from signing in.
func TestGuessesDoNotLockOutOthers(t *testing.T) {
	a, now := newAttempts(1000), someDay
	for n := range 40 {
		try(t, a, UserID(fmt.Sprintf("wrong%d", n)), nearby, now)
	}
	signIn(t, a, "john.doe", nearby, now)
	// Whatever follows, and by whatever names, john.doe is at home there.
	for n := range 10_000 {
		try(t, a, UserID(fmt.Sprintf("wrong%d", n)), nearby, now)
		try(t, a, "john.doe", afar, now)
	}
	if try(t, a, "mary.major", nearby, now) == 0 {
		t.Error("10,000 failures: the address costs as much as it likes")
	}
	for range 3 {
		signIn(t, a, "john.doe", nearby, now)
	}
	if try(t, a, "john.doe", afar, now) == 0 {
		t.Error("a sign-in at home has forgotten what was guessed elsewhere")
	}
	// Four hashes a second, and no more.
	looked := 0
	for range 1000 {
		now = now.Add(10 * time.Millisecond)
		if try(t, a, "mary.major", nearby, now) == 0 {
			looked++
			a.forget("mary.major") // only the address bounds this
		}
	}
	if looked != 40 {
		t.Errorf("in ten seconds %d attempts of the address were looked at, want 40", looked)
	}
}

// TestKnownPlaces holds that a place has the waits of an account, and what makes
// it known and unknown.
func TestKnownPlaces(t *testing.T) {
	a, now := newAttempts(100), someDay
	signIn(t, a, "john.doe", nearby, now)
	signIn(t, a, "john.doe", netip.Addr{}, now) // no place
	for i := range 5 {
		if wait := try(t, a, "john.doe", nearby, now); wait != 0 {
			t.Fatalf("attempt %d in a known place waits %v", i, wait)
		}
	}
	if wait := try(t, a, "john.doe", nearby, now); wait != time.Second {
		t.Errorf("after five failures: got %v to wait, want 1s", wait)
	}
	if n := len(a.mu.accounts.byKey) + len(a.mu.addresses.byKey); n != 0 {
		t.Errorf("failures in a known place count elsewhere: %d entries", n)
	}
	signIn(t, a, "john.doe", afar, now) // the account does not wait for the place
	now = now.Add(time.Second)
	x, err := a.begin("john.doe", nearby, now)
	if err != nil {
		t.Fatal(err)
	}
	x.abandoned()
	signIn(t, a, "john.doe", nearby, now)
	for n := range 2 * placesMax {
		signIn(t, a, "john.doe", netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}), now)
		signIn(t, a, "john.doe", nearby, now) // in use, so it stays
	}
	if got := a.mu.places["john.doe"]; len(got) != placesMax || got[0].key != network(nearby) {
		t.Errorf("places: got %v, want %d, the last one first", got, placesMax)
	}
	a.forget("john.doe")
	if got := a.mu.places["john.doe"]; got != nil {
		t.Errorf("after a new password: got the places %v, want none", got)
	}
}

// TestAttemptsAreBounded holds the size of the tables, and that who keeps trying
// is not forgotten for others.
func TestAttemptsAreBounded(t *testing.T) {
	const size = 50
	a, now := newAttempts(size), someDay
	for i := range 2000 {
		try(t, a, UserID(fmt.Sprintf("user%d", i)), netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), now)
		now = now.Add(time.Second)
		if i%20 == 0 {
			try(t, a, "john.doe", nearby, now)
		}
	}
	accounts, addresses := &a.mu.accounts, &a.mu.addresses
	if len(accounts.byKey) != size || accounts.order.Len() != size || len(addresses.byKey) != size || addresses.order.Len() != size {
		t.Errorf("got %d and %d accounts, %d and %d addresses, want %d", len(accounts.byKey), accounts.order.Len(), len(addresses.byKey), addresses.order.Len(), size)
	}
	if f, _ := accounts.at("john.doe", now); f.count < 5 {
		t.Errorf("who keeps trying: got %d failures, want them remembered", f.count)
	}
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
		if got := network(netip.MustParseAddr(text)); got.String() != want {
			t.Errorf("%s: got %v, want %s", text, got, want)
		}
	}
	if network(netip.Addr{}).IsValid() {
		t.Error("the unknown address has a network")
	}
}
