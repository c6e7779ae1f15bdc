package identity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/failure"
	"troupe/actors/identity/password"
)

const oak = "an old oak, 1843"

// mustSet gives a user a password.
func mustSet(t *testing.T, s *Service, user UserID, password string) {
	t.Helper()
	if err := s.SetPassword(t.Context(), user, password); err != nil {
		t.Fatalf("SetPassword of %s: %v", user, err)
	}
}

// signedIn signs in with a password that must be right.
func signedIn(t *testing.T, s *Service, user UserID, password string) string {
	t.Helper()
	secret, p, err := s.SignIn(t.Context(), user, password, nearby)
	if err != nil || p.ID != user {
		t.Fatalf("SignIn as %s: got %+v, %v", user, p, err)
	}
	return secret
}

// turnedAway checks that a sign-in fails, without any detail.
func turnedAway(t *testing.T, s *Service, user UserID, password string, want error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a sign-in that should not wait for the store
	defer cancel()
	if secret, p, err := s.SignIn(ctx, user, password, nearby); secret != "" || p != nil || !errors.Is(err, want) {
		t.Errorf("SignIn as %.50q: got %q, %+v, %v, want %v", user, secret, p, err, want)
	}
}

func TestSignIn(t *testing.T) {
	inBubble(t, newMemory(), Options{}, func(t *testing.T, s *Service) {
		mustSet(t, s, "john.doe", oak)
		mustSet(t, s, "mary.major", "Café crème, twice")
		first, second := signedIn(t, s, "john.doe", oak), signedIn(t, s, "john.doe", oak)
		if first == second || !credentialForm.MatchString(first) {
			t.Errorf("got the sessions %q and %q, want two new ones", first, second)
		}
		accepts(t, s, Session, first, "john.doe")
		accepts(t, s, Session, second, "john.doe")
		refuses(t, s, Token, first)
		signedIn(t, s, "mary.major", "Cafe\u0301 cre\u0300me, twice")
		if list := credentialsOf(s, Session); len(list) != 3 || list[0].Note != "signed in from 192.0.2.7" {
			t.Errorf("sessions: got %+v", list)
		}
		if m := s.Metrics(); m.SignIns != 3 || m.SignInsFailed != 0 || m.SignInsRefused != 0 {
			t.Errorf("metrics: got %+v", m)
		}
		secret, _, err := s.SignIn(t.Context(), "john.doe", oak, netip.Addr{})
		if err != nil {
			t.Errorf("from an unknown address: %v", err)
		}
		accepts(t, s, Session, secret, "john.doe")
	})
}

// TestSignInIsRefusedAlike holds that no cause of a refusal can be told from
// another: the same error and the same work.
func TestSignInIsRefusedAlike(t *testing.T) {
	with := parse(t, strings.Replace(staff, "disabled: true", "disabled: false", 1))
	o := Options{Directory: with}
	inBubble(t, newMemory(), o, func(t *testing.T, s *Service) {
		mustSet(t, s, "john.doe", oak)
		mustSet(t, s, "gone.girl", oak)
		signedIn(t, s, "gone.girl", oak)
		s.SetDirectory(parse(t, staff)) // gone.girl is disabled

		type work struct {
			cost        password.Cost
			salt, bytes int
		}
		var done []work
		s.hasher.Derive = func(_ string, salt []byte, cost password.Cost, bytes int) []byte {
			done = append(done, work{cost, len(salt), bytes})
			return password.Derive("x", salt, cost, bytes)
		}
		for cause, try := range map[string]struct {
			user     UserID
			password string
		}{
			"a wrong password":               {"john.doe", oak + "x"},
			"another case":                   {"john.doe", strings.ToUpper(oak)},
			"a blank more":                   {"john.doe", oak + " "},
			"no password":                    {"john.doe", ""},
			"a user without a password":      {"mary.major", oak},
			"no password, and none is asked": {"mary.major", ""},
			"a disabled user":                {"gone.girl", oak},
			"an unknown user":                {"nobody", oak},
			"another case of the user":       {"John.Doe", oak},
		} {
			done = nil
			_, _, err := s.SignIn(t.Context(), try.user, try.password, netip.Addr{})
			if want := fmt.Sprintf("sign in %q: %v", try.user, failure.ErrUnauthorized); !errors.Is(err, failure.ErrUnauthorized) || err.Error() != want {
				t.Errorf("%s: got %v, want %s", cause, err, want)
			}
			if len(done) != 1 || done[0] != (work{cheap, password.SaltBytes, password.HashBytes}) {
				t.Errorf("%s: got the work %+v, want that of one hash", cause, done)
			}
		}
		// What can be no name or no password needs no work.
		done = nil
		for _, user := range []UserID{"", "john doe", "-x", "système", UserID(strings.Repeat("x", 129)), "john.doe\n", "\xff"} {
			turnedAway(t, s, user, oak, failure.ErrUnauthorized)
		}
		pass(time.Hour) // john.doe would have to wait
		for _, password := range []string{strings.Repeat("x", 257), strings.Repeat("x", 1<<20), "\xff"} {
			turnedAway(t, s, "john.doe", password, failure.ErrUnauthorized)
		}
		if len(done) != 0 {
			t.Errorf("got %d hashes for what can be nobody's", len(done))
		}
		if m := s.Metrics(); m.SignInsFailed != 9+7+3 || m.SignIns != 1 {
			t.Errorf("metrics: got %+v", m)
		}
	})
}

// TestSignInBacksOff holds the limits through the service, with its clock.
func TestSignInBacksOff(t *testing.T) {
	inBubble(t, newMemory(), Options{}, func(t *testing.T, s *Service) {
		wrong := func(user UserID, count int) {
			t.Helper()
			for range count {
				turnedAway(t, s, user, "wrong", failure.ErrUnauthorized)
			}
		}
		mustSet(t, s, "john.doe", oak)
		wrong("john.doe", 5)
		hashes, inner := 0, s.hasher.Derive
		s.hasher.Derive = func(p string, salt []byte, cost password.Cost, bytes int) []byte {
			hashes++
			return inner(p, salt, cost, bytes)
		}
		// Even the right password is not looked at, and unknown users wait as well.
		turnedAway(t, s, "john.doe", oak, failure.ErrQuota)
		if hashes != 0 || s.Metrics().SignInsRefused != 1 {
			t.Errorf("got %d hashes and %+v", hashes, s.Metrics())
		}
		wrong("nobody", 5)
		turnedAway(t, s, "nobody", oak, failure.ErrQuota)
		pass(time.Second)
		signedIn(t, s, "john.doe", oak)
		wrong("john.doe", 4) // the success has made the account new
		signedIn(t, s, "john.doe", oak)
		// A new password does as well.
		wrong("mary.major", 5)
		turnedAway(t, s, "mary.major", "wrong", failure.ErrQuota)
		mustSet(t, s, "mary.major", oak)
		signedIn(t, s, "mary.major", oak)
	})
}

// TestImpossibleSignInsBackOff holds that what can be no name or no password
// counts as a failure of the address, takes no memory for each name, and that
// whoever sends it does not fill the log.
func TestImpossibleSignInsBackOff(t *testing.T) {
	nameless := func(n int) (UserID, string) { return UserID(fmt.Sprintf("no body %d", n)), oak }
	endless := func(n int) (UserID, string) { return UserID(fmt.Sprintf("user.%d", n)), strings.Repeat("x", 257) }
	for _, c := range []struct {
		line    string
		try     func(n int) (UserID, string)
		address netip.Addr
		looked  int // at so many, the others have to wait
		lines   int // in the log
	}{
		{"names", nameless, nearby, 600, 0},
		{"passwords", endless, nearby, 600, 600},
		{"names and passwords", func(n int) (UserID, string) { u, _ := nameless(n); _, p := endless(n); return u, p }, nearby, 600, 0},
		{"names, from nowhere", nameless, netip.Addr{}, 5, 0},
		{"one password of one account", func(int) (UserID, string) { return endless(0) }, nearby, 5, 5},
	} {
		t.Run(c.line, func(t *testing.T) {
			var log bytes.Buffer
			o := Options{Log: zerolog.New(&log).Level(zerolog.InfoLevel), Clock: func() time.Time { return someDay }}
			s := open(t, newMemory(), o)
			for n := range 1000 {
				want := failure.ErrUnauthorized
				if n >= c.looked {
					want = failure.ErrQuota
				}
				user, password := c.try(n)
				if _, _, err := s.SignIn(t.Context(), user, password, c.address); !errors.Is(err, want) {
					t.Fatalf("attempt %d: got %v, want %v", n, err, want)
				}
			}
			if got := strings.Count(log.String(), "\n"); got != c.lines {
				t.Errorf("the log has %d lines, want %d: %.500s", got, c.lines, log.String())
			}
			if m := s.Metrics(); m.SignInsFailed != uint64(c.looked) || m.SignInsRefused != uint64(1000-c.looked) {
				t.Errorf("metrics: got %+v", m)
			}
			if got := s.attempts.Accounts(); got > c.lines && got > 1 {
				t.Errorf("got %d accounts in the table", got)
			}
		})
	}
}

// TestBusyDoesNotCount holds that an attempt without a free hash slot is not counted.
func TestBusyDoesNotCount(t *testing.T) {
	inBubble(t, newMemory(), Options{HashesMax: 1, HashesWaitingMax: 1}, func(t *testing.T, s *Service) {
		mustSet(t, s, "john.doe", oak)
		leave, inner := make(chan struct{}), s.hasher.Derive
		s.hasher.Derive = func(p string, salt []byte, cost password.Cost, bytes int) []byte {
			<-leave
			return inner(p, salt, cost, bytes)
		}
		waiting, goes := context.WithCancel(t.Context())
		var others sync.WaitGroup
		others.Go(func() { _, _ = s.hasher.Hash(t.Context(), hashHolder{user: "mary.major"}, oak) })
		synctest.Wait()
		others.Go(func() { _, _ = s.hasher.Hash(waiting, hashHolder{user: "gone.girl"}, oak) })
		synctest.Wait()
		for range 50 {
			turnedAway(t, s, "john.doe", oak, failure.ErrBusy)
		}
		if err := s.SetPassword(t.Context(), "john.doe", oak); !errors.Is(err, failure.ErrBusy) {
			t.Errorf("SetPassword: got %v, want ErrBusy", err)
		}
		goes()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, _, err := s.SignIn(ctx, "john.doe", oak, nearby); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller who has gone: got %v", err)
		}
		close(leave)
		others.Wait()
		signedIn(t, s, "john.doe", oak)
	})
}

func TestSetPassword(t *testing.T) {
	s := open(t, newMemory(), Options{})
	for _, c := range []struct {
		user     UserID
		password string
		want     error
	}{{"nobody", oak, failure.ErrNotFound}, {"gone.girl", oak, failure.ErrNotFound}, {"", oak, failure.ErrNotFound}, {"john.doe", "short", failure.ErrInvalid}} {
		if err := s.SetPassword(t.Context(), c.user, c.password); !errors.Is(err, c.want) {
			t.Errorf("the password %q of %q: got %v, want %v", c.password, c.user, err, c.want)
		}
	}
	mustSet(t, s, "john.doe", oak)
	mustSet(t, s, "mary.major", oak)
	token, _ := issued(t, s, Token, "john.doe", 0)
	made, _ := issued(t, s, Session, "john.doe", 0)
	session, others := signedIn(t, s, "john.doe", oak), signedIn(t, s, "mary.major", oak)

	mustSet(t, s, "john.doe", "another oak")
	refuses(t, s, Session, session)
	refuses(t, s, Session, made)
	accepts(t, s, Session, others, "mary.major")
	accepts(t, s, Token, token, "john.doe")
	turnedAway(t, s, "john.doe", oak, failure.ErrUnauthorized)
	signedIn(t, s, "john.doe", "another oak")
}

// TestManySessionsEnd holds a change that needs more than one append, and that
// a crash between them ends sessions, no more.
func TestManySessionsEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("8,000 sessions, one after the other")
	}
	for survivors := range 4 {
		synctest.Test(t, func(t *testing.T) {
			m := newMemory()
			s := open(t, m, Options{SessionsPerUserMax: 2 * rowsMax})
			mustSet(t, s, "john.doe", oak)
			secrets := make([]string, 2*rowsMax)
			for i := range secrets {
				secrets[i], _ = issued(t, s, Session, "john.doe", 0)
			}
			m.holdBack()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := s.SetPassword(ctx, "john.doe", "another oak"); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("SetPassword without a confirmation: got %v", err)
			}
			for _, secret := range secrets {
				refuses(t, s, Session, secret)
			}
			after := open(t, m.crash(survivors), Options{})
			live := 0
			for _, secret := range secrets {
				if _, err := after.Authenticate(Session, secret); err == nil {
					live++
				}
			}
			valid := oak
			if survivors == 3 {
				valid = "another oak"
			}
			if want := max(0, 2-survivors) * rowsMax; live != want {
				t.Errorf("%d survivors: got %d sessions, want %d", survivors, live, want)
			}
			signedIn(t, after, "john.doe", valid)
			m.confirm()
		})
	}
}

// TestOldPasswordDuringAChange holds that from the moment of a change on nobody
// gets a session by the old password, confirmed or not, and that a session which
// is being made then ends with the others.
func TestOldPasswordDuringAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := open(t, m, Options{})
		mustSet(t, s, "john.doe", oak)
		m.holdBack()
		before := make(chan string, 1)
		go func() {
			secret, _, err := s.SignIn(context.Background(), "john.doe", oak, nearby)
			if err != nil {
				t.Errorf("a sign-in before the change: %v", err)
			}
			before <- secret
		}()
		synctest.Wait() // the session is appended
		changed := make(chan error, 1)
		go func() { changed <- s.SetPassword(context.Background(), "john.doe", "another oak") }()
		synctest.Wait() // the change is appended
		turnedAway(t, s, "john.doe", oak, failure.ErrUnauthorized)
		turnedAway(t, s, "john.doe", "another oak", failure.ErrUnauthorized)
		m.confirm()
		if err := <-changed; err != nil {
			t.Errorf("SetPassword: %v", err)
		}
		session := <-before
		refuses(t, s, Session, session)
		refuses(t, open(t, m.crash(0), Options{}), Session, session)
		turnedAway(t, s, "john.doe", oak, failure.ErrUnauthorized)
		signedIn(t, s, "john.doe", "another oak")
	})
}

// TestProofIsAskedAgain holds that a password which changes while it is being
// looked at does not sign in.
func TestProofIsAskedAgain(t *testing.T) {
	s := open(t, newMemory(), Options{HashesMax: 2})
	mustSet(t, s, "john.doe", oak)
	var changing atomic.Bool
	s.hasher.Derive = func(p string, salt []byte, cost password.Cost, bytes int) []byte {
		if p == oak && changing.CompareAndSwap(false, true) {
			mustSet(t, s, "john.doe", "another oak")
		}
		return password.Derive(p, salt, cost, bytes)
	}
	turnedAway(t, s, "john.doe", oak, failure.ErrUnauthorized)
	if list := credentialsOf(s, Session); len(list) != 0 {
		t.Errorf("sessions: got %+v, want none", list)
	}
	// The same for a user who is disabled meanwhile.
	changing.Store(false)
	s.hasher.Derive = func(p string, salt []byte, cost password.Cost, bytes int) []byte {
		s.SetDirectory(parse(t, staffJohnDisabled))
		return password.Derive(p, salt, cost, bytes)
	}
	turnedAway(t, s, "john.doe", "another oak", failure.ErrUnauthorized)
}

// TestFailedChange holds that a change which the store refuses changes nothing
// about the password, and never brings a session back.
func TestFailedChange(t *testing.T) {
	m := newMemory()
	s := open(t, m, Options{})
	mustSet(t, s, "john.doe", oak)
	session := signedIn(t, s, "john.doe", oak)
	full := errors.New("disk is full")
	m.failWith(full)
	if err := s.SetPassword(t.Context(), "john.doe", "another oak"); !errors.Is(err, full) {
		t.Errorf("SetPassword: got %v, want that of the store", err)
	}
	turnedAway(t, s, "john.doe", oak, full)
	m.failWith(nil)
	refuses(t, s, Session, session)
	turnedAway(t, s, "john.doe", "another oak", failure.ErrUnauthorized)
	signedIn(t, s, "john.doe", oak)
	// The end of the session was not stored. Setting the password again does it.
	accepts(t, open(t, m.crash(0), Options{}), Session, session, "john.doe")
	mustSet(t, s, "john.doe", "another oak")
	refuses(t, open(t, m.crash(0), Options{}), Session, session)
}

func TestSessionsOfSignInsEnd(t *testing.T) {
	s := open(t, newMemory(), Options{})
	mustSet(t, s, "john.doe", oak)
	session := signedIn(t, s, "john.doe", oak)
	token, _ := issued(t, s, Token, "john.doe", 0)
	refused := func(texts ...string) {
		t.Helper()
		for _, text := range texts {
			if err := s.SignOut(t.Context(), text); !errors.Is(err, failure.ErrUnauthorized) {
				t.Errorf("SignOut of %q: got %v, want ErrUnauthorized", text, err)
			}
		}
	}
	refused(session[:idChars], session[:len(session)-1], changeAt(session, len(session)-1), "", strings.Repeat("x", len(session)), token)
	accepts(t, s, Token, token, "john.doe")
	accepts(t, s, Session, session, "john.doe")
	if err := s.SignOut(t.Context(), session); err != nil {
		t.Errorf("SignOut: %v", err)
	}
	refuses(t, s, Session, session)
	refused(session)
}

// TestConcurrentSignIns has sign-ins, sign-outs and changes of passwords at once.
// It is mostly for the race detector; at the end no session of an older password
// may be left.
func TestConcurrentSignIns(t *testing.T) {
	s := open(t, newMemory(), Options{HashesMax: 4, HashesWaitingMax: 1000})
	passwordOf := func(n int) string { return fmt.Sprintf("oak number %d", n) }
	mustSet(t, s, "john.doe", passwordOf(0))
	var current atomic.Int64
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			for range 100 {
				session, _, err := s.SignIn(t.Context(), "john.doe", passwordOf(int(current.Load())), netip.Addr{})
				switch {
				case err == nil:
					_, _ = s.Authenticate(Session, session) // it may have ended already
				case !errors.Is(err, failure.ErrUnauthorized) && !errors.Is(err, failure.ErrQuota):
					t.Errorf("SignIn: %v", err)
				}
			}
		})
	}
	wait.Go(func() {
		for n := range 50 {
			if err := s.SetPassword(t.Context(), "john.doe", passwordOf(n+1)); err != nil {
				t.Errorf("SetPassword: %v", err)
			}
			current.Store(int64(n + 1))
		}
	})
	wait.Wait()
	mustSet(t, s, "john.doe", "the last oak")
	for _, c := range credentialsOf(s, Session) {
		if c.Revoked.IsZero() {
			t.Errorf("the session %s has outlived a change of the password", c.ID)
		}
	}
	signedIn(t, s, "john.doe", "the last oak")
}
