package form

import (
	"bytes"
	"encoding/binary"

	"troupe/persistence"
	"troupe/persistence/key"
)

// lists are the letters of the lists that have the rows of a user's forms of one kind. A commit decides in which of the
// first three a form has its row; whether a completed one is archived depends on the time.
type lists struct {
	current  byte // has not moved; by its creation
	underWay byte // has moved, is not done; by its creation
	done     byte // by its creation
	// ended has a second row for each one that is done, by the time of that; its value is the place that the first has.
	ended byte
}

var listsOf = map[Kind]lists{
	KindForm:      {current: 'f', underWay: 'u', done: 'd', ended: 'e'},
	KindChecklist: {current: 'c', underWay: 'U', done: 'D', ended: 'E'},
	KindInstance:  {current: 'i', underWay: 'j', done: 'k', ended: 'l'},
}

func (l lists) of(f *Form) byte {
	switch {
	case !f.Moved():
		return l.current
	case f.DoneAt == 0:
		return l.underWay
	}
	return l.done
}

// Spot is what the keys of a form's rows have of its instance. Made is the creation, in Unix milliseconds.
type Spot struct {
	Shard key.Shard
	ID    key.ID
	Made  int64
}

// Put writes the rows of a form, and removes those that it had before as another version of itself; nil: it is new.
func (r *Row) Put(w *persistence.Writes, at Spot, before *Form) {
	lists := listsOf[r.Kind]
	key := func(list byte, when int64) []byte { return key.List(nil, at.Shard, list, r.By, when, at.ID) }
	list := lists.of(&r.Form)
	if before != nil {
		if was := lists.of(before); was != list {
			w.Delete(key(was, at.Made))
		}
		if before.DoneAt != 0 && before.DoneAt != r.DoneAt {
			w.Delete(key(lists.ended, before.DoneAt))
		}
	}
	w.Set(key(list, at.Made), r.Append(nil))
	if r.DoneAt != 0 {
		w.Set(key(lists.ended, r.DoneAt), place(at.Made))
	}
}

// Remove removes the rows of a form that is deleted.
func (f *Form) Remove(w *persistence.Writes, at Spot) {
	lists := listsOf[f.Kind]
	w.Delete(key.List(nil, at.Shard, lists.of(f), f.By, at.Made, at.ID))
	if f.DoneAt != 0 {
		w.Delete(key.List(nil, at.Shard, lists.ended, f.By, f.DoneAt, at.ID))
	}
}

const placeBytes = 8

// place is where a time stands in a list: later ones come first.
func place(when int64) []byte { return binary.BigEndian.AppendUint64(nil, ^uint64(when)) }

func behind(place []byte) []byte {
	return append(place, bytes.Repeat([]byte{0xFF}, len(key.ID{})+1)...)
}
