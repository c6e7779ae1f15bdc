package identity

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
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
		assert.Equal(t, lie, len(broken) != 0, "the ledger lies, %q", broken)
	}
}

// crashOnce starts with one old token, revokes it, creates another one, crashes, and
// returns which promises of the package comment were broken. The appends of both are
// confirmed, or wait when the crash comes.
func crashOnce(t *testing.T, survivors int, confirmed, lie bool) (broken []string) {
	want := func(kept bool, promise string) {
		if !kept {
			broken = append(broken, promise)
		}
	}
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
	refuses(t, s, Token, oldSecret)
	// A canceled wait must not keep the next one from being appended.
	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	newSecret, c, created := s.Create(ctx, Token, CreateCredential{User: "john.doe"})

	after := open(t, m.crash(survivors), Options{})
	_, err := after.Authenticate(Token, oldSecret)
	want(revoked != nil || err != nil, "an acknowledged revocation was undone")
	_, err = after.Authenticate(Token, newSecret)
	want(created != nil || err == nil, "a credential was lost whose secret was returned")
	want(created == nil || newSecret == "" && c.ID == "" && errors.Is(created, context.DeadlineExceeded), "a secret was returned beside an error")
	want(lie || (created == nil) == confirmed && (revoked == nil) == confirmed, "an answer came before the store's confirmation")
	if !confirmed && !lie {
		want(len(credentialsOf(s, Token)) == 1, "a credential was listed before it was durable")
		m.confirm()
		list := credentialsOf(s, Token)
		want(len(list) == 2, "a credential that nobody has the secret of is not listed")
		mustRevoke(t, s, list[1])
	}
	return broken
}
