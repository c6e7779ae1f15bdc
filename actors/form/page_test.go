package form

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"troupe/actors/failure"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/persistence/storetest"
	"troupe/statemachine"
)

// shelf is a store with rows of john.doe's forms.
type shelf struct {
	store *persistence.Store
	lists *query.Service
}

func newShelf(t testing.TB) *shelf {
	t.Helper()
	store, err := storetest.NewDisk().Open(persistence.Options{Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	s := &shelf{store, query.New(query.Options{Store: store, QueriesMax: 1, ListsMax: 1, QueriesOpenMax: 2, ListsOpenMax: 2, TimeMax: time.Minute})}
	t.Cleanup(func() { s.lists.Stop(); _ = store.Close() })
	return s
}

// put adds forms that were made from a time on, one each millisecond, and came to their end at another time; 0: never.
func (s *shelf) put(t testing.TB, first, count int, made, done int64, name string) {
	t.Helper()
	writes := map[key.Shard]*persistence.Batch{}
	for n := range count {
		id := key.ID{1}
		binary.BigEndian.PutUint64(id[8:], uint64(first+n))
		sh := s.store.ShardOf(id)
		if writes[sh] == nil {
			writes[sh] = s.store.NewBatch(sh)
		}
		of := leave()
		of.Name = name
		f := of.Begin([]byte(atStart), false, time.UnixMilli(made+int64(n)), nil)
		if done != 0 {
			f = f.Next([]byte(atEnd), true, time.UnixMilli(done), func() string { return "01ARZ3NDEKTSV4RRFFQ69G5FAV" })
		}
		row := Row{Form: f, WorkflowID: "leave-request", Nodes: "draft"}
		row.Put(writes[sh], Spot{Shard: sh, ID: id, Made: made + int64(n)}, nil)
	}
	for _, w := range writes {
		if err := s.store.Commit(w); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *shelf) page(t testing.TB, req PageRequest) *Page {
	t.Helper()
	req.Kind, req.User = KindForm, "john.doe"
	page, err := ReadPage(t.Context(), s.lists, &req)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// TestASearchIsBounded: a page that finds nothing looks at so many rows, and says that there are more.
func TestASearchIsBounded(t *testing.T) {
	s := newShelf(t)
	s.put(t, 0, searchedMax+5, 1, 0, "Leave")
	s.put(t, searchedMax+5, 1, 0, 0, "Needle in Hay") // the oldest
	req := PageRequest{Limit: 10, Query: "hay NEEDLE"}
	first := s.page(t, req)
	if len(first.Forms) != 0 || first.Next == "" {
		t.Fatalf("the first page: %d forms, next %q; want none and a next", len(first.Forms), first.Next)
	}
	req.Cursor = first.Next
	if second := s.page(t, req); len(second.Forms) != 1 || second.Next != "" {
		t.Errorf("the second page: %d forms, next %q; want one and no next", len(second.Forms), second.Next)
	}
	req = PageRequest{Limit: 10, Query: "needle", Sort: ByName, Count: true}
	if page := s.page(t, req); len(page.Forms) != 1 || page.Count == nil || *page.Count != 1 {
		t.Errorf("by name: %+v", page)
	}
}

// TestTitlesAreSearched: in each order, by what is in another language; and nothing is asked for when a page is not searched.
func TestTitlesAreSearched(t *testing.T) {
	s := newShelf(t)
	s.put(t, 0, 1000, 1, 0, "Leave")
	asked := 0
	req := PageRequest{Limit: 1000, Query: "LEAVE süden", Count: true, Title: func(_ *query.Reader, l Listed) (statemachine.Text, error) {
		asked++
		title := statemachine.Text{{Language: "en", Text: fmt.Sprint("To the north ", l.When)}}
		if l.When%100 == 0 {
			title = append(title, statemachine.Translation{Language: "de", Text: "Nach Süden"})
		}
		return title, nil
	}}
	for _, req.Sort = range []Sort{NewestFirst, OldestFirst, ByName} {
		if page := s.page(t, req); len(page.Forms) != 10 || *page.Count != 10 || page.Next != "" {
			t.Errorf("%q by %s: %d forms of %d, next %q", req.Query, req.Sort, len(page.Forms), *page.Count, page.Next)
		}
	}
	if req.Limit, req.Query = 1, "süden"; asked < 1000 {
		t.Errorf("%d titles were asked for", asked)
	}
	for n := range 10 {
		page := s.page(t, req)
		if len(page.Forms) != 1 || page.Forms[0].When%100 != 0 || (page.Next == "") != (n == 9) {
			t.Fatalf("page %d: %d forms, next %q", n, len(page.Forms), page.Next)
		}
		req.Cursor = page.Next
	}
	asked = 0
	s.page(t, PageRequest{Limit: 10, Title: req.Title, Count: true})
	s.page(t, PageRequest{Limit: 10, Title: req.Title, Count: true, Query: "leave"})
	if asked != 0 {
		t.Errorf("%d titles were asked for, of forms whose names have the words", asked)
	}
}

// TestAPageByTimeReadsWhatItShows: rows behind the page may be damaged, and nobody notices.
func TestAPageByTimeReadsWhatItShows(t *testing.T) {
	s := newShelf(t)
	const cut = 1_000_000
	s.put(t, 0, 2000, cut, cut+5000, "Leave") // completed lately, and made lately
	s.put(t, 5000, 50, 1, cut+5000, "Leave")  // completed lately, and made long ago
	spoil := func(list byte, made int64, n int, to []byte) {
		id := key.ID{1}
		binary.BigEndian.PutUint64(id[8:], uint64(n))
		w := s.store.NewBatch(s.store.ShardOf(id))
		w.Set(key.List(nil, s.store.ShardOf(id), list, "john.doe", made, id), to)
		if err := s.store.Commit(w); err != nil {
			t.Fatal(err)
		}
	}
	req := PageRequest{ListRequest: ListRequest{Category: Submitted, ArchivedBefore: cut}, Limit: 50}
	req.Kind, req.User = KindForm, "john.doe"
	want := s.page(t, req)
	spoil('d', cut, 0, []byte("damaged")) // the last one that was made lately
	spoil('e', cut+5000, 5000, []byte("damaged"))
	if got := s.page(t, req); len(got.Forms) != 50 || got.Next != want.Next || got.Forms[49].InstanceID != want.Forms[49].InstanceID {
		t.Errorf("the first page: %d forms", len(got.Forms))
	}
	for _, backward := range []Sort{OldestFirst, ByName} {
		req.Sort = backward
		if _, err := ReadPage(t.Context(), s.lists, &req); !errors.Is(err, failure.ErrExecution) {
			t.Errorf("%s, which comes to the damage: got %v, so this test shows nothing", backward, err)
		}
	}
}

// TestPagesAreTheList: each page begins where the one before ended, in each order and category, whatever the size.
func TestPagesAreTheList(t *testing.T) {
	s := newShelf(t)
	const cut = 1000
	for n, of := range []struct{ made, done int64 }{{900, 0}, {1100, 0}, {100, 500}, {200, 1500}, {900, 1600}, {990, 1990}, {1200, 1300}, {300, 999}, {990, 1000}} {
		s.put(t, 100*n, 20, of.made, of.done, []string{"b", "A", "c"}[n%3])
	}
	for _, category := range []Category{Current, Submitted, Archived} {
		list := ListRequest{Kind: KindForm, User: "john.doe", Category: category, ArchivedBefore: cut}
		var all []string
		names := map[string]string{}
		if err := List(context.Background(), s.lists, &list, func(l Listed) error {
			all = append(all, l.InstanceID)
			names[l.InstanceID] = strings.ToLower(l.Name) + l.InstanceID
			return nil
		}); err != nil || len(all) < 40 {
			t.Fatalf("%s: %d forms, %v", category, len(all), err)
		}
		oldest, byName := slices.Clone(all), slices.Clone(all)
		slices.Reverse(oldest)
		slices.SortFunc(byName, func(a, b string) int { return strings.Compare(names[a], names[b]) })
		for sort, want := range map[Sort][]string{"": all, NewestFirst: all, OldestFirst: oldest, ByName: byName} {
			for _, limit := range []int{1, 7, 20, 1000} {
				req, got := PageRequest{ListRequest: list, Sort: sort, Limit: limit}, []string(nil)
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
