package identity

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity/password"
)

// script is a service that testdata/script speaks to, with a clock of its own.
type script struct {
	*testing.T
	*Service
	store   *memory
	options Options
	behind  time.Duration // of the clock
	begun   time.Time
	made    map[string]string // credentials by the names that the script gives
	hashes  int
}

// quiet does not log that a command takes long: the time of a bubble passes at once.
type quiet struct{ *testing.T }

func (quiet) Logf(string, ...any) {}

// TestScript plays testdata/script: who signs in how, which credentials work then, and for how long. Times are counted from the start.
func TestScript(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txt")
	require.NoError(t, err)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{T: t}
				s.anew()
				datadriven.RunTestAny(quiet{t}, file, func(_ testing.TB, cmd *datadriven.TestData) string {
					words := make([]string, 0, 6)
					for _, arg := range cmd.CmdArgs {
						words = append(words, arg.Key)
					}
					answer := s.run(cmd.Cmd, append(words, "", "", "", "")[:len(words)+4], cmd.Input)
					return strings.TrimRight(answer, "\n") + "\n"
				})
			})
		})
	}
}

func (s *script) anew() {
	s.store, s.made, s.behind, s.begun = newMemory(), map[string]string{}, 0, time.Now()
	s.options.Clock = func() time.Time { return time.Now().Add(-s.behind) }
	s.open(s.store)
}

func (s *script) open(m *memory) {
	s.Service = open(s.T, m, s.options)
	inner := s.hasher.Derive
	s.hasher.Derive = func(p string, salt []byte, cost password.Cost, bytes int) []byte {
		s.hashes++
		return inner(p, salt, cost, bytes)
	}
}

var kindsByName = map[string]Kind{"token": Token, "session": Session, "both": Token | Session, "none": 0}

func (s *script) run(command string, words []string, input string) string {
	duration := func(text string) (d time.Duration) {
		if text != "" {
			var err error
			d, err = time.ParseDuration(text)
			require.NoError(s, err)
		}
		return d
	}
	told := func(secret string, err error) string {
		assert.Equal(s, err == nil, secret != "", "a secret beside an error")
		if err == nil {
			assert.Regexp(s, credentialForm, secret)
			s.made[words[0]] = secret
		}
		return said(err)
	}
	text := strings.TrimSuffix(input, "\n")
	if strings.HasPrefix(text, `"`) {
		var err error
		text, err = strconv.Unquote(text)
		require.NoError(s, err)
	}
	switch command {
	case "anew": // with options
		s.options = Options{SessionIdle: duration(words[0]), SessionMax: duration(words[1]), RetainEnded: duration(words[2])}
		s.anew()
	case "token", "session": // NAME USER EXPIRES, with a note below
		secret, _, err := s.Create(s.Context(), kindsByName[command], CreateCredential{User: UserID(words[1]), Expires: duration(words[2]), Note: text})
		return told(secret, err)
	case "password": // USER, with the password below
		return said(s.SetPassword(s.Context(), UserID(words[0]), text))
	case "sign-in": // NAME USER "nowhere", with the password below
		from := nearby
		if words[2] == "nowhere" {
			from = netip.Addr{}
		}
		secret, p, err := s.SignIn(s.Context(), UserID(words[1]), text, from)
		assert.True(s, err != nil && p == nil || err == nil && p.ID == UserID(words[1]), "got the user %+v", p)
		return told(secret, err)
	case "vouched": // NAME USER ROLE...
		v := Vouched{User: UserID(words[1]), Address: nearby}
		for _, role := range strings.Fields(text) {
			v.Roles = append(v.Roles, RoleID(role))
		}
		secret, p, err := s.SignInVouched(s.Context(), v)
		assert.True(s, err != nil && p == nil || err == nil && p.ID == UserID(words[1]), "got the user %+v", p)
		return told(secret, err)
	case "change": // NEW OLD HOW
		s.made[words[0]] = changed(s.T, s.made[words[1]], words[2])
	case "use": // NAME KIND
		before := s.Metrics().Refused
		p, err := s.Authenticate(kindsByName[words[1]], s.made[words[0]])
		if err == nil {
			return fmt.Sprint(p.ID, p.Roles, p.Privileges)
		}
		assert.True(s, p == nil && err == failure.ErrUnauthorized, "got %v", err) //nolint:errorlint // the very error, so that no cause can shine through
		return fmt.Sprintf("%v, counted %d", err, s.Metrics().Refused-before)
	case "use-hourly": // NAME KIND HOURS
		for n := range duration(words[2]) / time.Hour {
			pass(time.Hour)
			_, err := s.Authenticate(kindsByName[words[1]], s.made[words[0]])
			require.NoError(s, err, "after %d hours", n)
		}
	case "revoke": // NAME KIND
		return said(s.Revoke(s.Context(), kindsByName[words[1]], s.made[words[0]]))
	case "sign-out": // NAME
		return said(s.SignOut(s.Context(), s.made[words[0]]))
	case "principal": // USER ROLE...
		p, err := s.Principal(UserID(words[0]), strings.Fields(text))
		if err != nil {
			return said(err)
		}
		return fmt.Sprint(p.ID, p.Roles, p.Privileges)
	case "pass":
		pass(duration(words[0]))
	case "clock-back":
		s.behind = duration(words[0])
	case "directory": // the file below, or a known one
		known := map[string]string{"staff": staff, "without-john": staffWithoutJohn, "john-disabled": staffJohnDisabled, "john-renamed": staffJohnRenamed, "": input}
		if words[0] == "none" {
			s.SetDirectory(&Directory{})
		} else {
			s.SetDirectory(parse(s, known[words[0]]))
		}
		pass(time.Second)
	case "crash": // what was durable a minute later goes on
		pass(time.Minute)
		s.store = s.store.crash(0)
		s.open(s.store)
	case "after-crash": // NAME KIND: whether a service of what is durable takes it
		_, err := open(s.T, s.store.crash(0), s.options).Authenticate(kindsByName[words[1]], s.made[words[0]])
		return said(err)
	case "store": // "fails" or "works"
		s.store.failWith(map[string]error{"fails": errors.New("the disk is full")}[words[0]])
	case "hashes":
		return strconv.Itoa(s.hashes)
	case "appends":
		return strconv.Itoa(s.store.appends)
	case "list":
		return s.listed()
	case "metrics":
		m := s.Metrics()
		return fmt.Sprintf("sign-ins %d, failed %d, refused %d", m.SignIns, m.SignInsFailed, m.SignInsRefused)
	default:
		s.Fatalf("unknown command %q", command)
	}
	return "done"
}

func said(err error) string {
	if err == nil {
		return "done"
	}
	return fmt.Sprintf("%v: %v", failure.Of(err).Kind, err)
}

// changed is a secret that is not as it was given out.
func changed(t *testing.T, secret, how string) string {
	switch how {
	case "empty":
		return ""
	case "unknown":
		return "tok_aaaaaaaaaaaaaaaa" + secret[idChars:]
	case "id":
		return secret[:idChars]
	case "last":
		return changeAt(secret, len(secret)-1)
	case "first":
		return changeAt(secret, idChars+1)
	case "separator":
		return changeAt(secret, idChars)
	case "longer":
		return secret + "A"
	case "shorter":
		return secret[:len(secret)-1]
	case "megabyte":
		return secret + strings.Repeat("A", 1<<20)
	case "noise":
		return strings.Repeat("x", len(secret))
	}
	t.Fatalf("unknown change %q", how)
	return ""
}

func (s *script) listed() string {
	list, err := s.Credentials(context.Background(), Token|Session)
	require.NoError(s, err)
	at := func(when time.Time) string {
		if when.IsZero() {
			return "-"
		}
		return when.Sub(s.begun).String()
	}
	var out []string
	for _, c := range list {
		out = append(out, fmt.Sprintf("%s of %s %q, created %s, used %s, expires %s, revoked %s\n", map[Kind]string{Token: "token", Session: "session"}[c.Kind], c.User, c.Note, at(c.Created), at(c.LastUsed), at(c.Expires), at(c.Revoked)))
	}
	slices.Sort(out) // NB: those of one moment are in no order
	return strings.Join(out, "") + fmt.Sprintf("%d rows", len(s.store.durable))
}
