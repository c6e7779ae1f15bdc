package transfer

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"troupe/actors/catalog"
	"troupe/actors/changefeed"
	"troupe/actors/form"
	"troupe/actors/internal/businesskey"
	"troupe/actors/internal/history"
	"troupe/actors/internal/instanceid"
	"troupe/actors/internal/retry"
	"troupe/actors/inventory"
	"troupe/actors/job"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

const (
	atOnce       = 64        // commits that share fsyncs
	lineBytesMax = 256 << 20 // of an instance with its history
	// entryBytesMax is that in a cluster, where it travels as one entry of Raft's log, and the shards of its node wait meanwhile.
	entryBytesMax = 32 << 20
)

// Imported says what Import has done.
type Imported struct {
	Imported  int64 `json:"imported"`
	Skipped   int64 `json:"skipped"`   // that are here already; nothing of them was changed
	Elsewhere int64 `json:"elsewhere"` // whose shards other nodes lead
}

// Running is what works on the store that an import writes into.
type Running interface {
	// Arrived is told of an instance that has come, when it is visible: the first deadline of its timers, zero for none, and
	// the queues in which it has deliveries.
	Arrived(sh key.Shard, workflow string, first time.Time, queues []string, jobs []job.Change)
	// HoldKey keeps a business key from all others who would give it to an instance, until release is called.
	HoldKey(workflow, business string) (release func(), err error)
}

// alone is for an import on whose store nothing else works.
type alone struct{ keys retry.Keys }

func (alone) Arrived(key.Shard, string, time.Time, []string, []job.Change) {}

func (a alone) HoldKey(workflow, business string) (release func(), err error) {
	return a.keys.Hold(retry.DigestOf(workflow, business), func(done <-chan struct{}) error {
		<-done
		return nil
	})
}

// Import reads what Export wrote, and writes the instances that are not here, each in one commit. A line that is not right ends it with its
// number; the instances of the lines before are there then, and doing it again skips them. Without the definitions of the first line nothing
// is written. Nothing else writes into the store if running is nil.
func Import(ctx context.Context, store *persistence.Store, c *catalog.Catalog, in io.Reader, running Running, say func(string)) (Imported, error) {
	if running == nil {
		running = alone{retry.NewKeys()}
	}
	m := &importing{store: store, catalog: c, running: running, underWay: map[key.ID]bool{}, bytesMax: lineBytesMax}
	if !store.Standalone() {
		m.bytesMax = entryBytesMax
	}
	writes, ctx := errgroup.WithContext(ctx)
	writes.SetLimit(atOnce)
	err := m.read(ctx, bufio.NewReaderSize(in, 1<<20), writes, say)
	err = cmp.Or(writes.Wait(), err)
	return m.Imported, err
}

type importing struct {
	store   *persistence.Store
	catalog *catalog.Catalog
	running Running

	bytesMax int // of a line

	mu sync.Mutex
	Imported
	underWay map[key.ID]bool
}

// read checks instances one after the other, so that one that is refused is the last, and commits them beside each other. ctx ends when one
// cannot be written.
func (m *importing) read(ctx context.Context, lines *bufio.Reader, writes *errgroup.Group, say func(string)) error {
	seen := int64(0)
	for n := 1; ; n++ {
		text, err := m.readLine(lines)
		if errors.Is(err, io.EOF) {
			return fmt.Errorf("line %d: the file ends before its last line, which says how many instances it has; those of the lines before were imported", n)
		}
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if n == 1 {
			if err := m.begin(text); err != nil {
				return fmt.Errorf("line 1: %w", err)
			}
			continue
		}
		var end trailer
		if json.Unmarshal(text, &end) == nil && end.Instances != nil {
			if *end.Instances != seen {
				return fmt.Errorf("line %d: the file had %d instances, and has %d", n, *end.Instances, seen)
			}
			return nil
		}
		seen++
		it, err := m.parse(text)
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		commit, err := m.prepare(it)
		if err != nil {
			return fmt.Errorf("line %d: instance %s: %w", n, it.Name(), err)
		}
		if commit != nil {
			writes.Go(func() error {
				if err := commit(); err != nil {
					return fmt.Errorf("line %d: instance %s: %w", n, it.Name(), err)
				}
				return nil
			})
		}
		if n%1000 == 0 {
			say(fmt.Sprintf("%d instances read", seen))
		}
	}
}

func (m *importing) readLine(lines *bufio.Reader) (text []byte, err error) {
	for {
		part, err := lines.ReadSlice('\n')
		if text = append(text, part...); len(text) > m.bytesMax {
			return nil, fmt.Errorf("the instance has more than %d MiB", m.bytesMax>>20)
		}
		switch {
		case err == nil:
			return text, nil
		case errors.Is(err, io.EOF) && len(bytes.TrimSpace(text)) > 0:
			return text, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

func (m *importing) begin(text []byte) error {
	var h header
	if err := data.DecodeObject(text, &h); err != nil || h.Troupe != kind {
		return errors.New("this is not a file of instances: make one with `troupe store export`")
	}
	if h.Format != format {
		return fmt.Errorf("the file has format %d, and this program reads %d: use the program that wrote it, or a newer one", h.Format, format)
	}
	if err := h.isFor(m.store); err != nil {
		return err
	}
	return h.missing(m.catalog)
}

// arriving is an instance with its rows on its way in.
type arriving struct {
	*inventory.Instance
	stored  []byte // the record
	entries [][]byte
	rows    []row           // with whole keys
	jobs    []job.Change    // that begin
	listed  form.CreatorRow // of one that is not a form
}

func (m *importing) parse(text []byte) (*arriving, error) {
	var l line
	if err := data.DecodeObject(text, &l); err != nil {
		return nil, err
	}
	id, ok := instanceid.Parse(l.Instance)
	if !ok {
		return nil, fmt.Errorf("%q is not the id of an instance", l.Instance)
	}
	of, err := m.definition(l.Workflow, l.Record)
	if err != nil {
		return nil, err
	}
	it := &arriving{}
	built := history.Builder{Of: of}
	for _, shown := range l.History {
		entry, err := built.Add(shown)
		if err != nil {
			return nil, err
		}
		it.entries = append(it.entries, entry)
	}
	if it.stored, err = statemachine.RecordFromJSON(l.Record, built.Chain); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	sh := m.store.ShardOf(id)
	if it.Instance, err = inventory.Read(m.catalog, sh, l.Workflow, id, it.stored); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	if err := it.agrees(&built); err != nil {
		return nil, err
	}
	for _, r := range l.Rows {
		whole := append(key.ShardPrefix(nil, sh), r.Key...)
		parts, ok := key.Parse(whole)
		if !ok || parts.ID != id || !slices.Contains(tables, parts.Table) {
			return nil, fmt.Errorf("a row has the key %x, which is not one of the instance's own", r.Key)
		}
		if len(r.Value) > rowBytesMax {
			return nil, fmt.Errorf("a row of the table %s has more than %d MiB", parts.Table, rowBytesMax>>20)
		}
		it.rows = append(it.rows, row{whole, r.Value})
	}
	if it.Form == nil {
		if err := it.list(built.By, l.Listed); err != nil {
			return nil, fmt.Errorf("listed: %w", err)
		}
	}
	return it, nil
}

func (m *importing) count(what *int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*what++
}

// has reports whether the instance is here.
func (m *importing) has(it *arriving) (bool, error) {
	_, err := m.store.Load(key.Record(nil, it.Shard, it.Workflow, it.ID))
	if err == nil || !errors.Is(err, persistence.ErrNotFound) {
		return err == nil, err
	}
	_, err = m.store.Load(key.Entry(nil, it.Shard, it.ID, 1))
	switch {
	case errors.Is(err, persistence.ErrNotFound):
		return false, nil
	case err == nil:
		err = errors.New("an instance of another workflow has its id")
	}
	return false, err
}

// prepare returns what writes an instance; nil for one that is not to be written.
func (m *importing) prepare(it *arriving) (commit func() error, err error) {
	epoch := m.store.Epoch(it.Shard)
	if epoch == 0 {
		m.count(&m.Elsewhere)
		return nil, nil
	}
	m.mu.Lock()
	here := m.underWay[it.ID] // by another line of the file
	m.mu.Unlock()
	if !here {
		if here, err = m.has(it); err != nil {
			return nil, err
		}
	}
	if here {
		m.count(&m.Skipped)
		return nil, nil
	}
	release, err := m.holdKey(it)
	if err != nil {
		return nil, err
	}
	// NB: as commits of instances do: a Publish waits for it, so that the indexes are those that it is for.
	began := m.catalog.BeginCommit(it.Shard)
	end := func() {
		m.catalog.EndCommit(began)
		release()
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.underWay, it.ID)
	}
	w, queues, err := m.batch(it, epoch)
	if err != nil {
		end()
		return nil, err
	}
	m.mu.Lock()
	m.underWay[it.ID] = true
	m.mu.Unlock()
	return func() error {
		defer end()
		if err := m.store.Commit(w); err != nil {
			return err
		}
		m.count(&m.Imported.Imported)
		first := time.Time{}
		for _, t := range it.State.Timers() {
			if !t.Failed && (first.IsZero() || t.Due.Before(first)) {
				first = t.Due
			}
		}
		m.running.Arrived(it.Shard, it.Workflow, first, queues, it.jobs)
		return nil
	}, nil
}

// batch has all rows of the instance.
func (m *importing) batch(it *arriving, epoch uint64) (w *persistence.Batch, queues []string, err error) {
	indexes, err := m.catalog.IndexesIn(it.Shard, epoch, it.Workflow)
	if err == nil {
		err = m.catalog.MayHave(it.Workflow, it.Of.Version)
	}
	if err != nil {
		return nil, nil, err
	}
	w = m.store.NewBatchIn(it.Shard, epoch)
	if queues, err = it.fill(w, indexes); err != nil {
		w.Discard()
	}
	return w, queues, err
}

// holdKey holds the business key of an instance until it is written. It refuses one that another instance has here, and one whose row would be
// in another shard.
func (m *importing) holdKey(it *arriving) (release func(), err error) {
	business := it.State.Key()
	if business == "" || it.State.State.IsOver() {
		return func() {}, nil
	}
	if businesskey.ShardOf(m.store, it.Workflow, business) != it.Shard {
		return nil, fmt.Errorf("its key %q belongs to another shard here: import it into a store with as many shards as the one that it comes from", business)
	}
	if release, err = m.running.HoldKey(it.Workflow, business); err != nil {
		return nil, err
	}
	id, found, err := businesskey.Find(m.store, it.Shard, it.Workflow, business)
	if err == nil && found {
		err = fmt.Errorf("instance %s has its key %q here", instanceid.Text(id), business)
	}
	if err != nil {
		release()
	}
	return release, err
}

// fill writes the instance with all its rows.
func (it *arriving) fill(w *persistence.Batch, indexes []*catalog.Index) (queues []string, err error) {
	w.Set(key.Record(nil, it.Shard, it.Workflow, it.ID), it.stored)
	for n, entry := range it.entries {
		w.Set(key.Entry(nil, it.Shard, it.ID, uint64(n)+1), entry) //nolint:gosec // not negative
	}
	it.jobs = it.Put(w, indexes)
	for _, r := range it.rows {
		w.Set(r.Key, r.Value)
		if _, err := it.PutBehind(w, r.Key, r.Value); err != nil {
			return nil, err
		}
		if d, ok := key.ParseDelivery(r.Key); ok && !slices.Contains(queues, d.Queue) {
			queues = append(queues, d.Queue)
		}
	}
	it.listed.Put(w, it.Spot(), it.Of, &it.State)
	w.Add(key.Count(nil, it.Shard, it.Workflow, it.Of.Version), 1)
	if it.State.Sequence > 0 {
		changefeed.Put(w, time.Now(), &changefeed.Row{ID: it.ID, Sequence: it.State.Sequence, Workflow: it.Workflow})
	}
	return queues, nil
}
