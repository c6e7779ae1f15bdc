package identity

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"troupe/actors/failure"
)

// credentialForm is the text form of gateway/INTERFACE.md, "Credentials".
var credentialForm = regexp.MustCompile(`^[A-Za-z0-9._-]{43,}$`)

func TestCredentialForm(t *testing.T) {
	inBubble(t, newMemory(), Options{}, func(t *testing.T, s *Service) {
		for _, kind := range []Kind{Token, Session} {
			secret, c := issued(t, s, kind, "john.doe", 0)
			if !credentialForm.MatchString(secret) {
				t.Errorf("%v: %q is not of the form %v", kind, secret, credentialForm)
			}
			id, rest, found := strings.Cut(secret, ".")
			if !found || id != c.ID || len(id) < 12 || len(rest) != 43 {
				t.Errorf("%v: got id %q and %d characters of secret, want id %q and 43", kind, id, len(rest), c.ID)
			}
			if strings.HasPrefix(c.ID, "-") {
				t.Errorf("id %q looks like a flag", c.ID)
			}
		}
	})
}

// presented is a credential that a test changes before it is used.
type presented struct {
	*testing.T
	*Service
	secret string
	Credential
}

func (p *presented) revoke()                 { mustRevoke(p.T, p.Service, p.Credential) }
func (p *presented) change(at int)           { p.secret = changeAt(p.secret, at) }
func (p *presented) directory(source string) { p.SetDirectory(parse(p.T, source)); pass(time.Second) }

// use signs in every hour for a while.
func (p *presented) use(d time.Duration) {
	p.Helper()
	for range int(d / time.Hour) {
		pass(time.Hour)
		accepts(p.T, p.Service, Session, p.secret, "john.doe")
	}
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
			inBubble(t, newMemory(), Options{}, func(t *testing.T, s *Service) {
				secret, c := issued(t, s, test.kind, "john.doe", 0)
				p := &presented{t, s, secret, c}
				test.spoil(p)
				if test.want {
					accepts(t, s, test.kind, p.secret, "john.doe")
					return
				}
				before := s.Metrics().Refused
				refuses(t, s, test.kind, p.secret)
				if got := s.Metrics().Refused - before; got != 1 {
					t.Errorf("refusals counted: got %d, want 1", got)
				}
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
	if err := s.Revoke(t.Context(), c.Kind, c.ID); err != nil {
		t.Fatalf("Revoke: %v", err)
	}
}

func TestKindsDoNotMix(t *testing.T) {
	inBubble(t, newMemory(), Options{}, func(t *testing.T, s *Service) {
		token, tokenShown := issued(t, s, Token, "john.doe", 0)
		session, _ := issued(t, s, Session, "john.doe", 0)
		accepts(t, s, Token|Session, token, "john.doe")
		accepts(t, s, Token|Session, session, "john.doe")
		refuses(t, s, Session, token)
		refuses(t, s, Token, session)
		refuses(t, s, 0, token)
		if err := s.Revoke(t.Context(), Session, tokenShown.ID); !errors.Is(err, failure.ErrNotFound) {
			t.Errorf("Revoke of a token as a session: got %v, want ErrNotFound", err)
		}
		accepts(t, s, Token, token, "john.doe")
	})
}

func TestLimitsOfCredentials(t *testing.T) {
	o := Options{SessionIdle: time.Minute, SessionMax: time.Hour}
	inBubble(t, newMemory(), o, func(t *testing.T, s *Service) {
		if text, _, err := s.CreateSession(t.Context(), CreateCredential{User: "john.doe", Expires: time.Hour + 1}); text != "" ||
			!errors.Is(err, failure.ErrInvalid) || !strings.Contains(err.Error(), "a session ends after 1h0m0s in any case") {
			t.Errorf("a session beyond SessionMax: got %q, %v, want ErrInvalid", text, err)
		}
		secret, session := issued(t, s, Session, "john.doe", 0)
		token, shown := issued(t, s, Token, "john.doe", 24*time.Hour)
		if session.Expires.Sub(session.Created) != time.Hour || shown.Expires.Sub(shown.Created) != 24*time.Hour {
			t.Errorf("got %+v and %+v, want an expiry after SessionMax and after 24 h", session, shown)
		}
		pass(time.Minute)
		refuses(t, s, Session, secret)
		pass(24*time.Hour - time.Minute - time.Millisecond)
		accepts(t, s, Token, token, "john.doe")
		pass(time.Millisecond)
		refuses(t, s, Token, token)
	})
}

func TestPrincipalFollowsDirectory(t *testing.T) {
	inBubble(t, newMemory(), Options{}, func(t *testing.T, s *Service) {
		secret, _ := issued(t, s, Token, "mary.major", 0)
		before, err := s.Authenticate(Token, secret)
		if err != nil || !before.Has(Workflows) || !before.Has(Admin) {
			t.Fatalf("Authenticate: got %+v, %v, want mod-workflows and mod-admin", before, err)
		}
		s.SetDirectory(parse(t, staffWithoutJohn))
		after, err := s.Authenticate(Token, secret)
		if err != nil || after.Has(Workflows) || len(after.Roles) != 0 {
			t.Errorf("Authenticate: got %+v, %v, want no roles and privileges", after, err)
		}
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
		if secret, _, err := s.CreateToken(t.Context(), test.ask); secret != "" || !errors.Is(err, test.want) || m.appends != 0 {
			t.Errorf("%s: got %q, %v and %d appends, want %v and none", name, secret, err, m.appends, test.want)
		}
	}
}

func TestCredentialsMax(t *testing.T) {
	m := newMemory()
	inBubble(t, m, Options{CredentialsMax: 2}, func(t *testing.T, s *Service) {
		issued(t, s, Token, "john.doe", 0)
		m.holdBack()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		done := make(chan error, 2)
		for range 2 { // both wait for the disk, only one fits
			go func() {
				_, _, err := s.CreateToken(ctx, CreateCredential{User: "john.doe"})
				done <- err
			}()
		}
		if err := <-done; !errors.Is(err, failure.ErrBusy) {
			t.Errorf("the third: got %v, want ErrBusy", err)
		}
		synctest.Wait()
		m.confirm()
		if err := <-done; err != nil {
			t.Errorf("the second: got %v, want no error", err)
		}
		if got := s.Metrics(); got.Full != 1 || got.Credentials != 2 {
			t.Errorf("metrics: got %+v, want 1 full and 2 credentials", got)
		}
	})
}

func TestNothingIsAcknowledgedBeforeItIsDurable(t *testing.T) {
	m := newMemory()
	inBubble(t, m, Options{}, func(t *testing.T, s *Service) {
		secret, c := issued(t, s, Token, "john.doe", 0)
		m.holdBack()
		done := make(chan error, 2)
		go func() {
			_, _, err := s.CreateToken(t.Context(), CreateCredential{User: "john.doe"})
			done <- err
		}()
		go func() { done <- s.Revoke(t.Context(), Token, c.ID) }()
		synctest.Wait()
		if got := m.waits(); got != 2 || len(done) != 0 {
			t.Fatalf("got %d appends and %d answers, want 2 and none", got, len(done))
		}
		if got := len(s.Credentials(Token)); got != 1 {
			t.Errorf("listed: got %d, want only the durable one", got)
		}
		refuses(t, s, Token, secret) // a revocation holds at once all the same
		m.confirm()
		for range 2 {
			if err := <-done; err != nil {
				t.Errorf("got %v, want no error", err)
			}
		}
	})
}

func TestCanceledCreateIsStillListed(t *testing.T) {
	m := newMemory()
	inBubble(t, m, Options{}, func(t *testing.T, s *Service) {
		m.holdBack()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		secret, _, err := s.CreateToken(ctx, CreateCredential{User: "john.doe"})
		if secret != "" || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("CreateToken: got %q, %v, want the deadline", secret, err)
		}
		m.confirm()
		list := s.Credentials(Token)
		if len(list) != 1 {
			t.Fatalf("listed: got %d, want the one that became durable", len(list))
		}
		mustRevoke(t, s, list[0])
	})
}

func TestStoreErrors(t *testing.T) {
	broken := errors.New("the disk is gone")
	m := newMemory()
	inBubble(t, m, Options{}, func(t *testing.T, s *Service) {
		secret, c := issued(t, s, Token, "john.doe", 0)
		m.fail = broken
		if text, _, err := s.CreateToken(t.Context(), CreateCredential{User: "john.doe"}); text != "" || !errors.Is(err, broken) {
			t.Errorf("CreateToken: got %q, %v, want the store's error and no secret", text, err)
		}
		if err := s.Revoke(t.Context(), Token, c.ID); !errors.Is(err, broken) {
			t.Errorf("Revoke: got %v, want the store's error", err)
		}
		refuses(t, s, Token, secret) // it fails closed
		if _, err := start(Options{}, m); !errors.Is(err, broken) {
			t.Errorf("start: got %v, want the store's error", err)
		}
	})
}

func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := open(t, m, Options{})
		secret, c := issued(t, s, Token, "john.doe", 0)
		pass(10 * time.Second)
		accepts(t, s, Token, secret, "john.doe")
		used := time.Now()
		stop(t, s)
		stop(t, s)
		if _, _, err := s.CreateToken(t.Context(), CreateCredential{User: "john.doe"}); !errors.Is(err, failure.ErrUnavailable) {
			t.Errorf("CreateToken: got %v, want ErrUnavailable", err)
		}
		if err := s.Revoke(t.Context(), Token, c.ID); !errors.Is(err, failure.ErrUnavailable) {
			t.Errorf("Revoke: got %v, want ErrUnavailable", err)
		}
		accepts(t, s, Token, secret, "john.doe")

		again := open(t, m.crash(0), Options{})
		if got := again.Credentials(Token)[0].LastUsed; !got.Equal(used) {
			t.Errorf("last use after Stop: got %v, want %v", got, used)
		}
	})
}

func TestLastUse(t *testing.T) {
	m := newMemory()
	inBubble(t, m, Options{}, func(t *testing.T, s *Service) {
		secret, c := issued(t, s, Token, "john.doe", 0)
		if !c.LastUsed.IsZero() {
			t.Errorf("last use of a new token: got %v, want none", c.LastUsed)
		}
		pass(10 * time.Second)
		before := m.appends
		for range 1000 {
			accepts(t, s, Token, secret, "john.doe")
		}
		if m.appends != before {
			t.Errorf("appends of 1000 uses: got %d, want none", m.appends-before)
		}
		if got := s.Credentials(Token)[0].LastUsed; !got.Equal(time.Now()) {
			t.Errorf("last use: got %v, want %v", got, time.Now())
		}
		pass(time.Minute)
		pass(10 * time.Minute)
		if got := m.appends - before; got != 1 {
			t.Errorf("appends after 11 minutes: got %d, want 1", got)
		}
		if got, want := open(t, m.crash(0), Options{}).Credentials(Token)[0].LastUsed, c.Created.Add(10*time.Second); !got.Equal(want) {
			t.Errorf("last use after a crash: got %v, want %v", got, want)
		}
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
		if got := len(s.Credentials(Token | Session)); got != 4 {
			t.Errorf("listed after 59 minutes: got %d, want 4", got)
		}
		pass(4 * time.Minute)
		if got := len(s.Credentials(Token | Session)); got != 2 {
			t.Errorf("listed after 63 minutes: got %d, want 2", got)
		}
		pass(13 * time.Hour)
		if got := len(m.durable); got != 1 {
			t.Errorf("rows after 14 hours: got %d, want 1", got)
		}
		accepts(t, s, Token, kept, "john.doe")
	})
}

func TestFlushCannotUndoRevocation(t *testing.T) {
	m := newMemory()
	inBubble(t, m, Options{}, func(t *testing.T, s *Service) {
		secret, c := issued(t, s, Token, "john.doe", 0)
		pass(30 * time.Second)
		accepts(t, s, Token, secret, "john.doe")
		mustRevoke(t, s, c)
		pass(time.Minute)
		refuses(t, open(t, m.crash(0), Options{}), Token, secret)
	})
}

func TestClockSetBackDoesNotUndoRevocation(t *testing.T) {
	var behind time.Duration
	o := Options{Clock: func() time.Time { return time.Now().Add(-behind) }}
	inBubble(t, newMemory(), o, func(t *testing.T, s *Service) {
		secret, c := issued(t, s, Token, "john.doe", 0)
		mustRevoke(t, s, c)
		behind = time.Hour
		refuses(t, s, Token, secret)
	})
}
