package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity/password"
	"troupe/persistence"
)

// script is a service that testdata/script speaks to, with a clock of its own.
type script struct {
	*testing.T
	Identities          // what commands are for
	service    *Service // what they are for where there is one node
	store      *memory
	options    Options
	live       func()        // returns to the service that a crash has left behind
	behind     time.Duration // of the clock
	begun      time.Time
	hashes     int
	work       string // of each hash
	during     string // commands that are run while a password is looked at

	mu      *sync.Mutex
	made    map[string]string      // credentials by the names that the script gives
	answers map[string]chan string // of what was begun
}

// quiet does not log that a command takes long: the time of a bubble passes at once.
type quiet struct{ *testing.T }

func (quiet) Logf(string, ...any) {}

// TestScript plays testdata/script: who signs in how, which credentials work then, and for how long. Times are counted from the start. "begin NAME
// COMMAND" does not wait for the answer, which "answer NAME" says; "repeat N" runs the commands below it, with their number for $i.
func TestScript(t *testing.T) {
	files, err := filepath.Glob("testdata/script/*.txt")
	require.NoError(t, err)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{T: t}
				s.anew()
				datadriven.RunTestAny(quiet{t}, file, func(_ testing.TB, cmd *datadriven.TestData) string {
					line := cmd.Cmd
					for _, arg := range cmd.CmdArgs {
						line += " " + arg.String()
					}
					return strings.TrimRight(s.run(line, cmd.Input), "\n") + "\n"
				})
			})
		})
	}
}

func (s *script) anew() {
	s.mu, s.store, s.made, s.answers, s.behind, s.begun = new(sync.Mutex), newMemory(), map[string]string{}, map[string]chan string{}, 0, time.Now()
	s.options.Clock = func() time.Time { return time.Now().Add(-s.behind) }
	s.open(s.store)
}

func (s *script) open(m *memory) {
	s.service = open(s.T, m, s.options)
	s.Identities = s.service
	inner := s.service.hasher.Derive
	s.service.hasher.Derive = func(p string, salt []byte, cost password.Cost, bytes int) []byte {
		s.hashes++
		s.work = fmt.Sprintf("%+v, salt of %d bytes, %d bytes", cost, len(salt), bytes)
		during := s.during
		s.during = ""
		for line := range strings.Lines(during) {
			s.run(line, "")
		}
		return inner(p, salt, cost, bytes)
	}
}

// crash goes on with what is durable, and with the first survivors of the writes that wait.
func (s *script) crash(survivors int) {
	service, store := s.service, s.store
	s.live = func() { s.Identities, s.service, s.store = service, service, store }
	s.store = s.store.crash(survivors)
	s.open(s.store)
}

// each runs commands below a "repeat", and says each answer once.
func (s *script) each(times int, lines string) string {
	var out []string
	counts := map[string]int{}
	for i := range times {
		for line := range strings.Lines(lines) {
			answer := s.run(strings.ReplaceAll(line, "$i", strconv.Itoa(i)), "")
			if counts[answer]++; counts[answer] == 1 {
				out = append(out, answer)
			}
		}
	}
	for i, answer := range out {
		out[i] = fmt.Sprintf("%s (%d times)", answer, counts[answer])
	}
	return strings.Join(out, "\n")
}

var kindsByName = map[string]Kind{"token": Token, "session": Session, "both": Token | Session, "none": 0}

var faults = map[string]error{"fails": errors.New("the disk is full"), "is-full": persistence.ErrDiskFull, "is-unsure": persistence.ErrOutcomeUnknown}

// text is what a word or a line stands for: "a"*300 is 300 letters.
func (s *script) text(word string) string {
	word = strings.TrimSuffix(word, "\n")
	if !strings.HasPrefix(word, `"`) {
		return word
	}
	quoted, err := strconv.QuotedPrefix(word)
	require.NoError(s, err)
	text, err := strconv.Unquote(quoted)
	require.NoError(s, err)
	times := 1
	if by, ok := strings.CutPrefix(word[len(quoted):], "*"); ok {
		times, err = strconv.Atoi(by)
		require.NoError(s, err)
	}
	return strings.Repeat(text, times)
}

func (s *script) run(line, input string) string {
	var words, options []string
	for _, word := range strings.Fields(line) {
		if name, value, ok := strings.Cut(word, "="); ok && !strings.HasPrefix(word, `"`) {
			options = append(options, name, value)
		} else {
			words = append(words, word)
		}
	}
	words = append(words, "", "", "", "")
	command, words := words[0], words[1:]
	number := func(text string) int {
		n, err := strconv.Atoi(cmp.Or(text, "0"))
		require.NoError(s, err)
		return n
	}
	ctx, from := s.Context(), nearby
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
			s.mu.Lock()
			defer s.mu.Unlock()
			s.made[words[0]] = secret
		}
		return said(err)
	}
	if command == "anew" || command == "options" {
		s.options = Options{}
	}
	for i := 0; i < len(options); i += 2 {
		switch value := options[i+1]; options[i] {
		case "within":
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, duration(value))
			defer cancel()
		case "from":
			from = netip.Addr{}
		case "idle":
			s.options.SessionIdle = duration(value)
		case "max":
			s.options.SessionMax = duration(value)
		case "flush":
			s.options.FlushEvery = duration(value)
		case "retain":
			s.options.RetainEnded = duration(value)
		case "sessions":
			s.options.SessionsPerUserMax = number(value)
		case "credentials":
			s.options.CredentialsMax = number(value)
		case "hashes":
			s.options.HashesMax = number(value)
		case "of", "how": // alter has them
		default:
			s.Fatalf("unknown option %q", options[i])
		}
	}
	text := s.text(input)
	switch command {
	case "options": // of the next service
	case "anew":
		s.anew()
	case "restart":
		stop(s.T, s.service)
		s.open(s.store)
	case "start": // whether another one starts on the same store
		_, err := start(Options{}, s.store)
		return said(err)
	case "begin": // NAME COMMAND
		answer := make(chan string, 1)
		s.answers[words[0]] = answer
		_, line, _ := strings.Cut(line, " "+words[0]+" ")
		go func() { answer <- s.run(line, input) }()
		synctest.Wait()
	case "answer": // NAME
		synctest.Wait()
		select {
		case answer := <-s.answers[words[0]]:
			return answer
		default:
			return "no answer yet"
		}
	case "repeat":
		return s.each(number(words[0]), input)
	case "run": // the commands below
		var out []string
		for line := range strings.Lines(input) {
			out = append(out, strings.TrimSpace(line)+": "+s.run(line, ""))
		}
		return strings.Join(out, "\n")
	case "token", "session": // NAME USER EXPIRES, with a note below
		secret, c, err := s.Create(ctx, kindsByName[command], CreateCredential{User: UserID(words[1]), Expires: duration(words[2]), Note: text})
		if err == nil {
			id, rest, found := strings.Cut(secret, ".")
			assert.True(s, found && id == c.ID && len(id) >= 12 && len(rest) == 43 && !strings.HasPrefix(id, "-"), "the form of %q and %q", id, rest)
		}
		return told(secret, err)
	case "password": // USER PASSWORD, or with the password below
		return said(s.SetPassword(ctx, UserID(words[0]), cmp.Or(words[1], text)))
	case "sign-in": // NAME USER PASSWORD, or with the password below
		secret, p, err := s.SignIn(ctx, UserID(words[1]), cmp.Or(words[2], text), from)
		assert.True(s, err != nil && p == nil || err == nil && p.ID == UserID(words[1]), "got the user %+v", p)
		return told(secret, err)
	case "guess": // below: a user and a password in each line
		var out strings.Builder
		for line := range strings.Lines(input) {
			user, password, _ := strings.Cut(line, " with ")
			before := s.hashes
			s.work = "none"
			secret, p, err := s.SignIn(ctx, UserID(s.text(user)), s.text(password), from)
			assert.True(s, secret == "" && p == nil && errors.Is(err, failure.ErrUnauthorized), "%.50s: got %q, %+v and %v", line, secret, p, err)
			fmt.Fprintf(&out, "%v; hashes: %d, %s\n", err, s.hashes-before, s.work)
		}
		return out.String()
	case "while-hashing":
		s.during = input
	case "vouched": // NAME USER ROLE..., or with the roles below
		v := Vouched{User: UserID(s.text(words[1])), Address: nearby}
		for _, role := range strings.Fields(strings.Join(words[2:], " ") + " " + input) {
			v.Roles = append(v.Roles, RoleID(s.text(role)))
		}
		secret, p, err := s.SignInVouched(ctx, v)
		assert.True(s, err != nil && p == nil || err == nil && p.ID == UserID(words[1]), "got the user %+v", p)
		return told(secret, err)
	case "alter": // NEW of=OLD how=WAY
		s.made[words[0]] = altered(s.T, s.made[options[1]], options[3])
	case "use": // NAME KIND
		before := s.Metrics().Refused
		p, err := s.Authenticate(kindsByName[words[1]], s.made[words[0]])
		if err == nil {
			return fmt.Sprint(p.ID, p.Roles, p.Privileges)
		}
		if assert.Nil(s, p); !errors.Is(err, failure.ErrUnauthorized) {
			return said(err)
		}
		assert.Equal(s, failure.ErrUnauthorized, err, "the very error, so that no cause can shine through")
		return fmt.Sprintf("%v, counted %d", err, s.Metrics().Refused-before)
	case "use-hourly": // NAME KIND HOURS
		for n := range duration(words[2]) / time.Hour {
			pass(time.Hour)
			_, err := s.Authenticate(kindsByName[words[1]], s.made[words[0]])
			require.NoError(s, err, "after %d hours", n)
		}
	case "revoke": // NAME KIND
		return said(s.Revoke(ctx, kindsByName[words[1]], s.made[words[0]]))
	case "sign-out": // NAME
		return said(s.SignOut(ctx, s.made[words[0]]))
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
	case "directory": // the file below, or a known one, and whether no time passes
		known := map[string]string{"staff": staff, "without-john": staffWithoutJohn, "john-disabled": staffJohnDisabled, "john-renamed": staffJohnRenamed, "": input}
		if words[0] == "none" {
			s.SetDirectory(&Directory{})
		} else {
			s.SetDirectory(parse(s, known[words[0]]))
		}
		if words[1] != "at-once" {
			pass(time.Second)
		}
	case "crash": // what was durable a minute later goes on
		pass(time.Minute)
		s.crash(0)
	case "after-crash": // with so many of the writes that wait, until "back"
		s.crash(number(words[0]))
	case "back":
		s.live()
	case "store": // "works", or one of faults
		s.store.failWith(faults[words[0]])
	case "hold": // confirmations
		s.store.holdBack()
	case "confirm":
		s.store.confirm()
		synctest.Wait()
	case "writable":
		return said(s.Writable())
	case "hashes":
		return strconv.Itoa(s.hashes)
	case "appends":
		return strconv.Itoa(s.store.appends)
	case "list":
		return s.listed()
	case "tokens": // how many there are
		list, err := s.Credentials(ctx, Token)
		if err != nil {
			return said(err)
		}
		return strconv.Itoa(len(list))
	case "count": // USER: sessions that work, those that ended, and ends that are remembered
		live, ended := count(s.service, UserID(words[0]))
		return fmt.Sprintf("%d work, %d ended, %d rows, %d to end", live, ended, len(s.store.durable), s.service.ending.Size())
	case "metrics":
		m := s.Metrics()
		return fmt.Sprintf("sign-ins %d, failed %d, refused %d; %d credentials, full %d times", m.SignIns, m.SignInsFailed, m.SignInsRefused, m.Credentials, m.Full)
	default:
		s.Fatalf("unknown command %q", command)
	}
	return "done"
}

var idForm = regexp.MustCompile(`(tok|ses)_[a-z0-9]{16}`)

func said(err error) string {
	if err == nil {
		return "done"
	}
	of, text := failure.Of(err), idForm.ReplaceAllString(err.Error(), "<id>")
	switch of.Kind {
	case failure.ErrNotLeader:
		return fmt.Sprintf("%v of shard %d", of.Kind, of.Shard)
	case failure.ErrOutcomeUnknown:
		return fmt.Sprintf("%v: %s (%s)", of.Kind, of.Reason, text)
	}
	return fmt.Sprintf("%v: %s", of.Kind, text)
}

// changed is a secret that is not as it was given out.
func altered(t *testing.T, secret, how string) string {
	switch how {
	case "empty":
		return ""
	case "unknown-id":
		return "tok_aaaaaaaaaaaaaaaa" + secret[idChars:]
	case "other-kind":
		return "pwd_aaaaaaaaaaaaaaaa" + secret[idChars:]
	case "id-alone":
		return secret[:idChars]
	case "last-letter":
		return changeAt(secret, len(secret)-1)
	case "first-letter":
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
	t.Fatalf("unknown way %q", how)
	return ""
}

func (s *script) listed() string {
	list, err := s.Credentials(context.Background(), Token|Session)
	if err != nil {
		return said(err)
	}
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
	if s.store != nil {
		out = append(out, fmt.Sprintf("%d rows", len(s.store.durable)))
	}
	return strings.Join(out, "")
}
