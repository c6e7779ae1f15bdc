package form

import (
	"bytes"
	"cmp"
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/query"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// ListRequest asks for the forms of one kind that a user created.
type ListRequest struct {
	Kind           Kind
	WithInstances  bool // WithInstances asks for instances that are not forms, too
	User           identity.UserID
	Category       Category
	ArchivedBefore int64 // that of Form.CategoryAt, 0 or later
}

// Listed is one line of a list.
type Listed struct {
	*Row
	InstanceID string
	When       int64 // the creation, in Unix milliseconds

	title statemachine.Text // where a search has looked for it
}

const listedBytes = 400

// List calls yield with the forms of one category, the newest first and those of the same millisecond by id. It sees
// one consistent moment, with everything that was acknowledged before the call, and wakes nobody.
//
// It returns failure.ErrBusy when no slot comes free in time or the list takes too long, and yield's own error when it
// stops early.
func List(ctx context.Context, lists *query.Service, req *ListRequest, yield func(Listed) error) error {
	return list(ctx, lists, req, req.selection(), nil, func(l Listed) error {
		if !req.has(&l) {
			return nil
		}
		return yield(l)
	})
}

func (req *ListRequest) has(l *Listed) bool {
	return req.Category == Every || l.CategoryAt(req.ArchivedBefore) == req.Category
}

// titles says which rows are looked at with their instances, and adds the title to those.
type titles struct {
	wants func(*Listed) bool
	add   func(query.Loader, *Listed) error
}

// list calls yield with all rows of a selection, whatever their category. look, unless it is nil, adds titles before.
func list(ctx context.Context, lists *query.Service, req *ListRequest, of query.Selection, look *titles, yield func(Listed) error) error {
	decode := func(from *query.Reader, r query.Row) (Listed, int, error) {
		row, err := ParseRow(r.Value)
		if err != nil {
			return Listed{}, 0, failure.Errorf(failure.ErrExecution, "list row of %s: %w", instanceid.Text(r.ID), err)
		}
		listed := Listed{Row: row, InstanceID: instanceid.Text(r.ID), When: int64(^binary.BigEndian.Uint64(r.Place))}
		if look != nil && from != nil && look.wants(&listed) {
			err = look.add(from, &listed)
		}
		return listed, len(r.Value) + listedBytes, err
	}
	var err error
	if look != nil && lists.IsMerged() {
		some := titled{ctx: ctx, lists: lists, user: req.User, titles: look, yield: yield}
		if err = query.Rows(ctx, lists, req.User, of, decode, some.take); err == nil {
			err = some.give()
		}
	} else {
		err = query.Rows(ctx, lists, req.User, of, decode, yield)
	}
	return failure.In("list", req.Kind.String()+"s", err)
}

// titled gives rows on with their titles, whose instances are on several nodes: some at a time.
type titled struct {
	*titles
	ctx   context.Context //nolint:containedctx // of the call
	lists *query.Service
	user  identity.UserID
	yield func(Listed) error
	rows  []Listed
}

const titledMax = 64

func (t *titled) take(l Listed) error {
	if t.rows = append(t.rows, l); len(t.rows) < titledMax {
		return nil
	}
	return t.give()
}

func (t *titled) give() error {
	var names []query.Name
	for k := range t.rows {
		if l := &t.rows[k]; t.wants(l) {
			id, _ := instanceid.Parse(l.InstanceID)
			names = append(names, query.Name{Workflow: l.WorkflowID, ID: id})
		}
	}
	err := t.lists.ReadInstances(t.ctx, t.user, names, func(from query.Loader) error {
		for k := range t.rows {
			if l := &t.rows[k]; t.wants(l) {
				if err := t.add(from, l); err != nil {
					return err
				}
			}
		}
		return nil
	})
	for _, l := range t.rows {
		if err == nil {
			err = t.yield(l)
		}
	}
	t.rows = t.rows[:0]
	return err
}

// What was created at or after ArchivedBefore was not completed before it.
func (req *ListRequest) selection() (of query.Selection) {
	kinds := []Kind{req.Kind}
	if req.WithInstances {
		kinds = append(kinds, KindInstance)
	}
	cut := behind(place(req.ArchivedBefore))
	for _, kind := range kinds {
		lists := listsOf[kind]
		in := func(list byte) key.Range {
			return key.Range{Prefix: key.ListPrefix(nil, key.EveryShard, list, string(req.User))}
		}
		current, underWay, done, ended := in(lists.current), in(lists.underWay), in(lists.done), in(lists.ended)
		switch {
		case req.Category == Every:
			of.Ranges = append(of.Ranges, current, underWay, done)
		case req.Category == Submitted:
			done.To, ended.To = cut, cut
			of.Ranges, of.Pointers = append(of.Ranges, underWay, done), append(of.Pointers, ended)
		case req.Category == Archived:
			done.From = cut
			of.Ranges = append(of.Ranges, done)
		default:
			of.Ranges = append(of.Ranges, current)
		}
	}
	if of.Pointers != nil {
		of.TargetsFrom, of.Targets = cut, map[byte]byte{}
		for _, lists := range listsOf {
			of.Targets[lists.ended] = lists.done
		}
	}
	return of
}

// Sort is the order of a page.
type Sort string

// By name those of the same name are in the order of their ids; upper and lower case are the same.
const (
	NewestFirst Sort = "-when"
	OldestFirst Sort = "when"
	ByName      Sort = "name"
)

// TitleOf returns what a form's instance is called for the user, in each language; no text for one that the user does
// not see.
type TitleOf func(query.Loader, Listed) (statemachine.Text, error)

// PageRequest asks for a part of a list.
type PageRequest struct {
	ListRequest
	Sort       Sort   // empty: NewestFirst
	WorkflowID string // WorkflowID has only forms of that workflow; empty: of all
	// Query has words that are all in the name, the id or a title; upper and lower case are the same.
	Query string
	// Title has a search look for titles, and shows those instances that are not forms and have one: nil shows none of
	// them.
	Title TitleOf
	// Name is what a form is called in each language; nil: Form.Name. Languages are those of the reader, for ByName.
	Name      func(*Form) statemachine.Text
	Languages []string
	Limit     int
	Cursor    string // Page.Next of the page before; empty: the first page
	Count     bool   // asks for Page.Count
}

// Page is a part of a list.
type Page struct {
	Forms []Listed
	Next  string // the cursor of the next page; empty when there is none
	Count *int64 // how many forms the whole list has; nil when that was not asked, and when counting would take long

	list  query.List
	place func(Listed) []byte
}

// NextBehind is the cursor of a page that begins behind a form of this one.
func (p *Page) NextBehind(n int) string { return p.list.Cursor(p.place(p.Forms[n])) }

const (
	searchedMax = 10_000  // how many rows a page looks at that has not found enough: it is shorter then
	countedMax  = 100_000 // how many rows a count, and an order by names, look at; a count reads searchedMax titles at most
)

var errEnough = errors.New("enough")

// ReadPage returns a page of a list, which is as List says. By name it looks at the whole list. The errors are those of
// List, and failure.ErrInvalid for a cursor of another list, and for a list that is too long to be sorted by name.
func ReadPage(ctx context.Context, lists *query.Service, req *PageRequest) (*Page, error) {
	of := *req
	of.Sort = cmp.Or(req.Sort, NewestFirst)
	if of.Name == nil {
		of.Name = func(f *Form) statemachine.Text { return statemachine.Plain(f.Name) }
	}
	req = &of
	r := pageReader{ctx: ctx, lists: lists, req: req, words: strings.Fields(strings.ToLower(req.Query))}
	var after []byte
	if req.Cursor != "" {
		var err error
		if after, err = r.name().Position(req.Cursor); err != nil {
			return nil, err
		}
		if len(after) < len(key.ID{}) || req.Sort != ByName && len(after) != placeBytes+len(key.ID{}) {
			return nil, query.ErrCursor
		}
	}
	read, place := r.byTime, placeOf
	if req.Sort == ByName {
		read, place = r.byName, r.nameKey
	}
	out, err := read(after)
	if err != nil {
		return nil, err
	}
	if out.list, out.place = r.name(), place; req.Count {
		out.Count, err = r.count()
	}
	return out, err
}

type pageReader struct {
	ctx   context.Context //nolint:containedctx // of the call
	lists *query.Service
	req   *PageRequest
	words []string // lower case

	titles int // that were read
}

func (r *pageReader) name() query.List {
	req := r.req
	of := req.Kind.String()
	if req.WithInstances {
		of += " or " + KindInstance.String()
	}
	return query.List{"forms", string(req.User), of, req.Category.String(), req.WorkflowID, string(req.Sort), req.Query}
}

// each calls yield with the rows of a selection, and whether they match.
func (r *pageReader) each(of query.Selection, yield func(l Listed, matches bool) error) error {
	var look *titles
	if r.req.Title != nil {
		look = &titles{
			wants: func(l *Listed) bool { return r.isAsked(*l) && (l.Kind == KindInstance || !r.hasWords(*l)) },
			add: func(from query.Loader, l *Listed) (err error) {
				r.titles++
				l.title, err = r.req.Title(from, *l)
				return err
			},
		}
	}
	return list(r.ctx, r.lists, &r.req.ListRequest, of, look, func(l Listed) error {
		return yield(l, r.isAsked(l) && (l.Kind != KindInstance || l.title != nil) && r.hasWords(l))
	})
}

func (r *pageReader) isAsked(l Listed) bool {
	return r.req.has(&l) && (r.req.WorkflowID == "" || l.WorkflowID == r.req.WorkflowID)
}

func (r *pageReader) hasWords(l Listed) bool {
	if len(r.words) == 0 {
		return true
	}
	texts := append(append(l.title.All(), l.InstanceID), r.req.Name(&l.Form).All()...)
	for n, t := range texts {
		texts[n] = strings.ToLower(t)
	}
	for _, word := range r.words {
		if !slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, word) }) {
			return false
		}
	}
	return true
}

// placeOf is where a form stands in the order of times: what follows the prefix of its row's key.
func placeOf(l Listed) []byte {
	id, _ := instanceid.Parse(l.InstanceID)
	return append(place(l.When), id[:]...)
}

func (r *pageReader) byTime(after []byte) (*Page, error) {
	page, looked := &Page{}, 0
	var last []byte
	of := r.req.selection()
	of.After, of.Backward = after, r.req.Sort == OldestFirst
	err := r.each(of, func(l Listed, matches bool) error {
		if len(page.Forms) == r.req.Limit || looked == searchedMax {
			page.Next = r.name().Cursor(last)
			return errEnough
		}
		looked++
		last = placeOf(l)
		if matches {
			page.Forms = append(page.Forms, l)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	return page, nil
}

func (r *pageReader) count() (*int64, error) {
	n, looked := int64(0), 0
	r.titles = 0
	err := r.each(r.req.selection(), func(_ Listed, matches bool) error {
		if looked++; looked > countedMax || r.titles > searchedMax {
			return errEnough
		}
		if matches {
			n++
		}
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &n, nil
}

// nameKey is where a form stands in the order of names: the name without case, a byte that no name has, and the id.
func (r *pageReader) nameKey(l Listed) []byte {
	id, _ := instanceid.Parse(l.InstanceID)
	return append(append([]byte(strings.ToLower(r.req.Name(&l.Form).For(r.req.Languages...))), 0), id[:]...)
}

// byName keeps the first forms behind the place while it looks at all.
func (r *pageReader) byName(after []byte) (*Page, error) {
	first, looked := &lastFirst{}, 0
	err := r.each(r.req.selection(), func(l Listed, matches bool) error {
		if looked++; looked > countedMax {
			return failure.Refuse(failure.ErrInvalid, "the list has more than %d forms, which is too many to sort them by name", countedMax)
		}
		key := r.nameKey(l)
		if !matches || bytes.Compare(key, after) <= 0 {
			return nil
		}
		if heap.Push(first, namedForm{key, l}); first.Len() > r.req.Limit+1 {
			heap.Pop(first)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	page := &Page{}
	more := first.Len() > r.req.Limit
	if more {
		heap.Pop(first)
		page.Next = r.name().Cursor((*first)[0].key)
	}
	page.Forms = make([]Listed, first.Len())
	for n := len(page.Forms) - 1; n >= 0; n-- {
		last, _ := heap.Pop(first).(namedForm)
		page.Forms[n] = last.Listed
	}
	return page, nil
}

type namedForm struct {
	key []byte
	Listed
}

// lastFirst is a heap of forms whose root is the last of them in the order of names.
type lastFirst []namedForm

func (h lastFirst) Len() int           { return len(h) }
func (h lastFirst) Less(a, b int) bool { return bytes.Compare(h[a].key, h[b].key) > 0 }
func (h lastFirst) Swap(a, b int)      { h[a], h[b] = h[b], h[a] }
func (h *lastFirst) Push(x any)        { *h = append(*h, x.(namedForm)) } //nolint:forcetypeassert // only namedForms are in it

func (h *lastFirst) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
