package identity

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// violation is a promise of the package comment that a crash broke.
type violation string

// crashes runs creations and revocations with a crash after every number of
// surviving appends, and returns what was broken.
func crashes(t *testing.T, lie bool) (broken []violation, points int) {
	t.Helper()
	for survivors := range 4 {
		for _, confirmed := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				broken = append(broken, crashOnce(t, survivors, confirmed, lie)...)
			})
			points++
		}
	}
	return broken, points
}

// crashOnce starts with one old token, revokes it, creates another one and
// crashes. The appends of both are confirmed, or wait when the crash comes.
func crashOnce(t *testing.T, survivors int, confirmed, lie bool) (broken []violation) {
	m := newMemory()
	s := open(t, m, Options{})
	oldSecret, old := issued(t, s, Token, "john.doe", 0)
	m.lie = lie
	if !confirmed && !lie {
		m.holdBack()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	revoked := s.Revoke(ctx, Token, old.ID)
	// A canceled wait must not keep the next one from being appended.
	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	newSecret, c, created := s.CreateToken(ctx, CreateCredential{User: "john.doe"})

	after := open(t, m.crash(survivors), Options{})
	if _, err := after.Authenticate(Token, oldSecret); revoked == nil && err == nil {
		broken = append(broken, "an acknowledged revocation was undone")
	}
	if _, err := after.Authenticate(Token, newSecret); created == nil && err != nil {
		broken = append(broken, "a credential was lost whose secret was returned")
	}
	if created != nil && (newSecret != "" || c.ID != "") {
		broken = append(broken, "a secret was returned beside an error")
	}
	if !lie && (created == nil) != confirmed {
		broken = append(broken, "an answer came before the store's confirmation")
	}
	if !confirmed && !lie {
		m.confirm() // whatever still waits must get its answer
	}
	return broken
}

func TestCrashBreaksNoPromise(t *testing.T) {
	broken, points := crashes(t, false)
	if len(broken) != 0 {
		t.Errorf("%d crash points: got %d broken promises, want none: %q", points, len(broken), broken)
	}
}

// TestCrashControl plants the bug: a ledger that confirms before it is durable.
func TestCrashControl(t *testing.T) {
	if broken, points := crashes(t, true); len(broken) == 0 {
		t.Errorf("%d crash points of a lying ledger: got no broken promise, want some", points)
	}
}
