package task

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"troupe/actors/catalog"
	"troupe/actors/failure"
	"troupe/actors/fanout"
	"troupe/actors/identity"
	"troupe/actors/query"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/expr"
	"troupe/statemachine/filter"
)

// LimitMax is the longest page.
const LimitMax = 1000

// Scope says which tasks a list has.
type Scope string

const (
	ScopeMine Scope = "mine" // that the caller has
	ScopeOpen Scope = "open" // that nobody has, and for which the caller is a candidate
	ScopeAll  Scope = "all"  // both
	ScopeDone Scope = "done" // that the caller has completed, the newest first
	// ScopeEvery has all open tasks, for holders of identity.Workflows, who see nothing of the data of their instances.
	ScopeEvery Scope = "every"
)

// ListRequest asks for tasks of the caller.
type ListRequest struct {
	Caller *identity.Principal
	Scope  Scope
	// WorkflowID, Filter and Query narrow the list; empty: they do not. Query has words that title, requester or id
	// must all have.
	WorkflowID, Filter, Query string
	Sort                      string // "due", "created", "priority" or "title", or one behind "-"; empty is "due"
	Limit                     int    // 1 to LimitMax, and Cursor Page.Next of the page before
	Cursor                    string
	Count                     bool     // Count asks for the number of all
	Languages                 []string // the reader's, for titles in Query and Filter
}

// Page is a part of a list. It may be shorter than the limit although more follow: Next is empty at the end.
type Page struct {
	Items []*Item
	Next  string
	Count *int64 // nil when it was not asked for, or would have taken too long
}

// Lists reads the worklists. Its methods are safe for concurrent use.
type Lists struct {
	Store   *persistence.Store
	Queries *query.Service
	Catalog *catalog.Catalog
	Clock   func() time.Time
	Bounds  Bounds
	NameOf  func(user string) string // NameOf returns the name of a user, which Query looks at; nil: nobody has one

	kind *fanout.Kind[ListRequest, part, partEnd] // nil: this node has all shards
}

var errTooManyTitles = failure.Refuse(failure.ErrInvalid, "too many tasks to sort by title: narrow the list or sort by something else")

// List returns a page of tasks that the caller may see. It sees one consistent moment, with everything that was
// acknowledged before, and wakes nobody.
func (l *Lists) List(ctx context.Context, req *ListRequest) (*Page, error) {
	r, err := l.newReading(req)
	switch {
	case err != nil:
	case l.kind != nil:
		err = r.merge(ctx)
	default:
		err = l.Queries.Read(ctx, l.Store.Numbered(), req.Caller.ID, r.read)
	}
	if err != nil {
		return nil, failure.In("list", "tasks", err)
	}
	return r.page, nil
}

type reading struct {
	*Lists
	req    *ListRequest
	caller *statemachine.Caller
	now    time.Time
	filter *filter.Filter
	words  []string
	list   query.List
	order  Order
	down   bool
	titles bool   // sorted by title, in memory
	after  []byte // where the page before ended; nil for the first
	shown  []byte // the place of the last task on the page
	page   *Page
	places [][]byte // those of the page's tasks
	ended  []byte   // the place behind which the next page begins; nil: nothing follows

	rights map[string]bool
	groups []key.Range // nil before they were looked for
	from   *query.Reader
	looked Bounds          // at how much since walk began
	budget *expr.Budget    // of Bounds.Cost, since then
	hidden map[key.ID]bool // instances that the caller may not see, as far as they were read
	count  int64
	last   *readInstance // of those that the caller may see; nil before the first
	all    []titled
}

type readInstance struct {
	id        key.ID
	whole     *Whole
	requester string
}

type titled struct {
	title string
	place []byte
	item  *Item
}

// ownRoots are the fields of a task that a filter can look at.
var ownRoots = []string{"taskId", "instanceId", "stateMachineId", "nodeId", "title", "status", "created", "due", "priority", "assignee", "requester"}

func (l *Lists) newReading(req *ListRequest) (*reading, error) {
	r := &reading{
		Lists: l, req: req, caller: catalog.CallerOf(req.Caller), now: l.Clock(), page: &Page{}, order: ByCreated, down: true, rights: map[string]bool{}, hidden: map[key.ID]bool{},
	}
	if req.Limit < 1 || req.Limit > LimitMax {
		return nil, failure.Refuse(failure.ErrInvalid, "the limit must be 1 to %d", LimitMax)
	}
	if req.Scope == ScopeEvery && !req.Caller.Has(identity.Workflows) {
		return nil, failure.Needs(identity.Workflows)
	}
	switch req.Scope {
	case ScopeMine, ScopeOpen, ScopeAll, ScopeEvery:
		if err := r.sortBy(req.Sort); err != nil {
			return nil, err
		}
	case ScopeDone:
		if req.Sort != "" {
			return nil, failure.Refuse(failure.ErrInvalid, "completed tasks are sorted newest first only")
		}
	default:
		return nil, failure.Refuse(failure.ErrInvalid, "the scope must be mine, open, all, done or every")
	}
	var err error
	if r.filter, err = filter.Parse([]byte(req.Filter), filter.Options{Own: ownRoots}); err != nil {
		return nil, failure.Refuse(failure.ErrInvalid, "%w", err)
	}
	if r.filter.UsesHistory() {
		return nil, failure.Refuse(failure.ErrInvalid, "the filter of tasks cannot look at svcHistory")
	}
	if req.Scope == ScopeEvery && r.filter.UsesData() {
		return nil, failure.Refuse(failure.ErrInvalid, "the filter of every task cannot look at svcPublic")
	}
	r.words = strings.Fields(strings.ToLower(req.Query))
	r.list = query.List{"tasks", string(req.Caller.ID), string(req.Scope), req.WorkflowID, req.Filter, req.Query, req.Sort}
	if req.Cursor != "" {
		r.after, err = r.list.Position(req.Cursor)
	}
	return r, err
}

func (r *reading) sortBy(text string) error {
	name, down := strings.CutPrefix(cmp.Or(text, "due"), "-")
	r.down = down
	switch name {
	case "due":
		r.order = ByDue
	case "created":
		r.order = ByCreated
	case "priority":
		r.order = ByPriority
	case "title":
		r.order, r.titles = ByCreated, true
	default:
		return failure.Refuse(failure.ErrInvalid, "tasks can be sorted by due, created, priority or title, with a leading - for descending order")
	}
	return nil
}

func (r *reading) worklists() (lists []worklist) {
	user := r.caller.ID
	if r.req.Scope == ScopeDone {
		return []worklist{{listDecided, user}}
	}
	if r.req.Scope != ScopeOpen {
		lists = append(lists, worklist{listMine, user})
	}
	if r.req.Scope != ScopeMine {
		lists = append(lists, candidateLists(r.caller)...)
	}
	return lists
}

func candidateLists(c *statemachine.Caller) []worklist {
	lists := []worklist{{letter: listEverybody}, {listUser, c.ID}}
	for _, role := range c.Roles {
		lists = append(lists, worklist{listRole, role})
	}
	for _, privilege := range c.Privileges {
		lists = append(lists, worklist{listPrivilege, privilege})
	}
	return lists
}

// A page and its count have a bound each, so that one that cannot be counted goes on all the same.
func (r *reading) read(from *query.Reader) error {
	r.from = from
	after := r.after
	if r.titles {
		after = nil // all are read
	}
	stopped, err := r.walk(after, r.add)
	switch {
	case err != nil:
		return err
	case r.titles && stopped != nil:
		return errTooManyTitles
	case r.titles:
		r.count = int64(len(r.all))
		r.sortTitles()
	case stopped != nil && len(r.page.Items) < r.req.Limit:
		r.ended = stopped
	case stopped != nil:
		r.ended = r.shown
	}
	if r.ended != nil {
		r.page.Next = r.list.Cursor(r.ended)
	}
	if r.req.Count {
		return r.countAll()
	}
	return nil
}

func (r *reading) countAll() error {
	switch {
	case r.titles: // it is counted
	case r.after == nil && r.ended == nil:
		r.count = int64(len(r.page.Items))
	default:
		stopped, err := r.walk(nil, func(*Item, []byte) bool { r.count++; return false })
		if err != nil || stopped != nil {
			return err
		}
	}
	r.page.Count = &r.count
	return nil
}

// walk calls take with the tasks of the list behind a place, nil for its beginning, until take is true.
func (r *reading) walk(after []byte, take func(item *Item, place []byte) bool) (stopped []byte, err error) {
	if r.groups == nil {
		if err := r.findGroups(); err != nil {
			return nil, err
		}
	}
	merge := r.from.Merge
	if r.down {
		merge = r.from.MergeBackward
	}
	c := merge(r.ranges(after)...)
	defer func() { err = errors.Join(err, failure.OfStore(c.Close())) }()
	var place []byte
	r.looked, r.last, r.budget = Bounds{}, nil, statemachine.NewBudget(r.Bounds.Cost)
	for c.Next() {
		if err := r.from.Step(); err != nil {
			return nil, err
		}
		if bytes.Equal(place, c.Rest()) { // in several worklists
			continue
		}
		if l := &r.looked; l.Rows >= r.Bounds.Rows || l.Shown >= r.Bounds.Shown || l.Hidden >= r.Bounds.Hidden || r.budget.Exhausted() {
			return place, nil
		}
		item, err := r.item(c.Key(), c.Value())
		if err != nil {
			return nil, err
		}
		if r.budget.Exhausted() && r.looked.Rows > 0 { // NB: it was refused because of those before: the next page begins with it
			clear(r.hidden)
			return place, nil
		}
		place = append(place[:0], c.Rest()...)
		r.looked.Rows++
		if item != nil && take(item, place) {
			return nil, nil
		}
	}
	return nil, failure.OfStore(c.Err())
}

func (r *reading) ranges(after []byte) (ranges []key.Range) {
	for _, of := range r.groups {
		switch {
		case after == nil:
		case r.down:
			of.To = after
		default:
			of.From = append(slices.Clone(after), 0)
		}
		ranges = append(ranges, of)
	}
	return ranges
}

// add is true when nothing more is to be read.
func (r *reading) add(item *Item, place []byte) bool {
	switch {
	case r.titles:
		r.all = append(r.all, titled{strings.ToLower(item.Title.For(r.req.Languages...)), bytes.Clone(place), item})
	case len(r.page.Items) < r.req.Limit:
		r.page.Items = append(r.page.Items, item)
		r.places = append(r.places, bytes.Clone(place))
		r.shown = append(r.shown[:0], place...)
	default:
		r.ended = r.shown
		return true
	}
	return false
}

func (r *reading) sortTitles() {
	slices.SortFunc(r.all, func(a, b titled) int { return r.compare(&a, &b) })
	if at, ok := titledAt(r.after); ok {
		first := slices.IndexFunc(r.all, func(t titled) bool { return r.compare(&t, &at) > 0 })
		if first < 0 {
			first = len(r.all)
		}
		r.all = r.all[first:]
	}
	for _, t := range r.all[:min(r.req.Limit, len(r.all))] {
		r.page.Items = append(r.page.Items, t.item)
		r.places = append(r.places, append([]byte(t.title), t.place...))
	}
	if n := len(r.page.Items); n < len(r.all) {
		r.ended = r.places[n-1]
	}
}

const placeBytes = 8 + len(key.ID{}) + 8 + 4

func titledAt(place []byte) (at titled, ok bool) {
	n := len(place) - placeBytes
	if n < 0 {
		return at, false
	}
	return titled{title: string(place[:n]), place: place[n:]}, true
}

func (r *reading) compare(a, b *titled) int {
	order := cmp.Or(cmp.Compare(a.title, b.title), bytes.Compare(a.place, b.place))
	if r.down {
		return -order
	}
	return order
}

func (r *reading) item(k, value []byte) (*Item, error) {
	_, w, ok := key.ParseWork(k)
	if !ok {
		return nil, failure.OfStore(persistence.ErrCorrupt)
	}
	id := statemachine.ElementID{Sequence: w.Sequence, Number: w.Number}
	sh := r.Store.ShardOf(w.ID)
	var decided *Decided
	workflow := cmp.Or(w.Workflow, string(value))
	if w.List == listDecided {
		of, err := loadRow(r.from, sh, w.ID, id)
		if errors.Is(err, failure.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		workflow, decided = of.Workflow, of.Decided
	}
	if !r.isWanted(workflow) {
		return nil, nil
	}
	whole, requester, err := r.instance(sh, workflow, w.ID)
	if whole == nil || err != nil {
		return nil, err
	}
	item := r.itemOf(whole, id, decided, requester)
	if item == nil || !r.matches(item, whole) {
		return nil, nil
	}
	return item, nil
}

// itemOf is the task as the caller sees it; nil when it is none of theirs.
func (r *reading) itemOf(whole *Whole, id statemachine.ElementID, decided *Decided, requester string) *Item {
	if decided != nil {
		return decidedItem(whole, decided, requester)
	}
	t := Find(whole.State, id)
	if t == nil {
		return nil
	}
	if r.req.Scope == ScopeEvery {
		return whole.BlindItemOf(t)
	}
	item := whole.ItemOf(t, r.caller, r.now, requester)
	if !item.IsFor(r.caller) {
		return nil
	}
	return item
}

// IsFor reports whether the caller has the task, or may take it over.
func (i *Item) IsFor(c *statemachine.Caller) bool {
	return i.Assignee == c.ID && i.Assignee != "" || i.Assignee == "" && i.IsCandidate
}

func loadRow(from query.Loader, sh key.Shard, instance key.ID, id statemachine.ElementID) (row, error) {
	stored, err := from.Load(key.Task(nil, sh, instance, id.Sequence, id.Number))
	if errors.Is(err, persistence.ErrNotFound) {
		return row{}, failure.ErrNotFound
	}
	if err != nil {
		return row{}, failure.OfStore(err)
	}
	of, err := parseRow(id, stored)
	if err != nil {
		return row{}, failure.Errorf(failure.ErrExecution, "%w", err)
	}
	return of, nil
}

func (r *reading) mayReadSome(workflow string) bool {
	may, known := r.rights[workflow]
	if !known && r.req.Scope == ScopeEvery {
		return true
	}
	if !known {
		rules, err := r.Catalog.Newest(workflow)
		may = err == nil && rules.ReadRight(r.caller, r.now) != statemachine.Denied
		r.rights[workflow] = may
	}
	return may
}

// instance reads an instance and who created it; nil when the caller may not see it, or nobody can read it.
func (r *reading) instance(sh key.Shard, workflow string, id key.ID) (*Whole, string, error) {
	if r.last != nil && r.last.id == id {
		return r.last.whole, r.last.requester, nil
	}
	if r.hidden[id] {
		return nil, "", nil
	}
	whole, err := loadWhole(r.from, r.Catalog, sh, workflow, id)
	requester := ""
	if whole != nil {
		whole.Budget = r.budget
	}
	switch {
	case err != nil:
	case r.req.Scope == ScopeEvery:
	case whole.MayRead(r.caller, r.now):
		requester, err = LoadRequester(r.from, sh, id)
	default:
		whole = nil
	}
	if err != nil && !isSkipped(err) {
		return nil, "", err
	}
	if whole == nil {
		r.looked.Hidden++
		r.hidden[id] = true
		return nil, "", nil
	}
	r.looked.Shown++
	r.last = &readInstance{id, whole, requester}
	return whole, requester, nil
}

func isSkipped(err error) bool {
	return errors.Is(err, failure.ErrExecution) || errors.Is(err, failure.ErrNotFound)
}
