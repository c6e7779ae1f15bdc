package repository

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors"
	"troupe/actors/failure"
	"troupe/actors/guard"
	"troupe/actors/identity"
	"troupe/actors/internal/supervise"
)

// Options configures a Service. What has no default is required.
type Options struct {
	System *actors.System
	// Source is where the files are. The service does not close it.
	Source Source
	// Rights says who reads what until SetRights says otherwise. Nil: as without a rights.yaml.
	Rights *Rights
	// WaitMax bounds how long List waits for the index after a start. Default 30 s.
	WaitMax time.Duration
	// Settle is how long a change waits for others before it is looked at. Default 100 ms.
	Settle time.Duration
	// Reconcile is the pause between two walks of everything, which find what no notice was given of. Default 10 min.
	Reconcile time.Duration
	// ReconcileUnwatched takes the place of Reconcile while there are folders that the source cannot watch. Default 1
	// min.
	ReconcileUnwatched time.Duration
	// DepthMax is how many folders deep a file may be; deeper ones are neither listed nor opened. Default 256.
	DepthMax int
	Log      zerolog.Logger
}

// Service is the way to the supervisor of the repository. Errors are those of package failure.
type Service struct {
	o          Options
	supervisor *supervise.Supervisor
	index      *index
	rights     atomic.Pointer[Rights]
	nowhere    string        // a path that no file has
	stopping   chan struct{} // closed by Stop
	stop       func()        // closes it
	cancel     context.CancelFunc
	running    sync.WaitGroup // the index and the watch

	listed, opened, waited atomic.Int64
}

// Start spawns the supervisor and begins to index, in the background. Stop must be called.
func Start(o Options) *Service {
	o.WaitMax = cmp.Or(o.WaitMax, 30*time.Second)
	o.Settle = cmp.Or(o.Settle, 100*time.Millisecond)
	o.Reconcile = cmp.Or(o.Reconcile, 10*time.Minute)
	o.ReconcileUnwatched = cmp.Or(o.ReconcileUnwatched, time.Minute)
	o.DepthMax = cmp.Or(o.DepthMax, 256)
	s := &Service{o: o, stopping: make(chan struct{}), nowhere: top + rand.Text(), supervisor: supervise.Start(supervise.Options{System: o.System, Name: "repository", Log: o.Log})}
	s.stop = sync.OnceFunc(func() { close(s.stopping) })
	s.SetRights(o.Rights)
	s.index = newIndex(&s.o)
	var ctx context.Context
	ctx, s.cancel = context.WithCancel(context.Background())
	s.running.Go(func() { guard.Loop(ctx.Done(), o.Log, "files index", func() { s.index.run(ctx) }) })
	s.running.Go(func() { s.index.watch(ctx) })
	return s
}

// Stop refuses new requests, and those that wait for the index, waits until the open ones are answered or ctx ends, and
// ends the index.
func (s *Service) Stop(ctx context.Context) error {
	s.stop()
	err := s.supervisor.Stop(ctx)
	s.cancel()
	s.running.Wait()
	return err
}

// SetRights replaces the rights, for requests that come later; nil is as without a rights.yaml.
func (s *Service) SetRights(r *Rights) {
	if r == nil {
		r = &Rights{}
	}
	s.rights.Store(r)
}

// Ready returns nil once the files are indexed. Requests are taken before: List waits, Open does not need the index.
func (s *Service) Ready() error {
	if s.index.current.Load() == nil {
		return errIndexing
	}
	return nil
}

// List calls yield with the path of each file whose name ends with a dot and the extension and that the caller may
// read, in ascending order (gateway/INTERFACE.md, "Files"). It sees files and rights as of one moment. While the index
// is being built List waits, as long as ctx and Options.WaitMax allow, and then returns failure.ErrUnavailable.
func (s *Service) List(ctx context.Context, caller *identity.Principal, extension string, yield func(path string) error) error {
	wanted, err := ParseExtension(extension)
	if err != nil {
		return failure.In("repository: list", "", err)
	}
	files, err := s.files(ctx) // NB: not under the supervisor, where waiting lists would take the workers from Open
	if err != nil {
		return failure.In("repository: list", "", err)
	}
	return s.do(ctx, caller, "list", func(ctx context.Context) error {
		s.listed.Add(1)
		return files.list(ctx, wanted, s.rights.Load().view(caller), yield)
	})
}

func (s *Service) files(ctx context.Context) (*snapshot, error) {
	if now := s.index.current.Load(); now != nil {
		return now, nil
	}
	s.waited.Add(1)
	late := time.NewTimer(s.o.WaitMax)
	defer late.Stop()
	select {
	case <-s.index.ready:
		return s.index.current.Load(), nil
	case <-ctx.Done():
	case <-late.C:
	case <-s.stopping:
	}
	return nil, failure.Errorf(failure.ErrUnavailable, "%w", errIndexing)
}

// Open opens a file that the caller may read. A missing file, one that the caller may not read, what is not a regular file
// and what is not a canonical path are failure.ErrNotFound, in the same words. A file that is too large is
// failure.ErrTooLarge. One that cannot be reached now is failure.ErrUnavailable, also when it is read.
func (s *Service) Open(ctx context.Context, caller *identity.Principal, path string) (file *File, err error) {
	err = s.do(ctx, caller, "open", func(ctx context.Context) (err error) {
		s.opened.Add(1)
		if !IsPath(path) || depth(path) > s.o.DepthMax+1 || !s.rights.Load().Reads(caller, path) {
			path = s.nowhere // NB: the source is asked as for a missing file, so that both take the same time
		}
		file, err = s.o.Source.Open(ctx, path)
		switch {
		case err == nil, errors.Is(err, failure.ErrTooLarge), errors.Is(err, failure.ErrUnavailable):
			return err
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
			return failure.ErrNotFound // NB: without the error, which has the path
		case ctx.Err() != nil:
			return ctx.Err()
		}
		return failure.Errorf(failure.ErrInternal, "%w", err)
	})
	return file, err
}

func (s *Service) do(ctx context.Context, caller *identity.Principal, name string, work func(context.Context) error) error {
	return failure.In("repository: "+name, "", s.supervisor.Do(ctx, caller.ID, name, work))
}

// Metrics are the counters of a Service.
type Metrics struct {
	Supervisor supervise.Metrics
	// Files and Folders are what is indexed now. Last is what the last walk of everything met besides.
	Files, Folders int64
	Last           Found
	// Walks of everything, folders listed, changes that were told, and those that said that anything may have changed.
	Walks, Lists, Changes, Lost int64
	Listed, Opened, Waited      int64 // Listed and Opened count requests; Waited those that waited for the index
}

// Metrics returns the counters as they are now.
func (s *Service) Metrics() Metrics {
	x := s.index
	m := Metrics{
		Supervisor: s.supervisor.Metrics(),
		Walks:      x.counters.walks.Load(), Lists: x.counters.lists.Load(), Changes: x.counters.changes.Load(), Lost: x.counters.lost.Load(),
		Listed: s.listed.Load(), Opened: s.opened.Load(), Waited: s.waited.Load(),
	}
	if now := x.current.Load(); now != nil {
		m.Files, m.Folders = int64(now.files), int64(now.folders)
	}
	if last := x.last.Load(); last != nil {
		m.Last = *last
	}
	return m
}
