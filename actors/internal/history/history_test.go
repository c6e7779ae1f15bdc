package history

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

func entry(n int) string { return fmt.Sprintf(`{"n":%d}`, n) }

// sealed returns n stored entries and the chain over all of them.
func sealed(n int) (entries [][]byte, chain statemachine.Chain) {
	for k := range n {
		stored := with(k+1, "")
		chain = Seal(stored, chain)
		entries = append(entries, stored)
	}
	return entries, chain
}

// with is the nth entry, which keeps what its event brought.
func with(n int, brought string) []byte {
	return Keep(append(make([]byte, HeadBytes), entry(n)...), data.Value(brought), false)
}

// TestWhatAnEventBrought stands beside its entry, and in the chain.
func TestWhatAnEventBrought(t *testing.T) {
	store, err := storetest.NewDisk().Open(persistence.Options{Log: zerolog.Nop()})
	require.NoError(t, err)
	defer func() {
		assert.NoError(t, store.Close())
	}()
	long := `{"text":"` + strings.Repeat("x", DataBytesMax) + `"}`
	id := key.ID{7}
	sh := store.ShardOf(id)
	w := store.NewBatch(sh)
	var chain statemachine.Chain
	var all [][]byte
	attempt := func(n int, brought data.Value) []byte {
		return Keep(append(make([]byte, HeadBytes), entry(n)...), brought, true)
	}
	for n, e := range [][]byte{with(1, ""), with(2, `{"a":1}`), with(3, long), attempt(4, nil), attempt(5, data.Value(`{"b":2}`)), attempt(6, data.Value(long))} {
		chain = Seal(e, chain)
		w.Set(key.Entry(nil, sh, id, uint64(n+1)), e)
		all = append(all, e)
	}
	require.NoError(t, store.Commit(w))
	want := entry(1) + "," + entry(2) + "," + entry(3) + "," + entry(4) + "," + entry(5) + "," + entry(6)
	joined, got, err := Load(store, sh, id, 6)
	assert.True(t, string(joined.Text) == want && got == chain && err == nil, "got %s, %x, %v", joined.Text, got, err)
	page, end, err := Page(store, sh, id, 1, 6, false)
	assert.True(t, string(page) == want && end == 6 && err == nil, "a page: %s, %d, %v", page, end, err)
	want = entry(3) + "," + entry(2)
	page, end, err = Page(store, sh, id, 3, 2, false)
	assert.True(t, string(page) == want && end == 2 && err == nil, "a page, newest first: %s, %d, %v", page, end, err)
	digest := fmt.Sprintf(`"data":null,"dataDigest":{"sha256":"%x","bytes":%d}`, sha256.Sum256([]byte(long)), len(long))
	want = entry(1) + `,{"n":2,"data":{"a":1}},{"n":3,` + digest + `},{"n":4,"attempt":true},{"n":5,"data":{"b":2},"attempt":true},{"n":6,` + digest + `,"attempt":true}`
	page, _, err = Page(store, sh, id, 1, 6, true)
	assert.True(t, string(page) == want && err == nil, "a page with data: %s, %v", page, err)
	all[1][len(all[1])-7]++ // of what the event brought
	w = store.NewBatch(sh)
	w.Set(key.Entry(nil, sh, id, 2), all[1])
	require.NoError(t, store.Commit(w))
	_, _, err = Load(store, sh, id, 3)
	assert.ErrorIs(t, err, ErrDamaged, "when what an event brought is altered")
}

func FuzzEntry(f *testing.F) {
	for _, e := range [][]byte{with(1, ""), with(2, `{"a":1}`)} {
		Seal(e, statemachine.Chain{})
		f.Add(e)
	}
	f.Fuzz(func(t *testing.T, stored []byte) {
		p, ok := split(stored)
		assert.False(t, ok && HeadBytes+len(p.entry)+len(p.brought)+len(p.changes) > len(stored),
			"%d bytes hold %d, %d and %d", len(stored), len(p.entry), len(p.brought), len(p.changes))
		_ = appendWith(nil, p.entry, p.brought, p.kind)
		_, _ = Ending(stored, []statemachine.NodeID{"a", "b"})
	})
}

// TestLoad: a history comes whole and in order, and what is missing, altered, foreign
// or in another place shows.
func TestLoad(t *testing.T) {
	store, err := storetest.NewDisk().Open(persistence.Options{Log: zerolog.Nop()})
	require.NoError(t, err)
	defer func() {
		assert.NoError(t, store.Close())
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
		id := key.ID{byte(n + 1)}
		sh := store.ShardOf(id)
		w := store.NewBatch(sh)
		for number, value := range stored {
			w.Set(key.Entry(nil, sh, id, number), value)
		}
		require.NoError(t, store.Commit(w))
		joined, got, err := Load(store, sh, id, c.ask)
		damaged := c.want == "" && c.ask > 0
		assert.True(t, string(joined.Text) == c.want && errors.Is(err, ErrDamaged) == damaged && (damaged || err == nil), "%v %v %v %v", c.name, joined.Text, err, c.want)
		assert.False(t, c.ask == 3 && !damaged && got != chain, "%s: got the chain %x, want %x", c.name, got, chain)
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
		{append(entries[0][:HeadBytes:HeadBytes], 0), "", true},
		{entries[0][:HeadBytes], "", false},
		{entries[0][:HeadBytes-1], "", false},
		{append([]byte{format + 1}, entries[0][1:]...), "", false},
		{append(entries[0][:len(entries[0])-1:len(entries[0])-1], wholeKind), "", false}, // its JSON has no length
		{append(entries[0][:HeadBytes:HeadBytes], 0, 0, 0, 9, foldedBit), "", false},
		{Keep(append(make([]byte, HeadBytes), entry(1)...), nil, true), entry(1), true},
		{Keep(append(make([]byte, HeadBytes), entry(1)...), nil, false), entry(1), true},
		{nil, "", false},
	} {
		got, ok := Ending(c.stored, nil)
		assert.True(t, string(got) == c.want && ok == c.ok, "%x: got %q, %v, want %q, %v", c.stored, got, ok, c.want, c.ok)
	}
}
