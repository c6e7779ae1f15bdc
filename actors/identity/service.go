package identity

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"
	"github.com/rs/zerolog"

	"troupe/actors/failure"
	"troupe/actors/identity/internal/attempts"
	"troupe/actors/identity/password"
	"troupe/actors/internal/concurrent"
)

// Options says how a Service works. Only Store must be set.
type Options struct {
	// Store keeps the credentials. It must stay open until Stop has returned.
	Store     Store
	Directory *Directory // the first set of roles and users
	// Clock tells the time. Nil is time.Now.
	Clock func() time.Time
	Log   zerolog.Logger // Log takes creations and revocations (info) and writes that failed (error)
	// SessionIdle ends a session that was not used for so long. Zero is 12 h.
	SessionIdle time.Duration
	// SessionMax ends a session whatever its use. Zero is 7 d. Lowering it ends older sessions at the next start.
	SessionMax time.Duration
	// FlushEvery is the time between two writes of last uses. Zero is 1 min.
	FlushEvery time.Duration
	// RetainEnded is how long an expired or revoked credential stays in the lists before it is removed. Zero is 7 d.
	RetainEnded    time.Duration
	CredentialsMax int // CredentialsMax bounds the table, ended credentials included; those give way to new ones
	// SessionsPerUserMax bounds the sessions of a user that work at a time. Zero is 100.
	SessionsPerUserMax int

	// PasswordCost is the cost of the hash of a new password. Zero is that of password.StandardCost: 19 MiB, two
	// passes, one lane, about 25 ms of a core.
	PasswordCost password.Cost
	// HashesMax bounds the password hashes that are computed at a time. Zero is half the cores, at least one, so that a
	// flood of sign-ins leaves room for other work.
	HashesMax int
	// HashesWaitingMax bounds those that wait for that; more are answered with failure.ErrBusy, and so are those of one
	// address beyond half of all.
	HashesWaitingMax int
}

// attemptsMax bounds the accounts, and the addresses, whose failed sign-ins are remembered; the oldest are forgotten
// first. They take about 4 MB.
const attemptsMax = 10_000

// EnsureDefaults replaces zeroes by the defaults.
func (o *Options) EnsureDefaults() {
	o.SessionIdle = cmp.Or(o.SessionIdle, 12*time.Hour)
	o.SessionMax = cmp.Or(o.SessionMax, 7*24*time.Hour)
	o.FlushEvery = cmp.Or(o.FlushEvery, time.Minute)
	o.RetainEnded = cmp.Or(o.RetainEnded, 7*24*time.Hour)
	o.CredentialsMax = cmp.Or(o.CredentialsMax, 200_000)
	o.SessionsPerUserMax = cmp.Or(o.SessionsPerUserMax, 100)
	o.PasswordCost = cmp.Or(o.PasswordCost, password.StandardCost)
	o.HashesMax = cmp.Or(o.HashesMax, max(1, runtime.GOMAXPROCS(0)/2))
	o.HashesWaitingMax = cmp.Or(o.HashesWaitingMax, 128)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Directory == nil {
		o.Directory = &Directory{}
	}
}

func (o *Options) validate() error {
	for _, limit := range []struct {
		name  string
		value time.Duration
	}{
		{"SessionIdle", o.SessionIdle},
		{"SessionMax", o.SessionMax},
		{"FlushEvery", o.FlushEvery},
		{"RetainEnded", o.RetainEnded},
	} {
		if limit.value < time.Second {
			return fmt.Errorf("option %s is %v, but must be at least 1s", limit.name, limit.value)
		}
	}
	for _, limit := range []struct {
		name  string
		value int
	}{
		{"CredentialsMax", o.CredentialsMax},
		{"SessionsPerUserMax", o.SessionsPerUserMax},
		{"HashesMax", o.HashesMax},
		{"HashesWaitingMax", o.HashesWaitingMax},
	} {
		if limit.value < 1 {
			return fmt.Errorf("option %s is %d, but must be at least 1", limit.name, limit.value)
		}
	}
	if !o.PasswordCost.Valid() {
		return fmt.Errorf("option PasswordCost is %+v, which is outside the bounds of argon2 or of what a sign-in can wait for", o.PasswordCost)
	}
	return nil
}

// Service holds all credentials and the present directory. Its methods are safe for concurrent use.
type Service struct {
	options Options
	idle    int64 // SessionIdle in milliseconds
	ledger  ledger

	directory atomic.Pointer[Directory]      // replaced whole by SetDirectory
	entries   concurrent.Map[string, *entry] // The writer and the confirmations of its appends change it; Authenticate only reads
	// ending has the credentials that were revoked, until a row that says so is durable, by id.
	ending   concurrent.Map[string, *entry]
	accounts concurrent.Map[UserID, *account] // No entry is ever removed: there is at most one for each user there ever was
	hasher   *password.Hasher[hashHolder]
	attempts *attempts.Attempts

	changes    chan change   // to the writer
	recheck    chan struct{} // to the writer: the directory changed; holds one
	stopping   chan struct{} // closed by Stop
	stopped    chan struct{} // closed when the writer is gone
	stopOnce   sync.Once
	confirmMax time.Duration // how long a change waits until it is durable, and set before the first one
	abandoned  atomic.Bool   // Stop must write nothing, because another node leads

	refused        atomic.Uint64
	full           atomic.Uint64
	writeFailed    atomic.Uint64
	signIns        atomic.Uint64
	signInsFailed  atomic.Uint64
	signInsRefused atomic.Uint64
	corrupt        int // set by Start, then read only
}

// Metrics is a snapshot of what a Service counts.
type Metrics struct {
	Credentials int // Credentials in the table, ended ones included
	// Corrupt rows that Start found; each is a credential or a password that is refused.
	Corrupt int
	Refused uint64 // Refused counts credentials that Authenticate refused
	// Full counts creations refused at Options.CredentialsMax, where none of the others had ended.
	Full        uint64
	WriteFailed uint64 // WriteFailed counts writes in the background that the store did not confirm
	// SignIns counts those that succeeded, SignInsFailed those with a wrong user or password, SignInsRefused those that
	// came too soon.
	SignIns, SignInsFailed, SignInsRefused uint64
	// HashesWaiting is how many password hashes wait for a core now; HashesRefused counts those refused at
	// Options.HashesWaitingMax.
	HashesWaiting int64
	HashesRefused uint64
}

// Start loads all credentials and starts the writer.
func Start(o Options) (*Service, error) { return start(o, storeLedger{o.Store}) }

func start(o Options, l ledger) (*Service, error) {
	o.EnsureDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("start identity service: %w", err)
	}
	s := &Service{
		options:  o,
		idle:     o.SessionIdle.Milliseconds(),
		ledger:   l,
		entries:  xsync.NewMap[string, *entry](),
		ending:   xsync.NewMap[string, *entry](),
		accounts: xsync.NewMap[UserID, *account](),
		hasher:   password.NewHasher[hashHolder](o.PasswordCost, o.HashesMax, o.HashesWaitingMax),
		attempts: attempts.New(attemptsMax),
		changes:  make(chan change),
		recheck:  make(chan struct{}, 1),
		stopping: make(chan struct{}),
		stopped:  make(chan struct{}),
	}
	s.directory.Store(o.Directory)
	if err := s.load(); err != nil {
		return nil, fmt.Errorf("load credentials: %w", err)
	}
	if err := s.loadPasswords(); err != nil {
		return nil, fmt.Errorf("load passwords: %w", err)
	}
	go newWriter(s).run()
	return s, nil
}

func (s *Service) load() error {
	for _, kind := range []Kind{Token, Session} {
		err := s.ledger.scan(kind, func(id string, row []byte) {
			e, err := parseCredential(kind, id, row, s.options.SessionMax)
			if err != nil {
				s.corrupt++
				s.options.Log.Error().Err(err).Stringer("kind", kind).Str("credential", id).
					Msg("a stored credential cannot be read and is refused")
				return
			}
			s.entries.Store(e.id, e)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Stop writes the last uses and the ends that are not durable yet, waits until they are durable or ctx ends, and ends
// the writer. Authenticate goes on working; every writing call answers ErrUnavailable.
func (s *Service) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() { close(s.stopping) })
	select {
	case <-s.stopped:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop identity service: last uses are still being written: %w", ctx.Err())
	}
}

// abandon is Stop when another node leads: nothing is written any more, and what waits for the writer gets an error.
func (s *Service) abandon() {
	s.abandoned.Store(true)
	_ = s.Stop(context.Background()) // it waits for nothing
}

// Writable returns nil: a service of a store alone may always write.
func (*Service) Writable() error { return nil }

// SetDirectory makes a new set of roles and users the present one. It holds for every Authenticate that begins after it
// returns.
func (s *Service) SetDirectory(d *Directory) {
	s.directory.Store(d)
	select {
	case s.recheck <- struct{}{}:
	default: // one is waiting already
	}
}

// Directory returns the present roles and users.
func (s *Service) Directory() *Directory { return s.directory.Load() }

// Authenticate returns the principal of a credential of one of the given kinds, or failure.ErrUnauthorized. It neither
// blocks nor allocates, but for the first look at a session with roles of its own. The principal is shared: it must not
// be changed.
func (s *Service) Authenticate(kind Kind, credential string) (*Principal, error) {
	id, secret, ok := split(credential)
	if !ok {
		// The sender knows that this is malformed: there is nothing to hide.
		s.refused.Add(1)
		return nil, failure.ErrUnauthorized
	}
	e, known := s.entries.Load(id)
	if !known {
		e = unknown
	}
	now := s.options.Clock().UnixMilli()
	// NB: the comparison comes first, so that its time does not tell an ended credential from an unknown one.
	if !e.matches(secret) || e.kind&kind == 0 || !e.usable(now, s.idle) && !(kind&Ending != 0 && s.isEnding(e)) {
		s.refused.Add(1)
		return nil, failure.ErrUnauthorized
	}
	p := e.principal(s.directory.Load())
	if p == nil {
		s.refused.Add(1)
		return nil, failure.ErrUnauthorized
	}
	e.touch(now)
	return p, nil
}

// Principal returns a user whose credential another node of the cluster has authenticated, with the rights of the
// present directory. roles are those that the credential has beyond the user's own; unknown ones are ignored.
func (s *Service) Principal(user UserID, roles []string) (*Principal, error) {
	p := s.directory.Load().withRoles(user, roles)
	if p == nil {
		s.refused.Add(1)
		return nil, failure.ErrUnauthorized
	}
	return p, nil
}

func (s *Service) isEnding(e *entry) bool {
	_, ending := s.ending.Load(e.id)
	return ending
}

// Create makes a token or a session and returns its secret text, which exists nowhere else, once its row is durable.
// When ctx ends first the outcome is unknown: the list may show a credential whose secret nobody has. With more
// sessions than Options.SessionsPerUserMax the one that the user used longest ago ends.
func (s *Service) Create(ctx context.Context, kind Kind, c CreateCredential) (string, Credential, error) {
	e, secret, err := s.drawEntry(kind, c)
	if err == nil {
		err = s.submit(ctx, change{create: e})
	}
	if err != nil {
		return "", Credential{}, failure.In("create "+kind.String()+" for", strconv.Quote(string(c.User)), err)
	}
	s.options.Log.Info().Stringer("kind", kind).Str("credential", e.id).Str("user", string(c.User)).
		Msg("credential created")
	return e.id + "." + secret, e.credential(), nil
}

func (s *Service) drawEntry(kind Kind, c CreateCredential) (*entry, string, error) {
	if s.directory.Load().Principal(c.User) == nil {
		return nil, "", errNoUser
	}
	if err := checkNote(c.Note); err != nil {
		return nil, "", err
	}
	if !c.Ends.IsZero() {
		c.Expires = cmp.Or(c.Ends.Sub(s.options.Clock()).Truncate(time.Millisecond), -1)
	}
	if c.Expires < 0 {
		return nil, "", failure.Refuse(failure.ErrInvalid, "it would have expired already")
	}
	if kind == Session {
		if c.Expires > s.options.SessionMax {
			return nil, "", failure.Refuse(failure.ErrInvalid, "a session ends after %g hours in any case: ask for no longer, or change the setting sessionMax", s.options.SessionMax.Hours())
		}
		c.Expires = cmp.Or(c.Expires, s.options.SessionMax)
	}
	id, secret := draw(kind)
	e := &entry{
		id: id, kind: kind, user: c.User, note: c.Note, digest: digest(secret),
		created: s.options.Clock().UnixMilli(),
	}
	switch {
	case !c.Ends.IsZero():
		e.expires = c.Ends.UnixMilli()
	case c.Expires > 0:
		e.expires = e.created + max(1, c.Expires.Milliseconds())
	}
	return e, secret, nil
}

// Revoke ends a credential: it is refused at once, and for good when Revoke has returned nil. id may be a whole
// credential; its secret is neither checked nor repeated. Errors: ErrNotFound; ErrUnavailable after Stop;
// ErrOutcomeUnknown when the store does not confirm it: the credential is refused and the writer tries again, but a
// crash before that brings it back.
func (s *Service) Revoke(ctx context.Context, kind Kind, id string) error {
	id, _, _ = strings.Cut(id, ".")
	if len(id) != idChars {
		return failure.In("revoke", kind.String(), errNoCredential)
	}
	if err := s.submit(ctx, change{revoke: id, kind: kind}); err != nil {
		return failure.In("revoke "+kind.String(), id, err)
	}
	s.options.Log.Info().Stringer("kind", kind).Str("credential", id).Msg("credential revoked")
	return nil
}

// Credentials lists the credentials of the given kinds, oldest first, those that ended lately included.
func (s *Service) Credentials(_ context.Context, kind Kind) ([]Credential, error) {
	var list []Credential
	s.entries.Range(func(_ string, e *entry) bool {
		if e.kind&kind != 0 {
			list = append(list, e.credential())
		}
		return true
	})
	slices.SortFunc(list, func(a, b Credential) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// Metrics returns the counters.
func (s *Service) Metrics() Metrics {
	return Metrics{
		Credentials: s.entries.Size(),
		Corrupt:     s.corrupt,
		Refused:     s.refused.Load(),
		Full:        s.full.Load(),
		WriteFailed: s.writeFailed.Load(),

		SignIns:        s.signIns.Load(),
		SignInsFailed:  s.signInsFailed.Load(),
		SignInsRefused: s.signInsRefused.Load(),
		HashesWaiting:  s.hasher.Waiting(),
		HashesRefused:  s.hasher.Refused(),
	}
}
