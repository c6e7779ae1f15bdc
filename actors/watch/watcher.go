package watch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/changefeed"
	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/history"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/filter"
)

// heartbeatEvery is how often a watcher for whom there is nothing is told so.
const heartbeatEvery = 15 * time.Second

// Watch calls yield with Opened, then with each history entry that becomes durable, in the order of the commits, as far
// as the caller may see the instance as the entry left it, and the filter matches it. It says Lost where entries are
// missing, and Heartbeat when there is nothing to say.
//
// It returns nil when the service stops, ctx's error, yield's own, or why the request is refused: failure.ErrInvalid,
// failure.ErrForbidden, failure.ErrNotFound, and failure.ErrUnavailable.
func (s *Service) Watch(ctx context.Context, req *Request, yield func(Event) error) error {
	if s.kind != nil {
		return s.merged(ctx, req, yield)
	}
	w := &watcher{service: s, req: req, caller: catalog.CallerOf(req.Caller), shards: s.o.Store.Numbered(), yield: yield}
	return w.watch(ctx)
}

func (w *watcher) watch(ctx context.Context) error {
	s := w.service
	var cancel context.CancelFunc
	w.ctx, cancel = context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.stopped, cancel)()
	if err := w.open(ctx); err != nil {
		return failure.In("watch", w.req.WorkflowID, err)
	}
	defer func() { s.feeds.leave(w.feed, time.Now()) }()
	err := w.run(ctx)
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}

type watcher struct {
	service   *Service
	req       *Request
	caller    *statemachine.Caller
	shards    []key.Shard // whose entries it tells
	isPart    bool        // of a watch that is merged
	filter    *filter.Filter
	yield     func(Event) error
	ctx       context.Context // of the filters that take long; ends also with Stop
	feed      *Feed
	id        key.ID            // the instance; zero for all
	next      uint64            // the item to read from
	last      uint64            // one instance: the sequence that was shown last
	seen      changefeed.Cursor // how far the caller is in the feed of the store; nil for one instance
	beats     int               // heartbeats since seen was raised
	heartbeat *time.Timer       // runs since something was told
	buffer    []byte
}

// When it returns nil, every entry that is acknowledged from now on comes.
func (w *watcher) open(ctx context.Context) error {
	s := w.service
	if err := w.check(); err != nil {
		return err
	}
	if w.req.InstanceID != "" {
		if err := w.locate(ctx); err != nil { // before the feed: a guessed id costs none
			return err
		}
	}
	select {
	case <-s.stopped.Done():
		return failure.ErrUnavailable
	default:
	}
	w.feed = s.feeds.join(feedKey{w.req.WorkflowID, w.id})
	var unreadable error
	if w.req.InstanceID == "" {
		// NB: before the commits are settled, so that all rows up to there have been published by then.
		w.seen, unreadable = s.o.Changes.Now(w.shards)
	}
	err := cmp.Or(w.settleCommits(ctx), unreadable)
	w.next = w.feed.end() // NB: before the instance is asked, so that nothing comes between
	if err == nil && w.req.InstanceID != "" {
		err = w.locate(ctx)
	}
	if err != nil {
		s.feeds.leave(w.feed, time.Now())
		return err
	}
	return nil
}

// check refuses what cannot be watched.
func (w *watcher) check() error {
	s := w.service
	d, err := s.o.Catalog.Newest(w.req.WorkflowID)
	if err != nil {
		return err
	}
	now := s.o.Clock()
	if d.ReadRight(w.caller, now) == statemachine.Denied {
		return failure.MayNotRead(w.req.WorkflowID)
	}
	if w.filter, err = filter.Parse([]byte(w.req.Filter), filter.Options{Private: w.req.Caller.Has(identity.Workflows)}); err != nil {
		return failure.Refuse(failure.ErrInvalid, "%w", err)
	}
	if w.filter.UsesHistory() {
		return failure.Refuse(failure.ErrInvalid, "the filter of a watch cannot look at svcHistory")
	}
	w.req.ByPrivilege = w.filter.UsesPrivate() || w.req.Caller.IsOperator() && d.ReadsByPrivilege(w.caller, now)
	return nil
}

func (w *watcher) locate(ctx context.Context) (err error) {
	w.id, w.last, err = w.service.o.Instances.Locate(w.req.Caller, w.req.WorkflowID, w.req.InstanceID)
	return err
}

// Each watcher waits until one has seen that, and in a cluster until its node has what was acknowledged before: a node
// that cannot know it gives no stream.
func (w *watcher) settleCommits(ctx context.Context) error {
	s := w.service
	settled := w.feed.settled.Load()
	if !settled {
		s.o.Catalog.AwaitCommits()
	}
	if !settled || w.seen != nil { // NB: w.seen may be behind rows whose items are still to come
		if err := s.o.Store.AwaitDurable(); err != nil {
			return failure.Errorf(failure.ErrUnavailable, "%w", err)
		}
	}
	if err := s.o.Queries.AwaitCurrentIn(ctx, w.shards); err != nil {
		return err // NB: in a cluster, a feed may lack what was acknowledged before, and have what is not yet
	}
	if w.seen != nil && !settled && !w.isPart { // NB: a part knows only of its own shards where they begin
		begin, err := s.o.Changes.Now(w.shards)
		if err != nil {
			return err
		}
		w.feed.beginAt(begin)
	}
	w.feed.settled.Store(true)
	return nil
}

// always is a channel from which there is always something to receive.
var always = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

func (w *watcher) run(ctx context.Context) error {
	w.heartbeat = time.NewTimer(heartbeatEvery)
	defer w.heartbeat.Stop()
	if err := w.begin(); err != nil {
		return err
	}
	var items []*Item
	var look <-chan time.Time
	if w.isPart {
		ticker := time.NewTicker(epochEvery)
		defer ticker.Stop()
		look = ticker.C
	}
	for {
		var lost bool
		var wake <-chan struct{}
		items, w.next, lost, wake = w.feed.read(items[:0], w.next)
		if lost {
			if err := w.miss(len(items) > 0); err != nil {
				return err
			}
		}
		for n, item := range items {
			items[n] = nil // NB: or a reader who is slow would keep it
			if err := w.deliver(item); err != nil {
				return err
			}
		}
		if len(items) > 0 {
			wake = always // there may be more
		}
		select {
		case <-wake:
		case <-w.heartbeat.C:
			if err := w.tell(w.beat()); err != nil {
				return err
			}
		case <-look:
			if err := w.leads(); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-w.service.stopped.Done():
			return errStopped
		case <-w.feed.broken:
			return errStopped
		}
	}
}

// The entries of one instance are still in the store; if more items follow, the next one shows which are missing.
func (w *watcher) miss(more bool) error {
	switch {
	case w.seen != nil:
		return w.catchUpAll()
	case more:
		return nil
	}
	return w.fill(w.feed.sequence())
}

func (w *watcher) fill(sequence uint64) error {
	switch {
	case sequence <= w.last:
		return nil
	case w.req.Filter == "":
		return w.catchUp(sequence)
	}
	w.last = sequence // what the data was at an old entry is not kept
	return w.lose()
}

func (w *watcher) begin() error {
	if w.req.LastEventID == "" {
		return w.tell(Event{Kind: Opened, ID: w.position()})
	}
	if err := w.tell(Event{Kind: Opened, ID: w.req.LastEventID}); err != nil {
		return err
	}
	if w.id != (key.ID{}) {
		return w.resumeInstance()
	}
	return w.resumeAll()
}

// resumeInstance shows what the store has behind the position that was seen last.
func (w *watcher) resumeInstance() error {
	seen, err := strconv.ParseUint(w.req.LastEventID, 10, 64)
	now := w.last
	switch {
	case err == nil && seen == now:
		return nil
	case err != nil || seen > now || w.req.Filter != "":
		return w.lose() // what the data was at an old entry is not kept
	}
	w.last = seen
	return w.catchUp(now)
}

// catchUp shows the entries of an instance from the store, if the caller may see it as it is now: what it was is not
// kept.
func (w *watcher) catchUp(sequence uint64) error {
	store := w.service.o.Store
	sh := store.ShardOf(w.id)
	stored, err := store.Load(key.Record(nil, sh, w.req.WorkflowID, w.id))
	if err != nil {
		return failure.OfStore(err)
	}
	record, err := statemachine.ParseRecord(stored)
	if err != nil {
		return failure.Errorf(failure.ErrExecution, "%w", err)
	}
	of, err := w.service.o.Catalog.Version(w.req.WorkflowID, record.Version)
	if err != nil {
		return err
	}
	in, err := of.Restore(w.req.InstanceID, record)
	if err != nil {
		return failure.Errorf(failure.ErrExecution, "%w", err)
	}
	reader := history.NewReader(store, sh, w.id)
	for n := w.last + 1; n <= sequence; n++ {
		if err := w.reauthorize(); err != nil {
			return err
		}
		if !w.mayRead(&in, of) {
			w.last = sequence
			return nil
		}
		value, err := store.Load(key.Entry(nil, sh, w.id, n))
		if err != nil {
			return failure.OfStore(err)
		}
		entry, err := reader.Entry(n, value)
		if err != nil {
			return failure.Errorf(failure.ErrExecution, "%w", err)
		}
		if err := w.show(w.req.InstanceID, n, entry, of.StatesOf(entry), strconv.FormatUint(n, 10)); err != nil {
			return err
		}
		w.last = n
	}
	return nil
}

func (w *watcher) lose() error {
	b := append(w.buffer[:0], `{"message":"entries are missing here; read the present state again"}`...)
	w.buffer = b
	return w.tell(Event{Kind: Lost, ID: w.position(), Data: b})
}

// position is how far the caller is in the feed of the store; of one instance, the sequence that was seen.
func (w *watcher) position() string {
	if w.id != (key.ID{}) {
		return strconv.FormatUint(w.last, 10)
	}
	return w.seen.String()
}

func (w *watcher) deliver(item *Item) error {
	if w.isPart && !slices.Contains(w.shards, item.Shard) {
		return nil
	}
	if err := w.reauthorize(); err != nil {
		return err
	}
	if w.id != (key.ID{}) {
		return w.deliverOne(item)
	}
	if item.Gone { // NB: who reads a whole list again for each is busy with nothing else while many are deleted
		return nil
	}
	if item.Gap {
		return w.tellLost("entries may be missing here; read the present state again")
	}
	if item.Place > 0 {
		if item.Place <= w.seen[item.Shard] {
			return nil // seen from the store, or by an earlier stream
		}
		w.seen.Saw(item.Shard, item.Place)
	}
	if ok, err := w.matches(item); err != nil || !ok {
		return err
	}
	return w.show(item.Name, item.Sequence, item.Entry, item.States, w.position())
}

func (w *watcher) tellLost(why string) error {
	return w.tell(Event{Kind: Lost, ID: w.position(), Data: append(data.AppendString([]byte(`{"message":`), why), '}')})
}

// deliverOne is deliver for a watch of one instance, which can fill gaps.
func (w *watcher) deliverOne(item *Item) error {
	if item.Gone {
		return w.tellLost("the instance was deleted")
	}
	if item.Gap {
		return nil // the next entry shows what is missing
	}
	if item.Sequence <= w.last {
		return nil // seen from the store
	}
	if err := w.fill(item.Sequence - 1); err != nil {
		return err
	}
	w.last = item.Sequence
	ok, err := w.matches(item)
	if err == nil && !ok && w.isPart {
		return w.tell(Event{Kind: Heartbeat, ID: w.position()}) // the next leader goes on behind it
	}
	if err != nil || !ok {
		return err
	}
	return w.show(item.Name, item.Sequence, item.Entry, item.States, w.position())
}

func (w *watcher) mayRead(in *statemachine.Instance, of *statemachine.Definition) bool {
	newest, err := w.service.o.Catalog.Newest(w.req.WorkflowID)
	return err == nil && newest.MayRead(statemachine.View{Instance: in, Of: of}, w.caller, w.service.o.Clock())
}

func (w *watcher) show(id string, sequence uint64, entry data.Value, states []byte, position string) error {
	b := append(w.buffer[:0], `{"workflowId":`...)
	b = data.AppendString(b, w.req.WorkflowID)
	b = append(b, `,"instanceId":"`...)
	b = append(b, id...)
	b = append(b, `","sequence":`...)
	b = strconv.AppendUint(b, sequence, 10)
	b = append(b, `,"entry":`...)
	b = append(b, entry...)
	b = append(b, `,"states":`...)
	b = append(b, states...)
	w.buffer = append(b, '}')
	return w.give(Event{Kind: Entry, ID: position, Data: w.buffer})
}

func (w *watcher) tell(e Event) error {
	if err := w.reauthorize(); err != nil {
		return err
	}
	return w.give(e)
}

// reauthorize asks who the caller is now, since a stream may outlive a credential.
func (w *watcher) reauthorize() error {
	if w.req.Reauthorize == nil {
		return nil
	}
	p, err := w.req.Reauthorize()
	if err != nil {
		return err
	}
	w.caller = catalog.CallerOf(p)
	return nil
}

func (w *watcher) give(e Event) error {
	w.heartbeat.Reset(heartbeatEvery)
	return w.yield(e)
}

// lightBytes is how large an instance may be to be matched at once. Larger ones take a slot of the user among the
// queries.
const lightBytes = 16 << 10

func (w *watcher) matches(item *Item) (bool, error) {
	if !w.mayRead(&item.State, item.Of) {
		return false, nil
	}
	if w.req.Filter == "" {
		return true, nil
	}
	d := filter.Document{
		ID: item.Name, WorkflowID: w.req.WorkflowID, Key: item.State.Key(), States: item.States,
		Public: item.State.Public, Private: item.State.Private,
	}
	if len(d.States)+len(d.Public)+len(d.Private) <= lightBytes {
		long := false
		d.Ended = func() bool { long = true; return true }
		if ok := w.filter.Match(d); !long {
			return ok, nil
		}
	}
	return w.matchesSlowly(d)
}

type verdict struct {
	match    bool
	err      error
	panicked any
}

// What takes longer than a query may loses the entry. The caller gets heartbeats meanwhile.
func (w *watcher) matchesSlowly(d filter.Document) (bool, error) {
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	done := make(chan verdict, 1)
	go func() {
		var v verdict
		defer func() {
			v.panicked = recover()
			done <- v
		}()
		v.match, v.err = w.service.o.Queries.Match(ctx, w.req.Caller.ID, w.filter, d)
	}()
	var told error
	for {
		select {
		case v := <-done:
			switch {
			case v.panicked != nil:
				panic(v.panicked) // whoever called Watch catches it
			case told != nil:
				return false, told
			case errors.Is(v.err, context.DeadlineExceeded) && w.ctx.Err() == nil:
				return false, w.lose()
			case v.err != nil && w.service.stopped.Err() != nil:
				return false, errStopped
			}
			return v.match, v.err
		case <-w.heartbeat.C:
			// NB: the match holds a slot, and does not wait for a slow reader.
			if told = w.tell(Event{Kind: Heartbeat}); told != nil {
				cancel()
			}
		}
	}
}
