package inventory

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"

	"troupe/actors/catalog"
	"troupe/actors/form"
	"troupe/actors/internal/history"
	"troupe/actors/internal/instanceid"
	"troupe/actors/job"
	"troupe/actors/past"
	"troupe/actors/retention"
	"troupe/actors/timer"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// Options say what Verify checks, and whom it tells.
type Options struct {
	Store   *persistence.Store
	Catalog *catalog.Catalog
	// Pace is called with how many bytes were read, and may wait. Nil: nothing waits.
	Pace func(ctx context.Context, bytes int) error
	// Damage is told of each damage, in a line.
	Damage func(line string)
	Say    func(progress string)
}

// Report says what Verify has read.
type Report struct {
	Shards    int   `json:"shards"`
	Instances int64 `json:"instances"`
	Damaged   int64 `json:"damagedInstances"`
	Entries   int64 `json:"entries"`
	Rows      int64 `json:"rows"`
	Replay
}

// Replay counts the instances whose data was compared with what their history gives, and those whose history does not have all that their
// data came from: data that was too long, or is not kept, and entries of older versions, or under a version that may have other text by now.
type Replay struct {
	Replayed    int64 `json:"replayed"`
	NotReplayed int64 `json:"notReplayed"`
}

// Verify checks the rows of all instances that this node has: the sequence of each history and its chain, that it ends where the record says,
// that indexes, worklists, lists, timers and attempts have what follows from the records and nothing else, that counters are right, and that
// no row belongs to an instance that is not there. The error is one that kept it from reading on.
func Verify(ctx context.Context, o *Options) (Report, error) {
	r := Report{}
	shards := Shards(o.Store)
	for i, sh := range shards {
		o.Say(fmt.Sprintf("checking rows: shard %d of %d, %d instances so far", i+1, len(shards), r.Instances))
		s := &shardCheck{Options: o, ctx: ctx, shard: sh, report: &r, seed: maphash.MakeSeed(), damaged: map[key.ID]bool{}}
		if err := s.run(); err != nil {
			return r, err
		}
		r.Damaged += int64(len(s.damaged))
		r.Shards++
	}
	return r, nil
}

// known is what the rows of an instance are compared with.
type known struct {
	workflow        string
	definition      *statemachine.Definition // nil: the record cannot be read
	sequence        uint64
	chain           statemachine.Chain
	ends            []statemachine.NodeID
	public, private uint64 // sums
	over, isForm    bool
	key             string
	parent          *statemachine.Parent
	walked          bool
}

type version struct {
	workflow string
	number   uint64
}

type shardCheck struct {
	*Options
	ctx    context.Context //nolint:containedctx // of the one run
	shard  key.Shard
	report *Report
	at     *persistence.Snapshot
	seed   maphash.Seed

	instances map[key.ID]*known
	counts    map[version]int64
	damaged   map[key.ID]bool
	// expected are the sums of rows that must be there; a row that is found goes. A sum of a key and a value is of 64 bits: that two are
	// alike hides a damage once in some millions of stores.
	expected map[uint64]struct{}
	indexes  map[uint32]*catalog.Index // that have all entries
	of       map[string][]*catalog.Index
	walk     *walk
}

func (s *shardCheck) run() error {
	s.instances, s.counts, s.expected = map[key.ID]*known{}, map[version]int64{}, map[uint64]struct{}{}
	declared := *s.Catalog.Indexes()
	whole := map[*catalog.Index]bool{} // NB: looked at before the snapshot is taken
	for _, list := range declared {
		for _, ix := range list {
			whole[ix] = ix.Whole()
		}
	}
	s.at = s.Store.SnapshotOf([]key.Shard{s.shard})
	defer func() { _ = s.at.Close() }() // read-only: nothing to lose
	s.indexes, s.of = map[uint32]*catalog.Index{}, map[string][]*catalog.Index{}
	for workflow, list := range declared {
		for _, ix := range list {
			if !s.Store.Standalone() {
				var err error
				if whole[ix], err = s.Catalog.IsWholeAt(s.at, ix); err != nil {
					return err
				}
			}
			if whole[ix] {
				s.indexes[ix.Number()], s.of[workflow] = ix, append(s.of[workflow], ix)
			}
		}
	}
	if err := s.records(s.record); err != nil {
		return err
	}
	err := s.scan(key.ShardPrefix(nil, s.shard), s.row)
	s.endWalk()
	if err == nil {
		err = s.missing()
	}
	if err == nil {
		s.compareCounts()
	}
	return err
}

// scan visits rows, and tells of what cannot be read; then the rest of the range is passed over.
func (s *shardCheck) scan(prefix []byte, visit func(k, value []byte) error) error {
	var stopped error
	var last []byte
	err := s.at.Scan(prefix, func(k, value []byte) error {
		last = append(last[:0], k...)
		if s.Pace != nil {
			stopped = s.Pace(s.ctx, len(k)+len(value))
		} else if s.report.Rows%1024 == 0 {
			stopped = s.ctx.Err()
		}
		if stopped == nil {
			stopped = visit(k, value)
		}
		return stopped
	})
	if stopped != nil || err == nil || !errors.Is(err, persistence.ErrCorrupt) {
		return err
	}
	behind, _ := key.Parse(last)
	s.Damage(fmt.Sprintf("shard %d cannot be read behind %s: %v", s.shard, behind, err))
	return nil
}

func (s *shardCheck) records(visit func(in *Instance, err error) error) error {
	return s.scan(key.RecordsPrefix(nil, s.shard), func(k, value []byte) error {
		parts, ok := key.Parse(k)
		if !ok {
			s.Damage(errRow(k, nil).Error())
			return nil
		}
		in, err := Read(s.Catalog, s.shard, parts.Workflow, parts.ID, value)
		return visit(in, err)
	})
}

func (s *shardCheck) harm(id key.ID, name, format string, args ...any) {
	s.damaged[id] = true
	s.Damage(fmt.Sprintf("instance %s: %s", name, fmt.Sprintf(format, args...)))
}

func (s *shardCheck) record(in *Instance, err error) error {
	s.report.Instances++
	k := &known{workflow: in.Workflow}
	s.instances[in.ID] = k
	if in.Record.Version != 0 {
		s.counts[version{in.Workflow, in.Record.Version}]++
	}
	if err != nil {
		s.harm(in.ID, in.Name(), "its record cannot be read: %v", err)
		return nil
	}
	*k = known{
		workflow: in.Workflow, definition: in.Of, sequence: in.State.Sequence, chain: in.Record.Chain, ends: in.State.Ends(),
		public: maphash.Bytes(s.seed, in.State.Public), private: maphash.Bytes(s.seed, in.State.Private),
		over: in.Of.IsOver(&in.State), isForm: in.Form != nil,
	}
	s.instances[in.ID].key, s.instances[in.ID].parent = in.State.Key(), in.Record.Parent()
	s.each(in, func(k, value []byte) { s.expected[s.sum(k, value)] = struct{}{} })
	return nil
}

// each visits the rows that follow from a record.
func (s *shardCheck) each(in *Instance, visit func(k, value []byte)) {
	w := s.Store.NewBatch(s.shard)
	defer w.Discard()
	in.Put(w, s.of[in.Workflow])
	w.Each(func(k, value []byte) {
		parts, _ := key.Parse(k)
		if parts.Table == "job" {
			if parts.Kind == key.JobRow { // NB: the record does not know who follows it, and who has it
				visit(k, nil)
			}
			return
		}
		if parts.Table != "index" || s.indexes[uint32(parts.Number)] != nil { //nolint:gosec // of four bytes
			visit(k, value)
		}
	})
	for _, k := range in.failed() {
		visit(k, nil) // what went wrong is in the row alone
	}
}

func (s *shardCheck) sum(k, value []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	_, _ = h.Write(k)
	_, _ = h.Write([]byte{byte(len(k)), byte(len(k) >> 8)})
	_, _ = h.Write(value)
	return h.Sum64()
}

func (s *shardCheck) take(k, value []byte) (expected bool) {
	sum := s.sum(k, value)
	_, expected = s.expected[sum]
	delete(s.expected, sum)
	return expected
}

// row checks one row of the shard. The rows from which others follow come before those in the order of keys.
func (s *shardCheck) row(rowKey, value []byte) error {
	s.report.Rows++
	k, ok := key.Parse(rowKey)
	if !ok {
		return nil // Store.Verify tells of it
	}
	in := s.instances[k.ID]
	switch k.Table {
	case "entry":
		s.report.Entries++
		return s.entry(k, value)
	case "node", "work", "attempt":
		s.follows(k, in, rowKey, value)
	case "timer":
		workflow, _ := timer.Parse(value) // NB: the record does not know who follows it
		s.follows(k, in, rowKey, []byte(workflow))
	case "index":
		if s.indexes[uint32(k.Number)] != nil { //nolint:gosec // of four bytes
			s.follows(k, in, rowKey, value)
		}
	case "incident":
		if k.ID[0] != 0xFF { // those are of a place in a definition
			s.follows(k, in, rowKey, nil)
		}
	case "task", "delivery":
		if k.ID != (key.ID{}) {
			s.gives(k, in, rowKey, value)
		}
	case "business":
		if !s.take(rowKey, value) {
			s.Damage(k.String() + ": no instance has it")
		}
	case "done": // NB: the row that it follows from comes after it
		at, err := s.at.Load(key.DoneTime(nil, s.shard, k.ID))
		if when, perr := retention.ParseTime(at); in == nil || err != nil || perr != nil || when != k.Due || len(value) > 0 {
			s.Damage(k.String() + ": there is no such instance, or it was done at another time")
		}
	case "donetime":
		at, err := retention.ParseTime(value)
		if in == nil || err != nil {
			s.Damage(k.String() + ": there is no such instance, or its value is not a time")
		} else if _, err := s.at.Load(key.Done(nil, s.shard, in.workflow, at, k.ID)); err != nil {
			s.harm(k.ID, s.name(k.ID), "it is not among those that are done: %v", err)
		}
	case "list":
		s.list(k, in, rowKey, value)
	case "job":
		s.job(k, in, rowKey, value)
	case "draft", "taskdraft", "activity", "reply":
		if k.ID != (key.ID{}) && in == nil {
			s.Damage(k.String() + ": there is no such instance")
		}
	case "count":
		n, err := persistence.ParseCount(value)
		if err != nil {
			s.Damage(errRow(rowKey, err).Error())
		}
		s.counts[version{k.Workflow, k.Number}] -= n
	}
	return nil
}

// follows checks a row that a record, or another row, must give.
func (s *shardCheck) follows(k key.Parts, in *known, rowKey, value []byte) {
	switch {
	case s.take(rowKey, value):
	case in == nil:
		s.Damage(k.String() + ": there is no such instance")
	case in.definition != nil: // else nothing is known of its rows
		s.harm(k.ID, s.name(k.ID), "%s does not follow from its record", k)
	}
}

// gives takes a row from which others follow.
func (s *shardCheck) gives(k key.Parts, in *known, rowKey, value []byte) {
	if in == nil {
		s.Damage(k.String() + ": there is no such instance")
		return
	}
	w := s.Store.NewBatch(s.shard)
	defer w.Discard()
	own, err := (&Instance{Shard: s.shard, ID: k.ID, Workflow: in.workflow}).PutBehind(w, rowKey, value)
	switch {
	case err != nil:
		s.harm(k.ID, s.name(k.ID), "%v", errRow(rowKey, err))
	case !own:
		s.follows(k, in, rowKey, value)
	default:
		w.Each(func(k, value []byte) { s.expected[s.sum(k, value)] = struct{}{} })
	}
}

// job checks a row of a job. NB: who gives jobs may write offers of one that has just ended.
func (s *shardCheck) job(k key.Parts, in *known, rowKey, value []byte) {
	if k.Kind != key.JobRow {
		return
	}
	isOver, err := job.Check(s.at.Load, s.shard, rowKey, value)
	switch {
	case !isOver:
		s.follows(k, in, rowKey, nil)
	case in == nil:
		s.Damage(k.String() + ": there is no such instance")
	}
	if err != nil {
		s.harm(k.ID, s.name(k.ID), "%v", errRow(rowKey, err))
	}
}

// list checks a row in the lists of anyone who created an instance. One of a form follows from its record.
func (s *shardCheck) list(k key.Parts, in *known, rowKey, value []byte) {
	switch {
	case in == nil:
		s.Damage(k.String() + ": there is no such instance")
	case in.definition == nil:
	case in.isForm:
		s.follows(k, in, rowKey, value)
	case !form.IsCreatorList(k.Kind, in.over):
		s.harm(k.ID, s.name(k.ID), "%s does not follow from its record", k)
	}
}

func (s *shardCheck) name(id key.ID) string {
	if in := s.instances[id]; in != nil {
		return in.workflow + "/" + instanceid.Text(id)
	}
	return instanceid.Text(id)
}

// missing tells of what was expected and is not there, and of instances without a history.
func (s *shardCheck) missing() error {
	for id, in := range s.instances {
		if !in.walked && in.definition != nil && in.sequence > 0 {
			s.harm(id, s.name(id), "its history is missing")
		}
	}
	if len(s.expected) == 0 {
		return nil
	}
	err := s.records(func(in *Instance, err error) error {
		if err == nil {
			s.each(in, func(k, value []byte) {
				if s.take(k, value) {
					parts, _ := key.Parse(k)
					s.harm(in.ID, in.Name(), "%s is missing, or is not what follows from its record", parts)
				}
			})
		}
		return nil
	})
	if n := len(s.expected); err == nil && n > 0 {
		s.Damage(fmt.Sprintf("shard %d: %d rows of deliveries or decided tasks in other lists are missing", s.shard, n))
	}
	return err
}

func (s *shardCheck) compareCounts() {
	for of, n := range s.counts {
		if n != 0 {
			s.Damage(fmt.Sprintf("shard %d: the counter of %s version %d is off by %d", s.shard, of.workflow, of.number, -n))
		}
	}
}

// walk is the history that is being read.
type walk struct {
	id      key.ID
	in      *known
	entries *history.Walker
	replay  *past.Replay // nil: its record cannot be read
	moved   bool         // not all of it is known to be of the version that the record has: others may have been replaced, also that one before
	failed  bool
}

func (s *shardCheck) entry(k key.Parts, value []byte) error {
	if s.walk == nil || s.walk.id != k.ID {
		s.endWalk()
		in := s.instances[k.ID]
		s.walk = &walk{id: k.ID, in: in, entries: history.NewWalker(s.at, s.shard, k.ID)}
		if in == nil {
			s.Damage(k.String() + ": there is no such instance")
			s.walk.failed = true
		} else {
			in.walked = true
			if in.definition != nil {
				s.walk.replay = past.New(k.ID, in.key, in.parent, func(number uint64) (*statemachine.Definition, error) {
					return s.Catalog.Version(in.workflow, number)
				})
			}
		}
	}
	w := s.walk
	if w.failed {
		return nil
	}
	e, err := w.entries.Next(k.Number, value)
	if err != nil {
		w.failed = true
		s.harm(k.ID, s.name(k.ID), "%v; its entries before that can be read", err)
		return nil
	}
	if w.replay != nil {
		_ = w.replay.Next(&e) // endWalk counts it
		version, _, err := statemachine.ReplayVersion(e.Input)
		w.moved = w.moved || err != nil || !e.Kept || version != 0 && version != w.in.definition.Version
	}
	return nil
}

// endWalk compares the end of a history with the record.
func (s *shardCheck) endWalk() {
	w := s.walk
	s.walk = nil
	if w == nil || w.failed || w.in.definition == nil {
		return
	}
	ends := string(statemachine.AppendNodes(nil, w.in.ends))
	switch {
	case w.entries.N != w.in.sequence:
		s.harm(w.id, s.name(w.id), "its history has %d entries, and the record speaks of %d", w.entries.N, w.in.sequence)
	case w.entries.Chain != w.in.chain:
		s.harm(w.id, s.name(w.id), "its record belongs to another history")
	case string(w.entries.Ends) != ends:
		s.harm(w.id, s.name(w.id), "its history ends at %s, and its record is at %s", w.entries.Ends, ends)
	default:
		at := &w.replay.Instance
		err := w.replay.Err()
		differs := maphash.Bytes(s.seed, at.Public) != w.in.public || maphash.Bytes(s.seed, at.Private) != w.in.private
		switch {
		case errors.Is(err, past.ErrDiffers) && !w.moved:
			s.harm(w.id, s.name(w.id), "its history does not give what it says: %v", err)
		case err != nil, differs && w.moved:
			s.report.NotReplayed++
		case differs:
			s.harm(w.id, s.name(w.id), "its data is not what its history gives")
		default:
			s.report.Replayed++
		}
	}
}
