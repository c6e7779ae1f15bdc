package workflow_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
	"troupe/statemachine"
)

// formShelf is a store with rows of john.doe's forms.
type formShelf struct {
	store *persistence.Store
	lists *query.Service
}

func newFormShelf(t testing.TB) *formShelf {
	t.Helper()
	store, err := storetest.NewDisk().Open(persistence.Options{Log: zerolog.Nop()})
	require.NoError(t, err)
	s := &formShelf{store, query.New(query.Options{Store: store, QueriesMax: 1, ListsMax: 1, QueriesOpenMax: 2, ListsOpenMax: 2, TimeMax: time.Minute})}
	t.Cleanup(func() { s.lists.Stop(); _ = store.Close() })
	return s
}

// put adds forms that were made from a time on, one each millisecond, and came to their end at another time; 0: never.
func (s *formShelf) put(t testing.TB, first, count int, made, done int64, name string) {
	t.Helper()
	writes := map[key.Shard]*persistence.Batch{}
	for n := range count {
		id := key.ID{1}
		binary.BigEndian.PutUint64(id[8:], uint64(first+n))
		sh := s.store.ShardOf(id)
		if writes[sh] == nil {
			writes[sh] = s.store.NewBatch(sh)
		}
		of := leaveForm()
		of.Name = name
		f := of.Begin([]byte(atStart), false, time.UnixMilli(made+int64(n)), nil)
		if done != 0 {
			f = f.Next([]byte(atEnd), true, time.UnixMilli(done), func() string { return "01ARZ3NDEKTSV4RRFFQ69G5FAV" })
		}
		row := form.Row{Form: f, WorkflowID: "leave-request", Nodes: "draft"}
		row.Put(writes[sh], form.Spot{Shard: sh, ID: id, Made: made + int64(n)}, nil)
	}
	for _, w := range writes {
		require.NoError(t, s.store.Commit(w))
	}
}

func (s *formShelf) page(t testing.TB, req form.PageRequest) *form.Page {
	t.Helper()
	req.Kind, req.User = form.KindForm, "john.doe"
	page, err := form.ReadPage(t.Context(), s.lists, &req)
	require.NoError(t, err)
	return page
}

// TestASearchIsBounded: a page that finds nothing looks at so many rows, and says that there are more.
func TestASearchIsBounded(t *testing.T) {
	s := newFormShelf(t)
	s.put(t, 0, 10_005, 1, 0, "Leave")
	s.put(t, 10_005, 1, 0, 0, "Needle in Hay") // the oldest
	req := form.PageRequest{Limit: 10, Query: "hay NEEDLE"}
	first := s.page(t, req)
	require.True(t, len(first.Forms) == 0 && first.Next != "", "the first page: %d forms, next %q; want none and a next", len(first.Forms), first.Next)
	req.Cursor = first.Next
	second := s.page(t, req)
	assert.True(t, len(second.Forms) == 1 && second.Next == "", "the second page: %d forms, next %q; want one and no next", len(second.Forms), second.Next)
	req = form.PageRequest{Limit: 10, Query: "needle", Sort: form.ByName, Count: true}
	page := s.page(t, req)
	assert.True(t, len(page.Forms) == 1 && page.Count != nil && *page.Count == 1, "by name: %+v", page)
}

// TestTitlesAreSearched: in each order, by what is in another language; and nothing is asked for when a page is not searched.
func TestTitlesAreSearched(t *testing.T) {
	s := newFormShelf(t)
	s.put(t, 0, 1000, 1, 0, "Leave")
	asked := 0
	req := form.PageRequest{Limit: 1000, Query: "LEAVE süden", Count: true, Title: func(_ query.Loader, l form.Listed) (statemachine.Text, error) {
		asked++
		title := statemachine.Text{{Language: "en", Text: fmt.Sprint("To the north ", l.When)}}
		if l.When%100 == 0 {
			title = append(title, statemachine.Translation{Language: "de", Text: "Nach Süden"})
		}
		return title, nil
	}}
	for _, req.Sort = range []form.Sort{form.NewestFirst, form.OldestFirst, form.ByName} {
		if page := s.page(t, req); len(page.Forms) != 10 || *page.Count != 10 || page.Next != "" {
			t.Errorf("%q by %s: %d forms of %d, next %q", req.Query, req.Sort, len(page.Forms), *page.Count, page.Next)
		}
	}
	req.Limit, req.Query = 1, "süden"
	assert.GreaterOrEqual(t, asked, 1000, "titles were asked for")
	for n := range 10 {
		page := s.page(t, req)
		require.True(t, len(page.Forms) == 1 && page.Forms[0].When%100 == 0 && (page.Next == "") == (n == 9), "page %d: %d forms, next %q", n, len(page.Forms), page.Next)
		req.Cursor = page.Next
	}
	asked = 0
	s.page(t, form.PageRequest{Limit: 10, Title: req.Title, Count: true})
	s.page(t, form.PageRequest{Limit: 10, Title: req.Title, Count: true, Query: "leave"})
	assert.Zero(t, asked, "titles were asked for, of forms whose names have the words")
}

// TestAPageByTimeReadsWhatItShows: rows behind the page may be damaged, and nobody notices.
func TestAPageByTimeReadsWhatItShows(t *testing.T) {
	s := newFormShelf(t)
	const cut = 1_000_000
	s.put(t, 0, 2000, cut, cut+5000, "Leave") // completed lately, and made lately
	s.put(t, 5000, 50, 1, cut+5000, "Leave")  // completed lately, and made long ago
	spoil := func(list byte, made int64, n int, to []byte) {
		id := key.ID{1}
		binary.BigEndian.PutUint64(id[8:], uint64(n))
		w := s.store.NewBatch(s.store.ShardOf(id))
		w.Set(key.List(nil, s.store.ShardOf(id), list, "john.doe", made, id), to)
		require.NoError(t, s.store.Commit(w))
	}
	req := form.PageRequest{ListRequest: form.ListRequest{Category: form.Submitted, ArchivedBefore: cut}, Limit: 50}
	req.Kind, req.User = form.KindForm, "john.doe"
	want := s.page(t, req)
	spoil('d', cut, 0, []byte("damaged")) // the last one that was made lately
	spoil('e', cut+5000, 5000, []byte("damaged"))
	got := s.page(t, req)
	assert.True(t, len(got.Forms) == 50 && got.Next == want.Next && got.Forms[49].InstanceID == want.Forms[49].InstanceID, "the first page: %d forms", len(got.Forms))
	for _, backward := range []form.Sort{form.OldestFirst, form.ByName} {
		req.Sort = backward
		_, err := form.ReadPage(t.Context(), s.lists, &req)
		assert.ErrorIs(t, err, failure.ErrExecution, "%s, which comes to the damage", backward)
	}
}

// TestPagesAreTheList: each page begins where the one before ended, in each order and category, whatever the size.
func TestPagesAreTheList(t *testing.T) {
	s := newFormShelf(t)
	const cut = 1000
	for n, of := range []struct{ made, done int64 }{{900, 0}, {1100, 0}, {100, 500}, {200, 1500}, {900, 1600}, {990, 1990}, {1200, 1300}, {300, 999}, {990, 1000}} {
		s.put(t, 100*n, 20, of.made, of.done, []string{"b", "A", "c"}[n%3])
	}
	for _, category := range []form.Category{form.Current, form.Submitted, form.Archived} {
		list := form.ListRequest{Kind: form.KindForm, User: "john.doe", Category: category, ArchivedBefore: cut}
		var all []string
		names := map[string]string{}
		err := form.List(context.Background(), s.lists, &list, func(l form.Listed) error {
			all = append(all, l.InstanceID)
			names[l.InstanceID] = strings.ToLower(l.Name) + l.InstanceID
			return nil
		})
		require.True(t, err == nil && len(all) >= 40, "%s: %d forms, %v", category, len(all), err)
		oldest, byName := slices.Clone(all), slices.Clone(all)
		slices.Reverse(oldest)
		slices.SortFunc(byName, func(a, b string) int { return strings.Compare(names[a], names[b]) })
		for sort, want := range map[form.Sort][]string{"": all, form.NewestFirst: all, form.OldestFirst: oldest, form.ByName: byName} {
			for _, limit := range []int{1, 7, 20, 1000} {
				req, got := form.PageRequest{ListRequest: list, Sort: sort, Limit: limit}, []string(nil)
				for {
					page := s.page(t, req)
					for _, f := range page.Forms {
						got = append(got, f.InstanceID)
					}
					if req.Cursor = page.Next; page.Next == "" {
						break
					}
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s by %q, %d at a time: got %d forms, want %d: %s", category, sort, limit, len(got), len(want), fmt.Sprint(got))
				}
			}
		}
	}
}

// BenchmarkFormList lists the forms of a user who has completed 100,000, a thousand of them
// lately, and has ten more that are current.
func BenchmarkFormList(b *testing.B) {
	store, err := persistence.Open(b.TempDir(), persistence.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	const cut = 1_000_000
	fill := func(first, count int, made int64, done bool) {
		for n := range count {
			id := key.ID{1}
			binary.BigEndian.PutUint64(id[8:], uint64(first+n))
			f := leaveForm().Begin([]byte(atStart), false, time.UnixMilli(made+int64(n)), nil)
			if done {
				f = f.Next([]byte(atEnd), true, time.UnixMilli(made+int64(n)), func() string { return "01ARZ3NDEKTSV4RRFFQ69G5FAV" })
			}
			w := store.NewBatch(store.ShardOf(id))
			row := form.Row{Form: f, WorkflowID: "leave-request", Nodes: "draft"}
			row.Put(w, form.Spot{Shard: store.ShardOf(id), ID: id, Made: made + int64(n)}, nil)
			store.Append(w, ignore{})
		}
		if err := store.AwaitDurable(); err != nil {
			b.Fatal(err)
		}
	}
	fill(0, 99_000, 1, true)
	fill(100_000, 1000, cut, true)
	fill(200_000, 10, 1, false)
	lists := query.New(query.Options{Store: store, QueriesMax: 1, ListsMax: 1, QueriesOpenMax: 2, ListsOpenMax: 2, TimeMax: time.Minute})
	defer lists.Stop()
	for category, want := range map[form.Category]int{form.Current: 10, form.Submitted: 1000, form.Archived: 99_000} {
		b.Run(fmt.Sprintf("%d %s", want, category), func(b *testing.B) {
			for b.Loop() {
				shown := 0
				req := &form.ListRequest{Kind: form.KindForm, User: "john.doe", Category: category, ArchivedBefore: cut}
				if err := form.List(context.Background(), lists, req, func(form.Listed) error { shown++; return nil }); err != nil || shown != want {
					b.Fatalf("%d are shown, %v, want %d", shown, err, want)
				}
			}
		})
	}
}
