package identity

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/persistence"
)

// credentialForm is the text form of gateway/INTERFACE.md, "Credentials".
var credentialForm = regexp.MustCompile(`^[A-Za-z0-9._-]{43,}$`)

func TestCredentialForm(t *testing.T) {
	inBubble(t, newMemory(), Options{}, func(t *testing.T, s *Service) {
		for _, kind := range []Kind{Token, Session} {
			secret, c := issued(t, s, kind, "john.doe", 0)
			assert.True(t, credentialForm.MatchString(secret), "%v: %q is not of the form %v", kind, secret, credentialForm)
			id, rest, found := strings.Cut(secret, ".")
			assert.True(t, found && id == c.ID && len(id) >= 12 && len(rest) == 43, "%v %v %v %v", kind, id, len(rest), c.ID)
			assert.False(t, strings.HasPrefix(c.ID, "-"), "id %q looks like a flag", c.ID)
		}
	})
}

// presented is a credential that a test changes before it is used.
type presented struct {
	*testing.T
	*Service
	store  *memory
	behind time.Duration // of the clock
	secret string
	as     Kind
	Credential
}

func (p *presented) revoke()                 { mustRevoke(p.T, p.Service, p.Credential) }
func (p *presented) change(at int)           { p.secret = changeAt(p.secret, at) }
func (p *presented) directory(source string) { p.SetDirectory(parse(p.T, source)); pass(time.Second) }

// use authenticates every hour for a while.
func (p *presented) use(d time.Duration) {
	p.Helper()
	for range int(d / time.Hour) {
		pass(time.Hour)
		accepts(p.T, p.Service, p.Kind, p.secret, "john.doe")
	}
}

// crash goes on with what was durable a minute later.
func (p *presented) crash() {
	pass(time.Minute)
	p.Service = open(p.T, p.store.crash(0), Options{})
}

func TestAuthenticate(t *testing.T) {
	for _, test := range []struct {
		name  string
		kind  Kind
		spoil func(p *presented)
		want  bool
	}{
		{"a new token signs in", Token, func(*presented) {}, true},
		{"a new session signs in", Session, func(*presented) {}, true},
		{"a token is no session", Token, func(p *presented) { p.as = Session }, false},
		{"a session is no token", Session, func(p *presented) { p.as = Token }, false},
		{"a token is no credential of no kind", Token, func(p *presented) { p.as = 0 }, false},
		{"a token is one of two kinds", Token, func(p *presented) { p.as = Token | Session }, true},
		{"a session is one of two kinds", Session, func(p *presented) { p.as = Token | Session }, true},
		{"an empty text is refused", Token, func(p *presented) { p.secret = "" }, false},
		{"an unknown id is refused", Token, func(p *presented) { p.secret = "tok_aaaaaaaaaaaaaaaa" + p.secret[idChars:] }, false},
		{"a wrong last character is refused", Token, func(p *presented) { p.change(len(p.secret) - 1) }, false},
		{"a wrong first character of the secret is refused", Token, func(p *presented) { p.change(idChars + 1) }, false},
		{"another separator is refused", Token, func(p *presented) { p.change(idChars) }, false},
		{"a character too many is refused", Token, func(p *presented) { p.secret += "A" }, false},
		{"a character too few is refused", Token, func(p *presented) { p.secret = p.secret[:len(p.secret)-1] }, false},
		{"a megabyte is refused", Token, func(p *presented) { p.secret += strings.Repeat("A", 1<<20) }, false},
		{"a revoked token is refused", Token, (*presented).revoke, false},
		{"a revoked session is refused", Session, (*presented).revoke, false},
		{"a clock that is set back does not undo a revocation", Token, func(p *presented) { p.revoke(); p.behind = time.Hour }, false},
		{"a last use that is stored later does not undo a revocation", Token, func(p *presented) { p.use(time.Hour); p.revoke(); p.crash() }, false},
		{"a token outlives every session", Token, func(*presented) { pass(8 * 24 * time.Hour) }, true},
		{"a session works until just before the idle limit", Session, func(*presented) { pass(12*time.Hour - time.Millisecond) }, true},
		{"a session ends at the idle limit", Session, func(*presented) { pass(12 * time.Hour) }, false},
		{"a session in use lives past the idle limit", Session, func(p *presented) { p.use(48 * time.Hour) }, true},
		{"a session in use ends at the absolute limit", Session, func(p *presented) { p.use(7*24*time.Hour - time.Hour); pass(time.Hour) }, false},
		{"a user who is disabled is refused at once", Token, func(p *presented) { p.SetDirectory(parse(p.T, staffJohnDisabled)) }, false},
		{"a user who is gone is refused at once", Session, func(p *presented) { p.SetDirectory(parse(p.T, staffWithoutJohn)) }, false},
		{"a user who is renamed is refused at once", Token, func(p *presented) { p.SetDirectory(parse(p.T, staffJohnRenamed)) }, false},
		{"without any directory everybody is refused", Token, func(p *presented) { p.SetDirectory(&Directory{}) }, false},
		{"a user who comes back has the token back", Token, func(p *presented) { p.directory(staffJohnDisabled); p.directory(staff) }, true},
		{"a user who comes back does not have the session back", Session, func(p *presented) { p.directory(staffJohnDisabled); p.directory(staff) }, false},
		{"a faulty, empty directory ends no session for good", Session, func(p *presented) { p.directory(""); p.directory(staff) }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &presented{T: t, store: newMemory(), as: test.kind}
				p.Service = open(t, p.store, Options{Clock: func() time.Time { return time.Now().Add(-p.behind) }})
				p.secret, p.Credential = issued(t, p.Service, test.kind, "john.doe", 0)
				test.spoil(p)
				if test.want {
					accepts(t, p.Service, p.as, p.secret, "john.doe")
					return
				}
				before := p.Metrics().Refused
				refuses(t, p.Service, p.as, p.secret)
				got := p.Metrics().Refused - before
				assert.Equal(t, uint64(1), got, "refusals counted")
			})
		})
	}
}

func changeAt(s string, at int) string {
	b := []byte(s)
	b[at] ^= 1
	return string(b)
}

func mustRevoke(t *testing.T, s *Service, c Credential) {
	t.Helper()
	require.NoError(t, s.Revoke(t.Context(), c.Kind, c.ID), "Revoke")
}

func TestLimitsOfCredentials(t *testing.T) {
	o := Options{SessionIdle: time.Minute, SessionMax: time.Hour}
	inBubble(t, newMemory(), o, func(t *testing.T, s *Service) {
		text, _, err := s.Create(t.Context(), Session, CreateCredential{User: "john.doe", Expires: time.Hour + 1})
		assert.True(t, text == "" && errors.Is(err, failure.ErrInvalid) && strings.Contains(err.Error(), "a session ends after 1 hours in any case"), "%v %v", text, err)
		secret, session := issued(t, s, Session, "john.doe", 0)
		token, shown := issued(t, s, Token, "john.doe", 24*time.Hour)
		assert.True(t, session.Expires.Sub(session.Created) == time.Hour && shown.Expires.Sub(shown.Created) == 24*time.Hour, "%v %v", session, shown)
		pass(time.Minute)
		refuses(t, s, Session, secret)
		pass(24*time.Hour - time.Minute - time.Millisecond)
		accepts(t, s, Token, token, "john.doe")
		pass(time.Millisecond)
		refuses(t, s, Token, token)
	})
}

// TestUnknownOutcome: whoever does not learn from the store what became of a change is
// told what is known of it.
func TestUnknownOutcome(t *testing.T) {
	m := newMemory()
	s := open(t, m, Options{})
	session, made := issued(t, s, Session, "john.doe", 0)
	m.failWith(persistence.ErrOutcomeUnknown)
	_, _, created := s.Create(t.Context(), Token, CreateCredential{User: "john.doe"})
	const ended, other = "it is refused, but that is not durable yet", "the outcome is unknown"
	for _, c := range []struct {
		call string
		err  error
		want string
	}{
		{"CreateToken", created, other},
		{"Revoke", s.Revoke(t.Context(), Session, made.ID), ended},
		{"SignOut", s.SignOut(t.Context(), session), ended},
		{"SetPassword", s.SetPassword(t.Context(), "john.doe", oak), other},
	} {
		got := failure.Of(c.err)
		if got.Kind != failure.ErrOutcomeUnknown || got.Reason != c.want+"; it is safe to repeat the request" || !errors.Is(c.err, persistence.ErrOutcomeUnknown) {
			t.Errorf("%s: got %v with the reason %q, want %q", c.call, c.err, got.Reason, c.want)
		}
	}
}

// TestALateConfirmation: a change of a leader whose followers answer and cannot write has an answer in time.
func TestALateConfirmation(t *testing.T) {
	m := newMemory()
	inBubble(t, m, Options{}, func(t *testing.T, s *Service) {
		_, made := issued(t, s, Session, "john.doe", 0)
		s.confirmMax = confirmMax
		m.holdBack()
		begun := time.Now()
		err := s.Revoke(t.Context(), Session, made.ID)
		if reason := failure.Of(err).Reason; !errors.Is(err, failure.ErrOutcomeUnknown) || !strings.HasPrefix(reason, "it is refused, but that is not durable yet") || time.Since(begun) != confirmMax {
			t.Errorf("Revoke: got %v after %v", err, time.Since(begun))
		}
		_, _, err = s.Create(t.Context(), Token, CreateCredential{User: "john.doe"})
		assert.ErrorIs(t, err, failure.ErrOutcomeUnknown, "CreateToken")
		m.confirm()
	})
	onCluster(t, Options{}, func(c *cluster) {
		c.token()
		assert.Equal(t, confirmMax, c.leader().service().confirmMax, "a leader waits")
	})
}

func TestCreateRefuses(t *testing.T) {
	m := newMemory()
	s := open(t, m, Options{})
	for name, test := range map[string]struct {
		ask  CreateCredential
		want error
	}{
		"an unknown user":                   {CreateCredential{User: "nobody"}, failure.ErrNotFound},
		"no user":                           {CreateCredential{}, failure.ErrNotFound},
		"a disabled user":                   {CreateCredential{User: "gone.girl"}, failure.ErrNotFound},
		"a past expiry":                     {CreateCredential{User: "john.doe", Expires: -1}, failure.ErrInvalid},
		"a long note":                       {CreateCredential{User: "john.doe", Note: strings.Repeat("x", 201)}, failure.ErrInvalid},
		"a note of two lines":               {CreateCredential{User: "john.doe", Note: "a\nb"}, failure.ErrInvalid},
		"a note with a broken character":    {CreateCredential{User: "john.doe", Note: "\xff"}, failure.ErrInvalid},
		"a note that turns the line around": {CreateCredential{User: "john.doe", Note: "a\u202eb"}, failure.ErrInvalid},
	} {
		secret, _, err := s.Create(t.Context(), Token, test.ask)
		assert.True(t, secret == "" && errors.Is(err, test.want) && m.appends == 0, "%v %v %v %v %v", name, secret, err, m.appends, test.want)
	}
}

func TestLastUse(t *testing.T) {
	m := newMemory()
	inBubble(t, m, Options{}, func(t *testing.T, s *Service) {
		secret, c := issued(t, s, Token, "john.doe", 0)
		assert.True(t, c.LastUsed.IsZero(), "last use of a new token: got %v, want none", c.LastUsed)
		pass(10 * time.Second)
		before := m.appends
		for range 1000 {
			accepts(t, s, Token, secret, "john.doe")
		}
		assert.Equal(t, before, m.appends, "appends of 1000 uses")
		got := credentialsOf(s, Token)[0].LastUsed
		assert.True(t, got.Equal(time.Now()), "last use: got %v, want %v", got, time.Now())
		pass(time.Minute)
		pass(10 * time.Minute)
		if got := m.appends - before; got != 1 {
			t.Errorf("appends after 11 minutes: got %d, want 1", got)
		}
		got, want := credentialsOf(open(t, m.crash(0), Options{}), Token)[0].LastUsed, c.Created.Add(10*time.Second)
		assert.True(t, got.Equal(want), "last use after a crash: got %v, want %v", got, want)
	})
}

func TestEndedCredentialsLeave(t *testing.T) {
	m := newMemory()
	inBubble(t, m, Options{RetainEnded: time.Hour}, func(t *testing.T, s *Service) {
		_, revoked := issued(t, s, Token, "john.doe", 0)
		issued(t, s, Token, "john.doe", time.Minute)
		issued(t, s, Session, "john.doe", 0)
		kept, _ := issued(t, s, Token, "john.doe", 0)
		mustRevoke(t, s, revoked)
		pass(59 * time.Minute)
		assert.Len(t, credentialsOf(s, Token|Session), 4, "listed after 59 minutes")
		pass(4 * time.Minute)
		assert.Len(t, credentialsOf(s, Token|Session), 2, "listed after 63 minutes")
		pass(13 * time.Hour)
		assert.Len(t, m.durable, 1, "rows after 14 hours")
		accepts(t, s, Token, kept, "john.doe")
	})
}
