package bulk

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/rs/zerolog"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/migration"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

const (
	// JobsMax is how many jobs are kept; a new one takes the place of the oldest that has ended.
	JobsMax = 100
	// lookEvery is the time between two looks at the jobs.
	lookEvery = time.Second
	// atOnce is how many shards work at a time on a node, and each rests for as long as it has worked: callers come first.
	atOnce = 2
	// pageMax is how many instances have their turn between two writes of the progress.
	pageMax = 64
	// countMax is how long counting may take.
	countMax = time.Second
	// clearEvery is the time between two looks for jobs that have ended, and clearMax how long one may take.
	clearEvery = 10 * time.Second
	clearMax   = time.Second
)

// setting begins the names of the rows of jobs.
const setting = "bulk-"

// Options configures a Service. All but Current and Audit must be set.
type Options struct {
	Store   *persistence.Store
	Clock   func() time.Time
	Log     zerolog.Logger
	Queries *query.Service
	// Principal returns a user with the rights of now, or why there is none.
	Principal func(identity.UserID) (*identity.Principal, error)
	// KnowsEvent is an error unless some version of a workflow has an event.
	KnowsEvent func(workflow string, event statemachine.EventName) error
	// MaySend says why a caller may not send events to instances of a workflow at all.
	MaySend func(*message.Event, time.Time) error
	// Send, Reset and Delete are those of an instance that is led here.
	Send   func(context.Context, *message.Event) (*message.Reply, error)
	Reset  func(context.Context, *message.Reset) (*message.Reply, error)
	Delete func(ctx context.Context, user, workflow, instance string) error
	// Current is that of the router. Nil: the store is standalone.
	Current func(context.Context, key.Shard) error
	// Audit is told who has created and changed which job. Nil: nobody asks.
	Audit func(ctx context.Context, actor, action, target string) error
}

// Migrations checks plans, and migrates instances that are led here.
type Migrations interface {
	Check(*migration.Request) (from uint64, err error)
	Here(context.Context, *migration.Part) ([]migration.Outcome, error)
}

// Service has the jobs of all nodes, and works on them in the shards that are led here. Its methods are safe for
// concurrent use.
type Service struct {
	o          Options
	migrations atomic.Pointer[Migrations]
	turns      chan struct{} // has room for atOnce
	changing   chan struct{} // has room for one, who writes rows of jobs

	mu      sync.Mutex
	known   []Job // guarded by mu; all that there were at that time
	at      time.Time
	cleared time.Time // guarded by mu; when the last clear began
}

// New returns a service that works on nothing before Begin.
func New(o Options) *Service {
	return &Service{o: o, turns: make(chan struct{}, atOnce), changing: make(chan struct{}, 1)}
}

// UseMigrations has jobs with a plan go on.
func (s *Service) UseMigrations(m Migrations) { s.migrations.Store(&m) }

// Create begins a job for its creator, and returns it with its id when that is durable; with dryRun it only counts, and
// there is no id. It is for the node that leads Meta: failure.ErrNotLeader. The other errors are those of a query, of a
// plan, and failure.ErrForbidden without the right to send to the workflow.
func (s *Service) Create(ctx context.Context, by *identity.Principal, j *Job, dryRun bool) error {
	err := s.create(ctx, by, j, dryRun)
	return failure.In("create bulk job for", j.WorkflowID, err)
}

func (s *Service) create(ctx context.Context, by *identity.Principal, j *Job, dryRun bool) error {
	epoch, err := s.lead(ctx)
	if err != nil {
		return err
	}
	j.By, j.Created, j.Status = string(by.ID), s.o.Clock().UTC(), Running
	switch {
	case j.Event != "":
		if err = s.o.MaySend(&message.Event{Caller: by, WorkflowID: j.WorkflowID}, j.Created); err == nil {
			err = s.o.KnowsEvent(j.WorkflowID, statemachine.EventName(j.Event))
		}
	case j.Plan != nil:
		m := s.migrations.Load()
		if m == nil {
			return failure.ErrUnavailable
		}
		j.From, err = (*m).Check(j.plan(by))
	}
	if err == nil {
		err = s.count(ctx, by, j)
	}
	if err != nil || dryRun {
		return err
	}
	j.ID = ulid.MustNew(ulid.Timestamp(j.Created), ulid.DefaultEntropy()).String()
	if err := s.begin(ctx); err != nil { // NB: two at a time would make room for one
		return err
	}
	defer s.end()
	w := s.o.Store.NewBatchIn(key.Meta, epoch)
	if err := s.makeRoom(ctx, w); err != nil {
		w.Discard()
		return err
	}
	return s.put(ctx, w, j, j.By, "start")
}

// begin waits for its turn to write rows of jobs, which end ends.
func (s *Service) begin(ctx context.Context) error {
	select {
	case s.changing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return failure.Errorf(failure.ErrBusy, "another bulk job is being changed: %w", ctx.Err())
	}
}

func (s *Service) end() { <-s.changing }

// put writes a job as somebody has changed it.
func (s *Service) put(ctx context.Context, w *persistence.Batch, j *Job, who, action string) error {
	w.Set(j.row(), write(j))
	err := failure.OfStore(s.o.Store.Commit(w))
	if err == nil && s.o.Audit != nil {
		err = s.o.Audit(ctx, who, "bulk."+action, j.WorkflowID+"/"+j.ID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = time.Time{}
	return err
}

func (j *Job) plan(by *identity.Principal) *migration.Request {
	return &migration.Request{Caller: by, WorkflowID: j.WorkflowID, File: j.File, Plan: j.Plan}
}

// request finds the instances of a job.
func (j *Job) request(by *identity.Principal) *query.Request {
	return &query.Request{Caller: by, WorkflowID: j.WorkflowID, Filter: j.Filter, Limit: 1, Version: j.From, Everyones: j.Event == "" && j.Reset == nil, Whole: true}
}

func (s *Service) count(ctx context.Context, by *identity.Principal, j *Job) error {
	ctx, cancel := context.WithTimeout(ctx, countMax)
	defer cancel()
	counting := j.request(by)
	counting.Count = true
	end, err := s.o.Queries.Query(ctx, counting, func([]byte) error { return nil })
	if err == nil {
		j.Total = &end.Count
	} else if ctx.Err() != nil {
		err = nil
	}
	return err
}

// makeRoom removes the oldest job that has ended, where there are too many.
func (s *Service) makeRoom(ctx context.Context, w *persistence.Batch) error {
	jobs, err := s.load()
	if err != nil || len(jobs) < JobsMax {
		return err
	}
	for _, old := range jobs {
		state, err := s.state(ctx, old)
		if err != nil {
			return err
		}
		if state.isOver() {
			w.Delete(old.row())
			return nil
		}
	}
	return failure.Refuse(failure.ErrConflict, "there are %d bulk jobs that have not ended: cancel one", JobsMax)
}

// Change pauses, resumes or ends a job, and returns when that is durable: failure.ErrNotFound, and failure.ErrConflict
// for one that has ended otherwise. It is for the node that leads Meta.
func (s *Service) Change(ctx context.Context, who, id string, action Action) error {
	return failure.In(string(action), "bulk job "+id, s.change(ctx, who, id, action))
}

func (s *Service) change(ctx context.Context, who, id string, action Action) error {
	epoch, err := s.lead(ctx)
	if err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	state, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	to := map[Action]Status{Pause: Paused, Resume: Running, Cancel: Cancelled}[action]
	switch {
	case state.Status == to:
		return nil
	case state.isOver():
		return failure.Refuse(failure.ErrConflict, "the job is %s", state.Status)
	}
	state.Job.Status = to
	return s.put(ctx, s.o.Store.NewBatchIn(key.Meta, epoch), &state.Job, who, string(action))
}

// lead returns the epoch of Meta, in which all that was written before is here.
func (s *Service) lead(ctx context.Context) (epoch uint64, err error) {
	epoch = s.o.Store.Epoch(key.Meta)
	switch {
	case s.o.Store.Standalone():
		return epoch, nil
	case epoch == 0:
		return 0, failure.Elsewhere(uint16(key.Meta))
	}
	return epoch, failure.OfStore(s.o.Store.AwaitLed(ctx, key.Meta, epoch))
}

// Find returns a job as it is after everything that was acknowledged: failure.ErrNotFound.
func (s *Service) Find(ctx context.Context, id string) (*State, error) {
	err := s.current(ctx)
	var state *State
	if err == nil {
		state, err = s.find(ctx, id)
	}
	return state, failure.In("show", "bulk job "+id, err)
}

// List returns all jobs, the newest first.
func (s *Service) List(ctx context.Context) ([]*State, error) {
	err := s.current(ctx)
	var jobs []Job
	if err == nil {
		jobs, err = s.load()
	}
	out := []*State{}
	for _, j := range slices.Backward(jobs) {
		if err != nil {
			break
		}
		var state *State
		state, err = s.state(ctx, j)
		out = append(out, state)
	}
	return out, failure.In("list", "bulk jobs", err)
}

func (s *Service) current(ctx context.Context) error {
	if s.o.Current == nil {
		return nil
	}
	return s.o.Current(ctx, key.Meta)
}

func (j *Job) row() []byte { return key.Setting(nil, setting+j.ID) }

func (s *Service) find(ctx context.Context, id string) (*State, error) {
	if _, err := ulid.ParseStrict(id); err != nil {
		return nil, failure.ErrNotFound
	}
	j := Job{ID: id}
	stored, err := s.o.Store.Load(j.row())
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, failure.ErrNotFound
	}
	if err == nil {
		err = read(stored, &j)
	}
	if err != nil {
		return nil, failure.OfStore(err)
	}
	return s.state(ctx, j)
}

// PauseAll has the running jobs of a store be paused, with w: nobody works on them.
func PauseAll(store *persistence.Store, w *persistence.Batch) error {
	jobs, err := load(store)
	for _, j := range jobs {
		if j.Status == Running {
			j.Status = Paused
			w.Set(j.row(), write(j))
		}
	}
	return err
}

func (s *Service) load() ([]Job, error) { return load(s.o.Store) }

// load reads all jobs that are here, the oldest first.
func load(store *persistence.Store) (jobs []Job, err error) {
	err = store.Scan(key.SettingsPrefix(nil), func(row, stored []byte) error {
		k, ok := key.Parse(row)
		if !ok || !strings.HasPrefix(k.Name, setting) {
			return nil
		}
		j := Job{}
		err := read(stored, &j)
		jobs = append(jobs, j)
		return err
	})
	slices.SortFunc(jobs, func(a, b Job) int { return cmp.Compare(a.ID, b.ID) })
	return jobs, failure.OfStore(err)
}

// jobs are those that there were a moment ago: all shards share a look.
func (s *Service) jobs() ([]Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at) < lookEvery/2 {
		return s.known, nil
	}
	jobs, err := s.load()
	if err == nil {
		s.known, s.at = jobs, time.Now()
	}
	return jobs, err
}

func (s *Service) state(ctx context.Context, j Job) (*State, error) {
	shards := s.o.Store.Numbered()
	keys := make([][]byte, len(shards))
	for i, sh := range shards {
		keys[i] = key.Bulk(nil, sh, j.place())
	}
	state := &State{Job: j, Failures: []Failure{}}
	err := s.o.Queries.ReadKeys(ctx, statemachine.System, keys, func(from query.Loader) error {
		parts := make([]progress, 0, len(keys))
		for _, k := range keys {
			stored, err := from.Load(k)
			if errors.Is(err, persistence.ErrNotFound) { // it has not begun there
				continue
			}
			p := progress{}
			if err == nil {
				err = read(stored, &p)
			}
			if err != nil {
				return err
			}
			parts = append(parts, p)
		}
		state.add(parts, len(shards))
		return nil
	})
	return state, failure.OfStore(err)
}
