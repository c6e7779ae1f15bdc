package identity

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestCrashBreaksNoPromise runs creations and revocations with a crash after every
// number of surviving appends. The control plants the bug: a ledger that confirms
// before it is durable.
func TestCrashBreaksNoPromise(t *testing.T) {
	for _, lie := range []bool{false, true} {
		var broken []string
		for survivors := range 4 {
			for _, confirmed := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					broken = append(broken, crashOnce(t, survivors, confirmed, lie)...)
				})
			}
		}
		if (len(broken) != 0) != lie {
			t.Errorf("the ledger lies: %v, broken promises: %q", lie, broken)
		}
	}
}

// crashOnce starts with one old token, revokes it, creates another one, crashes, and
// returns what promises of the package comment were broken. The appends of both are
// confirmed, or wait when the crash comes.
func crashOnce(t *testing.T, survivors int, confirmed, lie bool) (broken []string) {
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
