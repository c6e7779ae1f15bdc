package persistence_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"troupe/persistence"
	"troupe/persistence/key"
)

// workflow is the name that the harnesses write under.
const workflow = "harness"

// event is what the harnesses commit: the shape of the program's own events. One
// batch has a history entry, the instance's record with the number of entries,
// an idempotency row, a counter, and a row of the feed.
type event struct {
	Shard    key.Shard
	Instance key.ID
	Seq      uint64 // from 1
	Padding  int    // bytes of content
}

func (e event) writeEntry(w *persistence.Batch) {
	w.Set(key.Entry(nil, e.Shard, e.Instance, e.Seq), e.content())
}

func (e event) writeRest(w *persistence.Batch) {
	w.Set(key.Record(nil, e.Shard, workflow, e.Instance), binary.BigEndian.AppendUint64(nil, e.Seq))
	w.Set(key.Reply(nil, e.Shard, e.Instance, e.replyKey()), nil)
	w.Add(key.Count(nil, e.Shard, workflow, 1), 1)
	w.Announce(int64(e.Seq%3), binary.BigEndian.AppendUint64(e.Instance[:], e.Seq), nil) // its clock goes back again and again
}

func (e event) replyKey() (key [16]byte) {
	binary.BigEndian.PutUint64(key[:], e.Seq)
	return key
}

// content is different for each event and does not compress away.
func (e event) content() []byte {
	b := make([]byte, 16+e.Padding)
	copy(b, e.Instance[:8])
	binary.BigEndian.PutUint64(b[8:], e.Seq)
	var seed [32]byte
	copy(seed[:], b[:16])
	_, _ = rand.NewChaCha8(seed).Read(b[16:]) // never fails
	return b
}

// ledger is what was acknowledged: how many events of each instance.
type ledger map[key.ID]uint64

// shards is how many numbered shards the harnesses write to.
const shards = 4

// instance returns the n-th instance and its shard.
func instance(n int) (key.ID, key.Shard) {
	var id key.ID
	binary.BigEndian.PutUint64(id[:], uint64(n+1))
	return id, key.Shard(n % shards)
}

// check compares a journal with what was acknowledged. It returns the first
// thing that is wrong: an event that is missing or half there, a gap, a counter
// that does not add up. More events than acknowledged are right; in a batch of
// which the answer never came they may or may not be there.
func check(j journal, acked ledger, instances, padding int) (missing uint64, err error) {
	counted := map[key.Shard]uint64{}
	for n := range instances {
		id, sh := instance(n)
		have, err := checkInstance(j, sh, id, padding)
		if err != nil {
			return missing, err
		}
		counted[sh] += have
		if want := acked[id]; have < want {
			missing += want - have
		}
	}
	if missing > 0 {
		return missing, fmt.Errorf("%d acknowledged events are missing", missing)
	}
	for sh, want := range counted {
		got, err := j.Count(key.Count(nil, sh, workflow, 1))
		if err != nil {
			return 0, err
		}
		if uint64(got) != want {
			return 0, fmt.Errorf("shard %d counts %d events, has %d", sh, got, want)
		}
		if err := checkFeed(j, sh, want); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// checkFeed holds that the feed of a shard has a row for each of so many events, and those of each instance
// in their order.
func checkFeed(j journal, sh key.Shard, events uint64) error {
	var rows uint64
	last := ledger{}
	err := j.Scan(key.FeedPrefix(nil, sh), func(k, stored []byte) error {
		rows++
		row, ok := persistence.ParseFeedRow(k, stored)
		if !ok || len(row.Value) != len(key.ID{})+8 {
			return fmt.Errorf("shard %d: row %d of the feed cannot be read", sh, rows)
		}
		id, seq := key.ID(row.Value), binary.BigEndian.Uint64(row.Value[len(key.ID{}):])
		if row.Ordinal != rows || seq != last[id]+1 {
			return fmt.Errorf("shard %d: row %d of the feed is number %d, event %d of %x behind event %d", sh, rows, row.Ordinal, seq, id[:8], last[id])
		}
		last[id] = seq
		return nil
	})
	if err == nil && rows != events {
		err = fmt.Errorf("shard %d: %d rows of the feed for %d events", sh, rows, events)
	}
	return err
}

// checkInstance returns how many events an instance has, when they are whole.
func checkInstance(j journal, sh key.Shard, id key.ID, padding int) (n uint64, err error) {
	err = j.Scan(key.EntryPrefix(nil, sh, id), func(k, value []byte) error {
		n++
		e := event{Shard: sh, Instance: id, Seq: n, Padding: padding}
		if entry, ok := key.Parse(k); !ok || entry.Number != n {
			return fmt.Errorf("instance %x: entry %d stands where %d should", id[:8], entry.Number, n)
		}
		if string(value) != string(e.content()) {
			return fmt.Errorf("instance %x: entry %d has another content", id[:8], n)
		}
		return nil
	})
	if err != nil {
		return n, err
	}
	record, err := j.Load(key.Record(nil, sh, workflow, id))
	if err != nil && !errors.Is(err, persistence.ErrNotFound) {
		return n, err
	}
	var head uint64
	if len(record) == 8 {
		head = binary.BigEndian.Uint64(record)
	}
	if head != n {
		return n, fmt.Errorf("instance %x: the record says %d events, there are %d", id[:8], head, n)
	}
	var replies uint64
	err = j.Scan(key.ReplyPrefix(nil, sh, id), func(_, _ []byte) error { replies++; return nil })
	if err == nil && replies != n {
		err = fmt.Errorf("instance %x: %d idempotency rows for %d events", id[:8], replies, n)
	}
	return n, err
}
