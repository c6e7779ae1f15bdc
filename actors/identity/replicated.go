package identity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/puzpuzpuz/xsync/v4"

	"troupe/actors/failure"
	"troupe/actors/guard"
	"troupe/actors/internal/concurrent"
	"troupe/actors/internal/wait"
	"troupe/persistence"
	"troupe/persistence/key"
)

// Identities is what a [Service] and a [Replicated] both are.
type Identities interface {
	Authenticate(kind Kind, credential string) (*Principal, error)
	Principal(user UserID, roles []string) (*Principal, error)
	Directory() *Directory
	SetDirectory(d *Directory)

	// Writable returns an error where the calls below would return failure.ErrNotLeader.
	Writable() error
	Create(ctx context.Context, kind Kind, c CreateCredential) (string, Credential, error)
	Credentials(ctx context.Context, kind Kind) ([]Credential, error)
	Revoke(ctx context.Context, kind Kind, id string) error
	SignIn(ctx context.Context, user UserID, password string, address netip.Addr) (string, *Principal, error)
	SignInVouched(ctx context.Context, v Vouched) (string, *Principal, error)
	SignOut(ctx context.Context, session string) error
	SetPassword(ctx context.Context, user UserID, password string) error

	Metrics() Metrics
	Stop(ctx context.Context) error
}

var (
	_ Identities = (*Service)(nil)
	_ Identities = (*Replicated)(nil)
)

// ReplicatedOptions says how a Replicated works. Store, Fresh and Current must be set.
type ReplicatedOptions struct {
	Options // without its Store
	// Store has a replica of the shard Meta. It must stay open until Stop has returned.
	Store *persistence.Store
	// Fresh says whether this node knows all but the last seconds of what the others have written. It must not block.
	Fresh func() bool
	// Current returns nil when everything in Meta that was acknowledged anywhere before is visible here, or when ctx
	// ends.
	Current func(ctx context.Context) error
	// CurrentMax is how long a credential that is not known waits for Current. 0: 250 ms.
	CurrentMax time.Duration
	// ReadDirectory gives take the directory that the store has, if it can be read, and has no older one given to
	// SetDirectory afterwards. A new leader asks, before it ends the sessions of users who left: what it was given
	// before may be older than those sessions.
	ReadDirectory func(take func(*Directory))
	// TellUses is given the last uses of credentials on this node, and ends that it could not store while it led, all
	// of them every FlushEvery, until the store has them. It must not block. Nil: nobody is told, so a session that is
	// used here alone ends elsewhere.
	TellUses func([]Use)
}

// Replicated is a node's part of the identities of a cluster. All methods but Authenticate, Principal, Directory,
// SetDirectory and Metrics are for the node that leads the shard key.Meta: any other returns failure.ErrNotLeader
// before anything is done. Where the leadership was lost in the middle, so that the outcome is unknown, the error is
// failure.ErrOutcomeUnknown.
type Replicated struct {
	options ReplicatedOptions
	idle    int64 // SessionIdle in milliseconds

	mu        sync.Mutex // orders new directories and terms, and Stop
	directory atomic.Pointer[Directory]
	term      atomic.Pointer[term] // nil: this node does not lead

	// uses has the last uses on this node that the store does not have yet, in Unix milliseconds by id.
	uses concurrent.Map[string, int64]
	// ends has the credentials that ended here while this node led, by id, where the store does not say so yet.
	ends    concurrent.Map[string, struct{}]
	rounds  wait.Rounds
	refused atomic.Uint64

	stopping context.Context // done when Stop was called
	stop     context.CancelFunc
	running  sync.WaitGroup
}

type term struct {
	epoch   uint64
	service atomic.Pointer[Service] // nil until the credentials are loaded
	loaded  chan struct{}           // closed when there is a service
	ended   chan struct{}           // closed when the epoch is over
}

// StartReplicated begins to serve. It returns an error when an option cannot work.
func StartReplicated(o ReplicatedOptions) (*Replicated, error) {
	o.EnsureDefaults()
	o.Options.Store = o.Store
	err := o.validate()
	if o.Store == nil || o.Fresh == nil || o.Current == nil {
		err = errors.Join(err, errors.New("the options Store, Fresh and Current must be set"))
	}
	if err != nil {
		return nil, fmt.Errorf("start identities: %w", err)
	}
	r := &Replicated{options: o, idle: o.SessionIdle.Milliseconds(), uses: xsync.NewMap[string, int64](), ends: xsync.NewMap[string, struct{}]()}
	r.stopping, r.stop = context.WithCancel(context.Background())
	r.rounds.Ask, r.rounds.Context = o.Current, r.stopping
	r.rounds.WaitMax, r.rounds.WaitersMax = cmp.Or(o.CurrentMax, currentWaitMax), currentWaitersMax
	r.directory.Store(o.Directory)
	r.running.Go(func() { guard.Loop(r.stopping.Done(), o.Log, "telling of uses", r.tellUses) })
	o.Store.FollowLeads(leads{r})
	return r, nil
}

type leads struct{ *Replicated }

func (r leads) Led(sh key.Shard, epoch uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if sh != key.Meta || r.stopping.Err() != nil {
		return
	}
	t := &term{epoch: epoch, loaded: make(chan struct{}), ended: make(chan struct{})}
	r.term.Store(t)
	r.running.Go(func() { r.serve(t) })
}

func (r leads) Ended(sh key.Shard, epoch uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.term.Load(); sh == key.Meta && t != nil && t.epoch == epoch {
		r.term.Store(nil)
		close(t.ended)
	}
}

func (r *Replicated) serve(t *term) {
	s := r.load(t)
	if s == nil {
		return
	}
	r.makeFlowKey(t.epoch)
	r.mu.Lock()
	t.service.Store(s)
	s.SetDirectory(r.Directory()) // NB: it may have changed since load
	r.mu.Unlock()
	s.used(r.unstored())
	close(t.loaded)
	select {
	case <-t.ended:
		s.abandon()
		s.eachUnstored(r.noteUse)
		s.ending.Range(func(id string, _ *entry) bool { return r.noteEnd(id) })
	case <-r.stopping.Done():
		_ = s.Stop(context.Background()) // the store answers in any case
	}
}

// confirmMax is how long a change waits for a majority: followers may answer and be unable to write.
const confirmMax = 5 * time.Second

const loadPause = time.Second

func (r *Replicated) load(t *term) *Service {
	for {
		if r.options.ReadDirectory != nil {
			r.options.ReadDirectory(r.SetDirectory)
		}
		o := r.options.Options
		o.Directory = r.Directory()
		s, err := start(o, epochLedger{storeLedger{r.options.Store}, r.options.Store, t.epoch})
		if err == nil {
			s.confirmMax = confirmMax
			return s
		}
		r.options.Log.Error().Err(err).Msg("credentials cannot be loaded, although this node leads them; it tries again")
		select {
		case <-time.After(loadPause):
		case <-t.ended:
			return nil
		case <-r.stopping.Done():
			return nil
		}
	}
}

func (r *Replicated) present() *term {
	if t := r.term.Load(); t != nil && t.epoch == r.options.Store.Epoch(key.Meta) {
		return t
	}
	return nil
}

// lead has the service do what only Meta's leader does. It waits until that is loaded.
func (r *Replicated) lead(ctx context.Context, do func(*Service) error) error {
	return r.leadTerm(ctx, func(t *term) error { return do(t.service.Load()) })
}

func (r *Replicated) leadTerm(ctx context.Context, do func(*term) error) error {
	t := r.present()
	if t == nil {
		return errElsewhere
	}
	select {
	case <-t.loaded:
	case <-t.ended:
		return errElsewhere
	case <-r.stopping.Done():
		return errStopped
	case <-ctx.Done():
		return failure.Errorf(failure.ErrUnavailable, "credentials are being loaded: %w", ctx.Err())
	}
	err := do(t)
	switch {
	case errors.Is(err, errStopped) && r.present() != t: // the epoch ended before it began
		return errElsewhere
	case errors.Is(err, failure.ErrUnauthorized), errors.Is(err, failure.ErrNotFound):
		// NB: another node may lead already, and have what this one does not know.
		if lost := r.confirm(t); lost != nil {
			return lost
		}
	}
	return err
}

// confirm returns nil when nobody else has led since the epoch began.
func (r *Replicated) confirm(t *term) error {
	return failure.OfStore(r.options.Store.AwaitLed(context.Background(), key.Meta, t.epoch))
}

// Writable returns failure.ErrNotLeader unless this node leads Meta.
func (r *Replicated) Writable() error {
	if r.present() == nil {
		return errElsewhere
	}
	return nil
}

// Directory is that of Service.
func (r *Replicated) Directory() *Directory { return r.directory.Load() }

// SetDirectory is that of Service. Only Meta's leader ends the sessions of users who left.
func (r *Replicated) SetDirectory(d *Directory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.directory.Store(d)
	if t := r.term.Load(); t != nil {
		if s := t.service.Load(); s != nil {
			s.SetDirectory(d)
		}
	}
}

// Principal is that of Service.
func (r *Replicated) Principal(user UserID, roles []string) (*Principal, error) {
	p := r.Directory().withRoles(user, roles)
	if p == nil {
		return nil, r.refuse()
	}
	return p, nil
}

// Create is that of Service.
func (r *Replicated) Create(ctx context.Context, kind Kind, c CreateCredential) (secret string, made Credential, err error) {
	err = r.lead(ctx, func(s *Service) (err error) {
		secret, made, err = s.Create(ctx, kind, c)
		return err
	})
	return secret, made, err
}

// Credentials is that of Service.
func (r *Replicated) Credentials(ctx context.Context, kind Kind) (list []Credential, err error) {
	err = r.leadTerm(ctx, func(t *term) error {
		list, _ = t.service.Load().Credentials(ctx, kind)
		return r.confirm(t)
	})
	return list, err
}

// Revoke is that of Service.
func (r *Replicated) Revoke(ctx context.Context, kind Kind, id string) error {
	return r.lead(ctx, func(s *Service) error { return s.Revoke(ctx, kind, id) })
}

// SignIn is that of Service. Failed sign-ins are counted by each leader for itself.
func (r *Replicated) SignIn(ctx context.Context, user UserID, password string, address netip.Addr) (session string, p *Principal, err error) {
	err = r.lead(ctx, func(s *Service) (err error) {
		session, p, err = s.SignIn(ctx, user, password, address)
		return err
	})
	return session, p, err
}

// SignInVouched is that of Service.
func (r *Replicated) SignInVouched(ctx context.Context, v Vouched) (session string, p *Principal, err error) {
	err = r.lead(ctx, func(s *Service) (err error) {
		session, p, err = s.SignInVouched(ctx, v)
		return err
	})
	return session, p, err
}

// SignOut is that of Service.
func (r *Replicated) SignOut(ctx context.Context, session string) error {
	return r.lead(ctx, func(s *Service) error { return s.SignOut(ctx, session) })
}

// SetPassword is that of Service.
func (r *Replicated) SetPassword(ctx context.Context, user UserID, password string) error {
	return r.lead(ctx, func(s *Service) error { return s.SetPassword(ctx, user, password) })
}

// Metrics returns the counters: but for Refused, which counts from Start, those of the present epoch, and zero on a
// node that does not lead.
func (r *Replicated) Metrics() Metrics {
	m := Metrics{}
	if s := r.service(); s != nil {
		m = s.Metrics()
	}
	m.Refused += r.refused.Load()
	return m
}

// Stop stores or tells the last uses, waits until that is done or ctx ends, and ends all goroutines. Authenticate goes
// on working; every writing call answers ErrUnavailable, or ErrNotLeader.
func (r *Replicated) Stop(ctx context.Context) error {
	r.mu.Lock()
	r.stop()
	r.mu.Unlock()
	done := make(chan struct{})
	go func() {
		r.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop identities: last uses are still being written: %w", ctx.Err())
	}
}
