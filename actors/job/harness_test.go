package job

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/identity"
	_ "troupe/internal/fixedseed"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// world is a service with instances that do what the actors of real ones do with the rows of jobs, and nothing else.
type world struct {
	t       testing.TB
	disk    *storetest.Disk
	store   *persistence.Store
	service *Service
	counted *countedRows
	end     context.CancelFunc
	runs    sync.WaitGroup

	types map[string][]catalog.JobType

	mu        sync.Mutex
	instances map[key.ID]*fake
	done      []string // the jobs that were completed, in order
}

// fake is an instance.
type fake struct {
	mu       sync.Mutex // as the actor does one thing after the other
	workflow string
	jobs     []statemachine.Job
	keeps    bool // it takes no failure
}

// countedRows counts the rows that are read.
type countedRows struct {
	*persistence.Store
	mu   sync.Mutex
	read int
}

func (c *countedRows) count() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.read++
}

func (c *countedRows) reads() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.read
	c.read = 0
	return n
}

func (c *countedRows) Load(k []byte) ([]byte, error) {
	c.count()
	return c.Store.Load(k)
}

func (c *countedRows) ScanRanges(visit func(k, value []byte) error, ranges ...key.Range) error {
	return c.Store.ScanRanges(func(k, value []byte) error {
		c.count()
		return visit(k, value)
	}, ranges...)
}

func newWorld(t testing.TB, shards int) *world {
	w := &world{t: t, disk: storetest.NewDisk(), instances: map[key.ID]*fake{}, types: map[string][]catalog.JobType{}}
	for _, workflow := range []string{"a", "b"} {
		w.types["work"] = append(w.types["work"], catalog.JobType{Workflow: workflow, JobType: usual()})
	}
	w.open(shards)
	return w
}

func usual() *statemachine.JobType {
	return &statemachine.JobType{Retry: statemachine.Retry{RetryLimit: 2, Delay: 5 * time.Second, MaxDelay: time.Hour, Backoff: 2}, Timeout: time.Minute}
}

func (w *world) open(shards int) {
	var err error
	w.store, err = w.disk.Open(persistence.Options{Shards: shards})
	require.NoError(w.t, err)
	w.service = New(Options{
		Store: w.store, Clock: time.Now, Log: zerolog.Nop(), Types: func(typ string) []catalog.JobType { return w.types[typ] },
		Finish: w.finish, Again: w.again,
	})
	w.counted = &countedRows{Store: w.store}
	w.service.rows = w.counted
	ctx, end := context.WithCancel(context.Background())
	w.end = end
	for _, sh := range w.store.Numbered() {
		w.runs.Go(w.service.Begin(ctx, sh, w.store.Epoch(sh)))
		<-w.service.led[sh].loaded
	}
}

func (w *world) close() {
	w.end()
	w.runs.Wait()
	w.service.Stop()
	require.NoError(w.t, w.store.Close())
}

// crash has the process end without a warning, and begin again.
func (w *world) crash(shards int) {
	after := w.disk.AfterCrash()
	w.close()
	w.disk = after
	w.open(shards)
}

func (w *world) fakeOf(id key.ID) *fake {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.instances[id]
}

// begin has a new instance enter a state with a job.
func (w *world) begin(n int, workflow, typ string, priority int) string {
	id := key.ID{0: byte(n), 1: byte(n >> 8), 2: byte(n >> 16), 15: 1}
	f := &fake{workflow: workflow}
	w.mu.Lock()
	w.instances[id] = f
	w.mu.Unlock()
	j := statemachine.Job{ID: statemachine.ElementID{Sequence: 1}, Type: typ, Begun: time.Now(), Priority: priority, Data: data.Value(fmt.Sprint(n))}
	f.mu.Lock()
	defer f.mu.Unlock()
	require.NoError(w.t, w.commit(id, f, nil, nil, []statemachine.Job{j}))
	return IDOf(id, j.ID)
}

// leave has an instance leave the state of its job.
func (w *world) leave(jobID string) {
	name, _ := parseID(jobID)
	f := w.fakeOf(name.ID)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.jobs) > 0 {
		require.NoError(w.t, w.commit(name.ID, f, nil, f.jobs, nil))
	}
}

type told struct {
	applied func()
	done    chan error
}

func (t told) Applied()            { t.applied() }
func (t told) Committed(err error) { t.done <- err }

func (w *world) commit(id key.ID, f *fake, settled *Settled, over, begun []statemachine.Job) error {
	sh := w.store.ShardOf(id)
	b := w.store.NewBatch(sh)
	changes := Put(b, &Origin{Shard: sh, Workflow: f.workflow, Version: 1, Instance: id, At: time.Now(), Settled: settled}, over, begun)
	service, t := w.service, told{done: make(chan error, 1)}
	t.applied = func() { service.Changed(sh, changes) }
	w.store.Append(b, t)
	err := <-t.done
	if err == nil {
		f.jobs = slices.Clone(begun)
	}
	return err
}

func (w *world) finish(of *Finish, done func(error)) {
	go func() {
		f := w.fakeOf(of.Job.ID)
		f.mu.Lock()
		defer f.mu.Unlock()
		var open *statemachine.Job
		if i := slices.IndexFunc(f.jobs, func(j statemachine.Job) bool { return j.ID == elementOf(of.Job) }); i >= 0 {
			open = &f.jobs[i]
		}
		sh := w.store.ShardOf(of.Job.ID)
		s, err := w.service.Settle(w.counted.Load, sh, w.store.Epoch(sh), of, open)
		if s == nil || err != nil {
			done(err)
			return
		}
		begun := []statemachine.Job(nil)
		if of.Failed && f.keeps {
			begun = slices.Clone(f.jobs)
			begun[0].Failed = true
		}
		if err = w.commit(of.Job.ID, f, s, f.jobs, begun); err == nil && !of.Failed {
			w.mu.Lock()
			w.done = append(w.done, IDOf(of.Job.ID, elementOf(of.Job)))
			w.mu.Unlock()
		}
		done(err)
	}()
}

func (w *world) again(_ string, of key.Job, done func(error)) {
	go func() {
		f := w.fakeOf(of.ID)
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.jobs) == 0 || !f.jobs[0].Failed {
			done(failure.ErrNotFound)
			return
		}
		next := slices.Clone(f.jobs)
		next[0].Failed = false
		done(w.commit(of.ID, f, nil, f.jobs, next))
	}()
}

var worker = &identity.Principal{ID: "worker", Privileges: []string{string(identity.Jobs)}}

func (w *world) activate(most int, wait time.Duration, types ...string) []Leased {
	leased, err := w.service.Activate(context.Background(), &Activation{Caller: worker, Types: types, Worker: "w", Max: most, Wait: wait})
	require.NoError(w.t, err)
	return leased
}

func (w *world) change(action Action, items ...Item) []error {
	errs, err := w.service.Change(context.Background(), &Request{Caller: worker, Action: action, Items: items})
	require.NoError(w.t, err)
	return errs
}

func (w *world) change1(action Action, it Item) error { return w.change(action, it)[0] }

func idsOf(leased []Leased) (ids []string) {
	for i := range leased {
		ids = append(ids, leased[i].JobID)
	}
	return ids
}

var nobody = &identity.Principal{ID: "nobody"}

// checkInBubbles is rapid.Check with each case in a bubble of its own.
func checkInBubbles(t *testing.T, check func(*testing.T, *rapid.T)) {
	rapid.Check(t, func(rt *rapid.T) {
		var failure any
		synctest.Test(t, func(t *testing.T) {
			defer func() { failure = recover() }() // NB: rapid fails by a panic, which must not end the bubble.
			check(t, rt)
		})
		if failure != nil {
			panic(failure)
		}
	})
}
