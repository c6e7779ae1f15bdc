package home

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/formportal"
	"troupe/actors/identity"
	"troupe/actors/internal/breaks"
	"troupe/actors/internal/semaphore"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Names of the settings that the published home is kept in, beside those of the catalog and the templates.
const (
	publishedSetting = "home"
	textSettings     = "home/" // and a name of a file
)

// ErrUnpublished is returned by OpenPublished for a store in which no home was published.
var ErrUnpublished = errors.New("no home was published")

// Publication says what is published.
type Publication struct {
	Digest string `json:"digest"` // Set.TextDigest
	Time   int64  `json:"time"`   // Unix milliseconds
	By     string `json:"by"`     // whose home it was
}

// PublishedOptions configures OpenPublished.
type PublishedOptions struct {
	Store     *persistence.Store
	Catalog   *catalog.Catalog
	Templates *formportal.Templates
	// TookAccess is given the users and rights whenever something that is published has changed, before the rest is
	// taken over: that may wait for a shard. There is one call at a time, the newest last. Nil: nobody is told.
	TookAccess func(Access)
	// Took is told afterwards, and why not all of it is in use. There is one call at a time. Nil: nobody is told.
	Took func(err error)
	Log  zerolog.Logger
}

// Published is the home of a cluster. It is kept in the shard Meta, which every node has: one publishes, and all
// follow.
type Published struct {
	o      PublishedOptions
	follow *follower

	// turn has an entry while a home is published, or what was published is taken over, also over Took: the newest is
	// given last.
	turn    chan struct{}
	access  atomic.Pointer[Access] // as it was taken over last; written in turn
	reading sync.Mutex             // held from the read of users and rights until they are taken over

	starting, stopping sync.Once
	running            sync.WaitGroup
}

// OpenPublished reads who may do what. Changes are taken over from Start on, those from before Start included.
func OpenPublished(o PublishedOptions) (*Published, error) {
	p := &Published{o: o, turn: make(chan struct{}, 1)}
	p.follow = newFollower(p.changed, 0)
	p.follow.log = o.Log
	o.Store.Follow(p)
	poke(p.follow.changed) // NB: what the catalog and the templates have may be older
	_, err := p.Publication()
	if err != nil {
		return nil, err
	}
	access, err := p.loadAccess()
	if err != nil {
		return nil, fmt.Errorf("read published home: %w", err)
	}
	p.access.Store(&access)
	return p, nil
}

// IsPublished reports whether a store has a published home.
func IsPublished(s *persistence.Store) (bool, error) {
	_, err := s.Load(key.Setting(nil, publishedSetting))
	if errors.Is(err, persistence.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Access is who may do what, as it is published.
func (p *Published) Access() Access { return *p.access.Load() }

// Publication says what is published now. ErrUnpublished: nothing.
func (p *Published) Publication() (now Publication, err error) {
	text, err := p.o.Store.Load(key.Setting(nil, publishedSetting))
	if errors.Is(err, persistence.ErrNotFound) {
		return now, ErrUnpublished
	}
	if err == nil {
		err = json.Unmarshal(text, &now)
	}
	if err != nil {
		return now, fmt.Errorf("read what is published: %w", err)
	}
	return now, nil
}

// Start begins to take changes over. It can be called again, and does nothing after Stop.
func (p *Published) Start() {
	p.starting.Do(func() { p.running.Go(p.follow.loop) })
}

// Stop ends it, and returns when nothing is being taken over any more or ctx ends.
func (p *Published) Stop(ctx context.Context) error {
	p.starting.Do(func() {}) // NB: a Start that comes later does nothing
	p.stopping.Do(func() { close(p.follow.stop) })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.running.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop following what is published: %w", ctx.Err())
	}
}

// Changed implements persistence.Follower.
func (p *Published) Changed(keys [][]byte) {
	for _, k := range keys {
		row, ok := key.Parse(k)
		if ok && (catalog.Concerns(row) || formportal.ConcernsTemplates(row) || concerns(row)) {
			poke(p.follow.changed)
			return
		}
	}
}

// Replaced implements persistence.Follower.
func (p *Published) Replaced() { poke(p.follow.changed) }

func concerns(row key.Parts) bool {
	return row.Table == "setting" && (row.Name == publishedSetting || strings.HasPrefix(row.Name, textSettings))
}

func (p *Published) changed() (again bool) {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	return p.take() != nil
}

// What cannot be read stays as it was.
func (p *Published) take() error {
	err := p.ReadAccess(func(access Access) {
		p.access.Store(&access)
		if p.o.TookAccess != nil {
			p.o.TookAccess(access)
		}
	})
	err = errors.Join(err, p.o.Catalog.Reload(), p.o.Templates.Reload())
	if p.o.Took != nil {
		p.o.Took(err)
	}
	return err
}

// ReadAccess gives take the users and rights that the store has, if they can be read.
func (p *Published) ReadAccess(take func(Access)) error {
	p.reading.Lock()
	defer p.reading.Unlock()
	access, err := p.loadAccess()
	if access.Directory != nil && access.Rights != nil {
		take(access)
	}
	return err
}

func (p *Published) loadAccess() (Access, error) {
	files, err := accessFiles(p.o.Store)
	if err != nil {
		return Access{}, err
	}
	return LoadAccess(files)
}

func accessFiles(s *persistence.Store) (memory, error) {
	files := memory{}
	for _, name := range []string{IdentityFile, RightsFile} {
		row, err := s.Load(key.Setting(nil, textSettings+name))
		if errors.Is(err, persistence.ErrNotFound) {
			continue
		}
		var text string
		if err == nil {
			err = json.Unmarshal(row, &text)
		}
		if err != nil {
			return nil, fmt.Errorf("read published %s: %w", name, err)
		}
		files[name] = packed{text: []byte(text)}
	}
	return files, nil
}

// PublishedFiles are the files that a store has the published home of: their texts by their paths.
func PublishedFiles(s *persistence.Store) (map[string][]byte, error) {
	access, err := accessFiles(s)
	files, err2 := catalog.Files(s)
	templates, err3 := formportal.Files(s)
	for name, file := range access {
		if len(file.text) > 0 {
			files[name] = file.text
		}
	}
	maps.Copy(files, templates)
	return files, errors.Join(err, err2, err3)
}

// IsPublishable reports whether a path in a home is that of a file that is published where there is a cluster.
func IsPublishable(file string) bool {
	first, _, deeper := strings.Cut(file, "/")
	return deeper && slices.Contains(folders, first) || file == IdentityFile || file == RightsFile
}

// Check returns the faults for which Publish would refuse the set now. Nothing is changed.
func (p *Published) Check(set *Set) error {
	if _, err := p.o.Templates.Prepare(set.Templates); err != nil {
		return err
	}
	return p.o.Catalog.Check(set.Workflows)
}

// Publish makes a set without faults what is published: all of it in one commit, or nothing. When it returns nil, it is
// durable and in use on this node; others follow.
func (p *Published) Publish(set *Set, by string) error {
	p.turn <- struct{}{}
	defer func() { <-p.turn }()
	if err := PublishFirst(p.o, set, by); err != nil {
		return err
	}
	return p.take()
}

// PublishFirst is Publish on a store in which nothing was published yet. Nobody is told.
func PublishFirst(o PublishedOptions, set *Set, by string) error {
	templates, err := o.Templates.Prepare(set.Templates)
	if err != nil {
		return err
	}
	return o.Catalog.Publish(set.Workflows, templates,
		row{textSettings + IdentityFile, string(set.identity)},
		row{textSettings + RightsFile, string(set.rights)},
		row{publishedSetting, Publication{Digest: set.TextDigest(), Time: time.Now().UnixMilli(), By: by}})
}

type row struct {
	name  string
	value any
}

func (r row) Setting() (name string, value any, empty bool) { return r.name, r.value, false }

// Install implements catalog.Companion: Published takes over what is in the store.
func (r row) Install() {}

// Queue lets definitions that somebody sends be read and checked one after the other, fairly between users: that takes
// seconds for a file at its limits (statemachine/DEFINITION.md, "Limits"), and must leave a processor to the events.
type Queue struct {
	ctx   context.Context //nolint:containedctx // the life of the queue
	slots *semaphore.Semaphore[identity.UserID]
}

// checkFree is how long a definition is checked without a break.
const checkFree = 20 * time.Millisecond

// NewQueue returns a queue that ends with ctx.
func NewQueue(ctx context.Context) *Queue {
	// NB: one of two processors, else two.
	return &Queue{ctx, semaphore.New[identity.UserID](max(1, min(2, runtime.GOMAXPROCS(0)-1)))}
}

// Do calls check when it is the user's turn. parser is parser until ctx or the queue ends: then check is not called, or
// its parser gives up between two expressions.
func (q *Queue) Do(ctx context.Context, user identity.UserID, parser *statemachine.Parser, check func(parser *statemachine.Parser) error) error {
	return q.do(ctx, user, func(ended func() error) error { return check(parser.Until(ended)) })
}

// do calls work, which asks ended often: it takes breaks there, and ends when that has an error.
func (q *Queue) do(ctx context.Context, user identity.UserID, work func(ended func() error) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.ctx, cancel)()
	pauses := breaks.New(checkFree, 1, 1)
	ended := func() error { return cmp.Or(q.ctx.Err(), ctx.Err()) } // NB: AfterFunc cancels a little later
	asked := func() error {
		pauses.Take(ctx.Done())
		return ended()
	}
	slot := q.slots.Slot(user)
	err := cmp.Or(ended(), slot.Acquire(ctx))
	defer slot.Release()
	if err == nil {
		pauses.Begin()
		err = work(asked)
	}
	if why := ended(); why != nil && err != nil {
		return failure.Errorf(failure.ErrUnavailable, "check a definition: %w", why)
	}
	return err
}
