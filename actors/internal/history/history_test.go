package history

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rs/zerolog"

	"troupe/persistence"
	"troupe/persistence/storetest"
	"troupe/statemachine"
)

// entry is the JSON of the nth entry.
func entry(n int) string { return fmt.Sprintf(`{"n":%d}`, n) }

// sealed returns n stored entries and the chain over all of them.
func sealed(n int) (entries [][]byte, chain statemachine.Chain) {
	for k := range n {
		stored := append(make([]byte, HeadBytes), entry(k+1)...)
		chain = Seal(stored, chain)
		entries = append(entries, stored)
	}
	return entries, chain
}

// TestLoad: a history comes whole and in order, and what is missing, altered, foreign
// or in another place shows.
func TestLoad(t *testing.T) {
	store, err := storetest.NewDisk().Open(persistence.Options{Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	for n, c := range []struct {
		name  string
		spoil func(map[uint64][]byte) // of three entries, by their numbers
		ask   uint64
		want  string // empty: it is damaged
	}{
		{"all", nil, 3, entry(1) + "," + entry(2) + "," + entry(3)},
		{"those before an entry", nil, 2, entry(1) + "," + entry(2)},
		{"none", nil, 0, ""},
		{"more than there are", nil, 4, ""},
		{"the first is missing", func(m map[uint64][]byte) { delete(m, 1) }, 3, ""},
		{"one between is missing", func(m map[uint64][]byte) { delete(m, 2) }, 3, ""},
		{"the last is missing", func(m map[uint64][]byte) { delete(m, 3) }, 3, ""},
		{"a byte is altered", func(m map[uint64][]byte) { m[2][HeadBytes+5]++ }, 3, ""},
		{"the chain is altered", func(m map[uint64][]byte) { m[3][1]++ }, 3, ""},
		{"two have changed places", func(m map[uint64][]byte) { m[1], m[2] = m[2], m[1] }, 3, ""},
		{"another format", func(m map[uint64][]byte) { m[3][0]++ }, 3, ""},
		{"an entry without its head", func(m map[uint64][]byte) { m[3] = m[3][:HeadBytes-1] }, 3, ""},
	} {
		entries, chain := sealed(3)
		stored := map[uint64][]byte{1: entries[0], 2: entries[1], 3: entries[2]}
		if c.spoil != nil {
			c.spoil(stored)
		}
		id := persistence.ID{byte(n + 1)}
		sh := store.ShardOf(id)
		w := store.NewWrites(sh)
		for number, value := range stored {
			w.Set(persistence.EntryKey(nil, sh, id, number), value)
		}
		if err := store.Commit(w); err != nil {
			t.Fatal(err)
		}
		joined, got, err := Load(store, sh, id, c.ask)
		damaged := c.want == "" && c.ask > 0
		if string(joined) != c.want || errors.Is(err, ErrDamaged) != damaged || !damaged && err != nil {
			t.Errorf("%s: got %q, %v, want %q", c.name, joined, err, c.want)
		}
		if c.ask == 3 && !damaged && got != chain {
			t.Errorf("%s: got the chain %x, want %x", c.name, got, chain)
		}
	}
}

func TestEntry(t *testing.T) {
	entries, _ := sealed(1)
	for _, c := range []struct {
		stored []byte
		want   string
		ok     bool
	}{
		{entries[0], entry(1), true},
		{entries[0][:HeadBytes], "", true},
		{entries[0][:HeadBytes-1], "", false},
		{append([]byte{format + 1}, entries[0][1:]...), "", false},
		{nil, "", false},
	} {
		if got, ok := Entry(c.stored); string(got) != c.want || ok != c.ok {
			t.Errorf("%x: got %q, %v, want %q, %v", c.stored, got, ok, c.want, c.ok)
		}
	}
}
