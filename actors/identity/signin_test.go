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
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity/password"
)

const oak = "an old oak, 1843"

func mustSet(t *testing.T, s *Service, user UserID, password string) {
	t.Helper()
	require.NoError(t, s.SetPassword(t.Context(), user, password), "SetPassword of %s", user)
}

func signedIn(t *testing.T, s *Service, user UserID, password string) string {
	t.Helper()
	secret, p, err := s.SignIn(t.Context(), user, password, nearby)
	require.True(t, err == nil && p.ID == user, "SignIn as %s: got %+v, %v", user, p, err)
	return secret
}

// turnedAway checks that a sign-in fails, without any detail.
func turnedAway(t *testing.T, s *Service, user UserID, password string, want error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a sign-in that should not wait for the store
	defer cancel()
	secret, p, err := s.SignIn(ctx, user, password, nearby)
	assert.True(t, secret == "" && p == nil && errors.Is(err, want), "SignIn as %.50q: got %q, %+v, %v, want %v", user, secret, p, err, want)
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
				_, _, err := s.SignIn(t.Context(), user, password, c.address)
				require.ErrorIs(t, err, want, "attempt %d", n)
			}
			assert.Equal(t, c.lines, strings.Count(log.String(), "\n"), "the log, %.500s", log.String())
			m := s.Metrics()
			assert.True(t, m.SignInsFailed == uint64(c.looked) && m.SignInsRefused == uint64(1000-c.looked), "metrics: got %+v", m)
			got := s.attempts.Accounts()
			assert.False(t, got > c.lines && got > 1, "got %d accounts in the table", got)
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
		assert.ErrorIs(t, s.SetPassword(t.Context(), "john.doe", oak), failure.ErrBusy, "SetPassword")
		goes()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, _, err := s.SignIn(ctx, "john.doe", oak, nearby)
		assert.ErrorIs(t, err, context.Canceled, "a caller who has gone")
		close(leave)
		others.Wait()
		signedIn(t, s, "john.doe", oak)
	})
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
			require.ErrorIs(t, s.SetPassword(ctx, "john.doe", "another oak"), context.DeadlineExceeded)
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
			want := max(0, 2-survivors) * rowsMax
			assert.Equal(t, want, live, "%d survivors", survivors)
			signedIn(t, after, "john.doe", valid)
			m.confirm()
		})
	}
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
			assert.NoError(t, s.SetPassword(t.Context(), "john.doe", passwordOf(n+1)), "SetPassword")
			current.Store(int64(n + 1))
		}
	})
	wait.Wait()
	mustSet(t, s, "john.doe", "the last oak")
	for _, c := range credentialsOf(s, Session) {
		assert.False(t, c.Revoked.IsZero(), "the session %s has outlived a change of the password", c.ID)
	}
	signedIn(t, s, "john.doe", "the last oak")
}
