package workflow

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/persistence"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// FormRequest asks for an instance as a form.
type FormRequest struct {
	Caller                 *identity.Principal
	WorkflowID, InstanceID string
	// Event names the event that submits the form, by what the form is made
	// from, or says why the caller may not do that; empty: nothing submits it.
	Event func(*form.Form) (string, error)
	// WithoutDraft leaves the caller's draft out of the view.
	WithoutDraft bool
}

// FormView is an instance as a form, at one moment.
type FormView struct {
	Form     *form.Form
	Sequence uint64
	// When is the creation, in Unix milliseconds.
	When   int64
	Public data.Value
	// States is the JSON of the positions, Nodes the names of their nodes,
	// joined with ", ".
	States []byte
	Nodes  string
	// Editable: the caller may send the event that submits the form now.
	Editable bool
	// Draft is the caller's; nil when there is none.
	Draft *Draft
}

// Draft is what a user has written and not sent. It belongs to no state of the
// instance, but is as durable.
type Draft struct {
	// Revision is higher with every change, also over drafts that are gone, unless
	// the clock was set back while the instance slept.
	Revision uint64
	SavedAt  int64 // Unix milliseconds
	Data     data.Value
}

// DraftCondition is what a request demands of the present draft. The zero value
// demands nothing.
type DraftCondition struct {
	// IfMatch lists the revisions that the present draft may have; nil means
	// any, also that there is none, unless MustExist demands one.
	IfMatch   []uint64
	MustExist bool
	// IfAbsent demands that there is none yet.
	IfAbsent bool
}

func (c *DraftCondition) demands() bool { return c.IfMatch != nil || c.MustExist || c.IfAbsent }

// holds looks at the present draft, which is nil when there is none.
func (c *DraftCondition) holds(present *Draft) bool {
	if present == nil {
		return c.IfMatch == nil && !c.MustExist
	}
	return !c.IfAbsent && (c.IfMatch == nil || slices.Contains(c.IfMatch, present.Revision))
}

// DraftRequest asks to keep a draft, or to drop it.
type DraftRequest struct {
	FormRequest
	// Data is a checked, compact object; absent drops the draft.
	Data data.Value
	DraftCondition

	saved Draft // what the actor made of it
}

// Form returns an instance as a form. The errors are those of Load; an instance
// that is no form is failure.ErrNotFound.
func (r *Router) Form(ctx context.Context, req *FormRequest) (*FormView, error) {
	var out *FormView
	load := &LoadRequest{Caller: req.Caller, WorkflowID: req.WorkflowID, InstanceID: req.InstanceID}
	err := r.look(ctx, load, func(i *instance) (err error) {
		out, err = i.formView(req)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("form %s/%s: %w", req.WorkflowID, req.InstanceID, err)
	}
	return out, nil
}

func (i *instance) formView(req *FormRequest) (*FormView, error) {
	if i.form == nil {
		return nil, failure.ErrNotFound
	}
	var draft *Draft
	if !req.WithoutDraft {
		var err error
		if draft, err = i.loadDraft(req.Caller.ID); err != nil {
			return nil, err
		}
	}
	return &FormView{
		Form: i.form, Sequence: i.state.Sequence, When: i.state.CreatedAt.UnixMilli(), Public: i.state.Public,
		States: i.states, Nodes: i.nodeNames(), Editable: i.mayFill(req) == nil, Draft: draft,
	}, nil
}

// mayFill asks whether the caller may submit the form now: failure.ErrNotAllowed,
// failure.ErrForbidden, failure.ErrNotFound or what req.Event says if not.
func (i *instance) mayFill(req *FormRequest) error {
	if i.form == nil {
		return failure.ErrNotFound
	}
	caller := callerOf(req.Caller)
	if err := i.mayReceive(&EventRequest{}, caller); err != nil {
		return err
	}
	event, err := req.Event(i.form)
	if err != nil {
		return err
	}
	for _, e := range i.of.Available(&i.state, caller, i.router.o.Clock()) {
		if string(e.Name) == event && e.Guard != statemachine.GuardFalse && len(e.Transitions) > 0 {
			return nil
		}
	}
	return failure.ErrNotAllowed
}

// SaveDraft keeps or drops the caller's draft; it is durable when SaveDraft
// returns. Besides the errors of Send: failure.ErrPrecondition, and failure.ErrNotAllowed when
// there is something to keep and the caller may not submit the form now.
func (r *Router) SaveDraft(_ context.Context, req *DraftRequest) (Draft, error) {
	err := r.mayAsk(req.WorkflowID, req.Caller)
	if err == nil {
		_, err = r.ask(req.WorkflowID, req.InstanceID, func(c *call) { c.draft = req })
	}
	if err != nil {
		return Draft{}, fmt.Errorf("draft for %s/%s: %w", req.WorkflowID, req.InstanceID, err)
	}
	return req.saved, nil
}

// mayAsk is what can be said about a write before its instance is known.
func (r *Router) mayAsk(workflowID string, p *identity.Principal) error {
	d, err := r.catalog.newest(workflowID)
	if err != nil {
		return err
	}
	if d.SendRight(callerOf(p), r.o.Clock()) == statemachine.Denied {
		return failure.ErrForbidden
	}
	return r.accepting()
}

// draft is the actor's side of SaveDraft.
func (i *instance) draft(c *call) (handed bool, err error) {
	if err := i.ensureLoaded(); err != nil {
		return false, err
	}
	req := c.draft
	// What is left over can be dropped when the form cannot be submitted any more.
	if err := i.mayFill(&req.FormRequest); err != nil && (req.Data != nil || !errors.Is(err, failure.ErrNotAllowed)) {
		return false, err
	}
	before := &Draft{}
	if req.Data != nil || req.demands() { // what cannot be read can be dropped
		present, err := i.loadDraft(req.Caller.ID)
		if err != nil {
			return false, err
		}
		if !req.holds(present) {
			return false, failure.ErrPrecondition
		}
		if present != nil {
			before = present
		}
	}
	now := i.router.o.Clock().UnixMilli()
	w := i.router.store.NewWrites(i.shard)
	key := persistence.DraftKey(nil, i.shard, i.id, string(req.Caller.ID))
	if req.Data == nil {
		w.Delete(key)
	} else {
		// NB: the clock keeps revisions apart that have a submission in between, and
		// a draft from being older than the move that it follows.
		i.revision = max(before.Revision+1, i.revision+1, uint64(now))
		req.saved = Draft{Revision: i.revision, SavedAt: max(now, i.form.LeftAt+1), Data: req.Data}
		w.Set(key, req.saved.append(nil))
	}
	c.prepared = &Reply{WorkflowID: i.workflowID, InstanceID: i.name, Sequence: i.state.Sequence}
	i.entry.uncommitted.Add(1)
	i.router.store.Append(w, c)
	return true, nil
}

const draftFormat = 1

// append writes format(1) revision saved data.
func (d *Draft) append(dst []byte) []byte {
	dst = binary.AppendUvarint(append(dst, draftFormat), d.Revision)
	return append(binary.AppendVarint(dst, d.SavedAt), d.Data...)
}

// parseDraft reads what append wrote; its data aliases b.
func parseDraft(b []byte) (*Draft, error) {
	damaged := fmt.Errorf("%w: stored draft", failure.ErrExecution)
	if len(b) == 0 || b[0] != draftFormat {
		return nil, damaged
	}
	d := &Draft{}
	b, n := b[1:], 0
	if d.Revision, n = binary.Uvarint(b); n <= 0 {
		return nil, damaged
	}
	b = b[n:]
	if d.SavedAt, n = binary.Varint(b); n <= 0 {
		return nil, damaged
	}
	var err error
	if d.Data, err = data.Clean(b[n:]); err != nil || d.Data.Kind() != data.Object {
		return nil, damaged
	}
	return d, nil
}

// loadDraft returns a user's draft; nil when there is none. One from before the
// form left its start is none: what was submitted since is newer.
func (i *instance) loadDraft(user identity.UserID) (*Draft, error) {
	value, err := i.router.store.Load(persistence.DraftKey(nil, i.shard, i.id, string(user)))
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, failure.OfStore(err)
	}
	d, err := parseDraft(value)
	if err != nil || d.SavedAt <= i.form.LeftAt {
		return nil, err
	}
	return d, nil
}

// setForm takes over what was stored beside the instance.
func (i *instance) setForm(attachment []byte) error {
	i.form, i.attachment = nil, nil
	if len(attachment) == 0 {
		return nil
	}
	f, err := form.Parse(attachment)
	i.form, i.attachment = f, attachment
	return err
}

// putForm brings the form up to date with the present state, and writes the row
// of its owner's list where that changes. statesBefore are the positions that
// there were. It comes before putRecord,
// which writes the form itself.
func (i *instance) putForm(w *persistence.Writes, ch *change, statesBefore []byte) {
	created := ch.form
	if created == nil && i.form == nil {
		return
	}
	at, done := i.state.UpdatedAt, i.of.IsDone(&i.state)
	newID := func() string { return instanceName(i.router.ids.draw(at)) }
	var next form.Form
	if created != nil {
		next = created.Begin(i.states, done, at, newID)
	} else {
		next = i.form.Next(i.states, done, at, newID)
		if next.Moved() && !i.form.Moved() { // by whatever event: the caller's draft is over
			w.Delete(persistence.DraftKey(nil, i.shard, i.id, ch.caller))
		}
	}
	attachment := next.Append(nil)
	changed := string(attachment) != string(i.attachment) || string(i.states) != string(statesBefore)
	i.form, i.attachment = &next, attachment
	if !changed {
		return
	}
	row := form.Row{Form: next, WorkflowID: i.workflowID, Nodes: i.nodeNames()}
	i.scratch = persistence.ListKey(i.scratch[:0], i.shard, byte(next.Kind), next.By, i.state.CreatedAt.UnixMilli(), i.id)
	w.Set(i.scratch, row.Append(nil))
}

// nodeNames lists the present nodes for people.
func (i *instance) nodeNames() string {
	var names []string
	for _, p := range i.of.Positions(&i.state) {
		names = append(names, string(p.Node))
	}
	return strings.Join(names, ", ")
}

// ListedForm is one line of a list.
type ListedForm struct {
	*form.Row
	InstanceID string
	// When is the creation, in Unix milliseconds.
	When int64
}

// Forms calls yield with the forms of one kind that a user created, the newest
// first and those of the same millisecond by id. It sees one consistent moment,
// with everything that was acknowledged before the call, and wakes nobody.
//
// It returns failure.ErrBusy when no slot comes free in time or the list takes too long,
// and yield's own error when it stops early. While yield waits, other lists are
// read; the time counts all the same.
func (r *Router) Forms(ctx context.Context, kind form.Kind, user identity.UserID, yield func(ListedForm) error) error {
	ctx, cancel := context.WithTimeout(ctx, r.o.QueryTimeMax)
	defer cancel()
	defer context.AfterFunc(r.reading, cancel)()
	if err := r.readEnd(r.forms(ctx, kind, user, yield)); err != nil {
		return fmt.Errorf("list %ss: %w", kind, err)
	}
	return nil
}

func (r *Router) forms(ctx context.Context, kind form.Kind, user identity.UserID, yield func(ListedForm) error) (err error) {
	if r.stopping.Load() {
		return failure.ErrUnavailable
	}
	slots, err := r.enter(ctx, r.lists, user, r.o.QueryTimeMax) // NB: people wait rather than be sent away
	if err != nil {
		return err
	}
	defer slots.leave()
	if r.reading.Err() != nil {
		return failure.ErrUnavailable
	}
	snapshot := r.store.Snapshot()
	defer func() { _ = snapshot.Close() }() // read-only: nothing to lose
	if err := r.store.AwaitDurable(); err != nil {
		return fmt.Errorf("%w: %w", failure.ErrUnavailable, err) // a read has no outcome to be in doubt about
	}
	var rows int64
	m := &merge{rows: &rows}
	defer func() { err = errors.Join(err, failure.OfStore(m.close())) }()
	for sh := range persistence.Shard(r.store.ShardCount()) {
		prefix := persistence.ListPrefix(nil, sh, byte(kind), string(user))
		if err := m.add(snapshot.Cursor(prefix, persistence.PrefixEnd(prefix)), sh, listRow); err != nil {
			return failure.OfStore(err)
		}
	}
	p := &pace{router: r, ctx: ctx, slots: slots}
	out := batch[ListedForm]{yield: yield}
	for {
		if rows%checkEvery == 0 {
			if err := slots.busy.Yield(ctx); err != nil {
				return err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		c, ok, err := m.next()
		if err != nil {
			return failure.OfStore(err)
		}
		if !ok {
			return out.flush(p)
		}
		row, err := form.ParseRow(c.record)
		if err != nil {
			r.metrics.damaged.Add(1)
			return fmt.Errorf("%w: list row of %s: %w", failure.ErrExecution, instanceName(c.id), err)
		}
		listed := ListedForm{Row: row, InstanceID: instanceName(c.id), When: int64(^binary.BigEndian.Uint64(c.value))}
		if err := out.add(p, listed, len(c.record)+listedBytes); err != nil {
			return err
		}
	}
}

// listedBytes is about what a ListedForm takes besides its texts.
const listedBytes = 400
