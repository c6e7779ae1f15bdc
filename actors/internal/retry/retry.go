// Package retry is the stored form of first answers: what a request with an idempotency key was answered, so that its
// repetitions get the same (gateway/INTERFACE.md, "Retries").
package retry

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/puzpuzpuz/xsync/v4"

	"troupe/actors/failure"
	"troupe/actors/internal/concurrent"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine/data"
	"troupe/statemachine/packed"
)

// Digest stands for a caller and an idempotency key.
type Digest [16]byte

// DigestOf is the digest of a user's key.
func DigestOf(user, key string) Digest {
	sum := sha256.Sum256(append(append([]byte(user), 0), key...))
	return Digest(sum[:16])
}

// OfCreate is where an instance remembers under which key it was created: that of no user.
var OfCreate = DigestOf("", "create")

// First is the first answer to a request with an idempotency key, without its history. The rest is rebuilt from entries
// 1 to Sequence.
type First struct {
	Fingerprint [32]byte
	Instance    key.ID
	Sequence    uint64
	At          int64 // when, in Unix ms
	Created     bool  // the request was an event that created its instance
	// Head and Tail are the record's JSON around its history; both empty where the answer is the instance alone.
	Head, Tail []byte
}

// Shown returns the members of the record that Head and Tail are of.
func (f *First) Shown() (public, private, states data.Value, redirect, businessKey string) {
	if len(f.Head) == 0 {
		return nil, nil, nil, "", ""
	}
	record := slices.Concat([]byte("{"), f.Head, []byte(","), f.Tail, []byte("}"))
	for name, v := range data.Value(record).Members() {
		switch name {
		case "svcPublic":
			public = v
		case "svcPrivate":
			private = v
		case "states":
			states = v
		case "svcRedirect":
			redirect = v.Text()
		case "key":
			businessKey = v.Text()
		}
	}
	return public, private, states, redirect, businessKey
}

// A row begins with its format, which also says whether First.Created.
const (
	format        = 1
	formatCreated = 2
)

// Append writes format(1) fingerprint(32) instance(16) sequence at head tail.
func (f *First) Append(dst []byte) []byte {
	if f.Created {
		dst = append(dst, formatCreated)
	} else {
		dst = append(dst, format)
	}
	dst = append(dst, f.Fingerprint[:]...)
	dst = append(dst, f.Instance[:]...)
	dst = binary.AppendUvarint(dst, f.Sequence)
	dst = binary.AppendVarint(dst, f.At)
	return append(packed.AppendText(dst, f.Head), f.Tail...)
}

// Parse reads what Append wrote, or failure.ErrExecution; its slices alias b.
func Parse(b []byte) (*First, error) {
	r := packed.NewReader(b)
	form := r.Byte()
	if form != format && form != formatCreated {
		r.Fail()
	}
	f := &First{Created: form == formatCreated}
	copy(f.Fingerprint[:], r.Take(len(f.Fingerprint)))
	copy(f.Instance[:], r.Take(len(f.Instance)))
	f.Sequence, f.At = r.Uvarint(), r.Varint()
	f.Head, f.Tail = r.Text(), r.Rest()
	if !r.Whole() {
		return nil, failure.Errorf(failure.ErrExecution, "stored reply")
	}
	return f, nil
}

// Point writes, into the commit of a request that names its instance by the business key, whose the answer is: of is the row of the
// instance, which has the answer itself and goes with it.
func Point(w *persistence.Batch, sh key.Shard, digest Digest, of *First) {
	row := *of
	row.Head, row.Tail = nil, nil
	w.Set(key.Reply(nil, sh, key.ID{}, digest), row.Append(nil))
}

// Load reads what was stored under a row's key; nil when nothing was. failure.ErrKeyReused: it was the answer to
// another request.
func Load(store *persistence.Store, key []byte, fingerprint [32]byte) (*First, error) {
	value, err := store.Load(key)
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, failure.OfStore(err)
	}
	first, err := Parse(value)
	if err != nil {
		return nil, err
	}
	if first.Fingerprint != fingerprint {
		return nil, failure.ErrKeyReused
	}
	return first, nil
}

// LoadDurable is Load of an answer that no crash takes back.
func LoadDurable(store *persistence.Store, key []byte, fingerprint [32]byte) (*First, error) {
	first, err := Load(store, key, fingerprint)
	if first != nil || errors.Is(err, failure.ErrKeyReused) { // NB: of a request that may have given up before
		if wait := store.AwaitDurable(); wait != nil {
			return nil, failure.OfStore(wait)
		}
	}
	return first, err
}

// Row is one stored answer as the cleaning sees it.
type Row struct {
	key []byte
	at  int64 // Unix ms
}

// KeepCreate writes, into the commit of a create, that its key's row is of this instance.
func KeepCreate(w *persistence.Batch, sh key.Shard, id key.ID, digest Digest, at int64) {
	row := First{Instance: key.ID(digest), At: at}
	w.Set(key.Reply(nil, sh, id, OfCreate), row.Append(nil))
}

// BareCreate leaves of the key with which an instance was created, if there was one, what a repetition must know: the
// data of the answer goes.
func BareCreate(w *persistence.Batch, store *persistence.Store, sh key.Shard, id key.ID) error {
	own, err := store.Load(key.Reply(nil, sh, id, OfCreate))
	if errors.Is(err, persistence.ErrNotFound) {
		return nil
	}
	if err != nil {
		return failure.OfStore(err)
	}
	of, err := Parse(own)
	if err != nil {
		return err
	}
	row := key.Reply(nil, sh, key.ID{}, of.Instance)
	stored, err := store.Load(row)
	if errors.Is(err, persistence.ErrNotFound) { // it was forgotten
		return nil
	}
	if err != nil {
		return failure.OfStore(err)
	}
	first, err := Parse(stored)
	if err == nil && first.Instance == id {
		first.Head, first.Tail = nil, nil
		w.Set(row, first.Append(nil))
	}
	return err
}

// Rows reads the rows under a prefix, but for that of OfCreate.
func Rows(store *persistence.Store, prefix []byte) ([]Row, error) {
	var rows []Row
	err := store.Scan(prefix, func(key, value []byte) error {
		f, err := Parse(value)
		if err != nil || bytes.HasSuffix(key, OfCreate[:]) {
			return err
		}
		rows = append(rows, Row{slices.Clone(key), f.At})
		return nil
	})
	return rows, err
}

// Forgettable returns the keys of the rows that may go: those from before a time, in Unix ms, that are not among the
// last to keep.
func Forgettable(rows []Row, keep int, before int64) [][]byte {
	slices.SortFunc(rows, func(a, b Row) int { return int(a.at - b.at) })
	var keys [][]byte
	for n := range max(0, len(rows)-keep) {
		if rows[n].at >= before {
			break
		}
		keys = append(keys, rows[n].key)
	}
	return keys
}

// CleanCreates removes the rows from before a time, in Unix ms, that have no instance to go with.
func CleanCreates(store *persistence.Store, before int64) error {
	return store.DeleteWhere(key.ReplyPrefix(nil, key.EveryShard, key.ID{}), func(value []byte) (bool, error) {
		f, err := Parse(value)
		return err == nil && f.At < before, err
	})
}

// Keys makes requests with the same idempotency key wait for each other.
type Keys struct {
	held concurrent.Map[Digest, chan struct{}] // each is closed when the key is free
}

// NewKeys returns Keys of which none is held.
func NewKeys() Keys { return Keys{xsync.NewMap[Digest, chan struct{}]()} }

// Hold returns when no other request has the key; others wait until release is called. wait waits until done is closed,
// and its errors are Hold's.
func (k Keys) Hold(key Digest, wait func(done <-chan struct{}) error) (release func(), err error) {
	own := make(chan struct{})
	for {
		held, loaded := k.held.LoadOrStore(key, own)
		if !loaded {
			return func() {
				k.held.Delete(key)
				close(own)
			}, nil
		}
		if err := wait(held); err != nil {
			return nil, err
		}
	}
}

// PlaceOf returns the digest of a user's key that belongs to no instance, and the shard of its row.
func PlaceOf(store *persistence.Store, user, k string) (Digest, key.Shard) {
	digest := DigestOf(user, k)
	// NB: a part of the format on disk: the row of a first answer is found only where it was put.
	return digest, key.Shard(binary.BigEndian.Uint64(digest[:8]) % uint64(store.Shards()))
}

// Claim is Hold for a key outside every instance that is new. When the key has a first answer, and with an error,
// nothing is held and release is nil.
func (k Keys) Claim(store *persistence.Store, sh key.Shard, rowKey Digest, fingerprint [32]byte, wait func(done <-chan struct{}) error) (release func(), first *First, err error) {
	if release, err = k.Hold(rowKey, wait); err != nil {
		return nil, nil, err
	}
	first, err = LoadDurable(store, key.Reply(nil, sh, key.ID{}, rowKey), fingerprint)
	if first != nil || err != nil {
		release()
		return nil, first, err
	}
	return release, nil, nil
}

// Keep stores what a key outside every instance stands for, unless that is stored, and returns when it is durable:
// failure.ErrKeyReused when the key stands for something else. Its caller holds the key, and asked for the epoch of the
// shard before.
func Keep(store *persistence.Store, sh key.Shard, epoch uint64, k Digest, f *First) error {
	row := key.Reply(nil, sh, key.ID{}, k)
	first, err := LoadDurable(store, row, f.Fingerprint)
	if first != nil || err != nil {
		return err
	}
	w := store.NewBatchIn(sh, epoch)
	w.Set(row, f.Append(nil))
	return failure.OfStore(store.Commit(w))
}
