package workflow_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/message"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// createForm makes a form of a workflow and returns its id.
func (h *harness) createForm(who *identity.Principal, workflowID string, kind form.Kind) string {
	h.t.Helper()
	r, err := h.Create(h.t.Context(), formOf(who, workflowID, kind))
	h.Must(err)
	return r.InstanceID
}

func formOf(who *identity.Principal, workflowID string, kind form.Kind) *message.Create {
	return &message.Create{Caller: who, WorkflowID: workflowID, Form: &form.Form{
		Kind: kind, TemplateID: workflowID + "-form", Name: "A form", By: string(who.ID), Role: "employee",
	}}
}

// listed returns a user's lists, the current forms first.
func (h *harness) listed(who *identity.Principal, kind form.Kind) (all []form.Listed) {
	h.t.Helper()
	for _, c := range []form.Category{form.Current, form.Submitted} {
		h.Must(form.List(h.t.Context(), h.Queries, &form.ListRequest{Kind: kind, User: who.ID, Category: c}, func(f form.Listed) error {
			all = append(all, f)
			return nil
		}))
	}
	return all
}

// listLetters are the lists of a kind: current, under way, done, and by the time of
// that.
var listLetters = map[form.Kind]string{form.KindForm: "fude", form.KindChecklist: "cUDE"}

// checkLists is the invariant: the rows of all lists say what the stored
// instances say, and there are no others.
func (h *harness) checkLists() {
	h.t.Helper()
	want, got := map[string]string{}, map[string]string{}
	for _, workflowID := range []string{"leave", "order"} {
		for _, s := range h.Instances(workflowID) {
			if len(s.Record.Attachment) == 0 {
				continue
			}
			f, err := form.Parse(s.Record.Attachment)
			h.Must(err)
			d, _ := h.Catalog.Newest(workflowID)
			in, err := d.Restore(s.Name, s.Record)
			h.Must(err)
			var nodes []string
			for _, p := range d.Positions(&in) {
				nodes = append(nodes, string(p.Node))
			}
			assert.Equal(h.t, d.IsDone(&in), f.DoneAt != 0, "%s: done at %d, and it is done", s.Name, f.DoneAt)
			row := form.Row{Form: *f, WorkflowID: workflowID, Nodes: strings.Join(nodes, ", ")}
			made, list := s.Record.CreatedAt.UnixMilli(), 0
			key := func(when int64) string {
				return string(key.List(nil, h.Store.ShardOf(s.ID), listLetters[f.Kind][list], f.By, when, s.ID))
			}
			switch {
			case f.DoneAt != 0:
				list = 3
				want[key(f.DoneAt)] = string(binary.BigEndian.AppendUint64(nil, ^uint64(made)))
				list = 2
			case f.Moved():
				list = 1
			}
			want[key(made)] = string(row.Append(nil))
		}
	}
	h.EachRow(func(key key.Parts, text, value []byte) {
		if key.Table == "list" && !isOfInstance(key) {
			got[string(text)] = string(value)
		}
	})
	h.checkLines()
	for key, row := range want {
		assert.Equal(h.t, row, got[key], "row %x", key)
		delete(got, key)
	}
	for key := range got {
		h.t.Errorf("row %x is too many", key)
	}
}

func TestAListFollowsItsInstances(t *testing.T) {
	h := start(t, workflow.Options{})
	id := h.createForm(john, "leave", form.KindForm)
	h.Make(john, "leave", "") // is no form
	h.createForm(john, "leave", form.KindChecklist)
	h.createForm(mary, "leave", form.KindForm)
	state := func() string {
		h.checkLists()
		all := h.listed(john, form.KindForm)
		require.True(t, len(all) == 1 && all[0].InstanceID == id, "john's forms: %v", all)
		f := all[0]
		return fmt.Sprintf("%s moved=%t submitted=%t done=%t", f.Nodes, f.Moved(), f.SubmissionID != "", f.DoneAt != 0)
	}
	for _, c := range []struct {
		name  string
		who   *identity.Principal
		event string
		want  string
	}{
		{"created", nil, "", "draft moved=false submitted=false done=false"},
		{"an event that stays", john, "note", "draft moved=false submitted=false done=false"},
		{"submitted", john, "submit", "review moved=true submitted=true done=false"},
		{"an event that nothing takes", john, "submit", "review moved=true submitted=true done=false"},
		{"sent back", john, "back", "draft moved=false submitted=true done=false"},
		{"submitted again", john, "submit", "review moved=true submitted=true done=false"},
		{"approved", mary, "approve", "approved moved=true submitted=true done=true"},
	} {
		if c.event != "" {
			h.MustSend(c.who, "leave", id, c.event, "")
		}
		assert.Equal(t, c.want, state(), c.name)
	}
	before := state()
	h.Restart()
	h.SweepAfter(time.Hour)
	woken := h.Router.Metrics().Woken
	assert.Equal(t, before, state(), "after a restart")
	assert.Equal(t, woken, h.Router.Metrics().Woken, "a list woke instances")
	h.MustSend(mary, "leave", id, "note", "")
	assert.Equal(t, before, state(), "after waking up")
}

// TestTheOrderOfAList holds gateway/INTERFACE.md, "Order of forms": newest first,
// then by id.
func TestTheOrderOfAList(t *testing.T) {
	h := start(t, workflow.Options{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				_, err := h.Create(t.Context(), formOf(john, "order", form.KindForm))
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	all := h.listed(john, form.KindForm)
	assert.True(t, len(all) == 200 && slices.IsSortedFunc(all, func(a, b form.Listed) int {
		if a.When != b.When {
			return int(b.When - a.When)
		}
		return strings.Compare(a.InstanceID, b.InstanceID)
	}), "%d forms, or out of order", len(all))
	enough := errors.New("enough")
	assert.ErrorIs(t, form.List(t.Context(), h.Queries, &form.ListRequest{Kind: form.KindForm, User: john.ID}, func(form.Listed) error { return enough }), enough)
}

func (h *harness) draft(who *identity.Principal, id, body string, ifMatch ...uint64) (form.Draft, error) {
	return h.SaveDraft(&message.Draft{
		Request: form.Request{Caller: who, WorkflowID: "leave", InstanceID: id, Event: "submit"}, Data: value(body), DraftCondition: form.DraftCondition{IfMatch: ifMatch},
	})
}

func (h *harness) form(who *identity.Principal, id string) *form.View {
	h.t.Helper()
	v, err := h.Form(&form.Request{Caller: who, WorkflowID: "leave", InstanceID: id, Event: "submit"})
	h.Must(err)
	return v
}

func TestTheLifeOfADraft(t *testing.T) {
	h := start(t, workflow.Options{})
	id := h.createForm(john, "leave", form.KindForm)
	v := h.form(john, id)
	assert.True(t, v.Draft == nil && v.Editable && v.Nodes == "draft" && v.When != 0 && string(v.Public) == `{"by":"john"}`, "a new form: %+v", v)
	req := form.Request{Caller: john, WorkflowID: "leave", InstanceID: id, Event: "submit"}
	var first, second form.Draft
	var err error
	for n, c := range []struct {
		name      string
		condition form.DraftCondition
		want      error
	}{
		{"in the place of one that is not there", form.DraftCondition{IfMatch: []uint64{0}}, failure.ErrPrecondition},
		{"in the place of any, where there is none", form.DraftCondition{MustExist: true}, failure.ErrPrecondition},
		{"the first", form.DraftCondition{IfAbsent: true}, nil},
		{"a first where there is one", form.DraftCondition{IfAbsent: true}, failure.ErrPrecondition},
		{"in the place of any", form.DraftCondition{MustExist: true}, nil},
	} {
		first, err = h.SaveDraft(&message.Draft{Request: req, Data: value(fmt.Sprintf(`{"days":%d}`, n)), DraftCondition: c.condition})
		assert.ErrorIs(t, err, c.want, "a draft %s", c.name)
	}
	second, err = h.draft(john, id, `{"days":2}`, first.Revision)
	require.True(t, err == nil && second.Revision > first.Revision, "got %+v, %v after %+v", second, err, first)
	_, err = h.draft(john, id, `{"days":3}`, first.Revision)
	assert.ErrorIs(t, err, failure.ErrPrecondition, "a draft over another one")
	assert.Nil(t, h.form(mary, id).Draft, "mary sees john's draft")
	h.Restart()
	v = h.form(john, id)
	assert.True(t, v.Draft != nil && string(v.Draft.Data) == `{"days":2}` && v.Draft.Revision == second.Revision && v.Sequence == 1, "after a restart: %+v", v.Draft)
	drop := &message.Submit{Request: req, Data: value(`{"days":2}`), Retry: event(john, "leave", id, "submit", `{"days":2}`, "key").Retry}
	h.Must(workflowtest.Second(h.Submit(drop)))
	v = h.form(john, id)
	assert.True(t, v.Draft == nil && !v.Editable && v.Form.SubmissionID != "", "after the submission: %+v", v)
	r, err := h.Submit(drop)
	assert.True(t, err == nil && r.Sequence == 2, "the submission again with its key: %v, %v", r, err)
	drop.Retry = message.Retry{}
	_, err = h.Submit(drop)
	assert.True(t, errors.Is(err, failure.ErrNotAllowed) && h.form(john, id).Sequence == 2, "a second submission: got %v, want failure.ErrNotAllowed and no trace", err)
	_, err = h.draft(john, id, `{}`)
	assert.ErrorIs(t, err, failure.ErrNotAllowed, "a draft of what is submitted")
	h.MustSend(john, "leave", id, "back", "")
	third, err := h.draft(john, id, `{"days":9}`)
	assert.True(t, err == nil && third.Revision > second.Revision, "after it came back: %+v, %v, want a revision above %d", third, err, second.Revision)
	_, err = h.draft(john, id, "")
	assert.True(t, err == nil && h.form(john, id).Draft == nil, "dropped: %v", err)
	plain := h.Make(john, "leave", "")
	for name, c := range map[string]struct {
		who  *identity.Principal
		id   string
		want error
	}{
		"of what is no form":        {john, plain, failure.ErrNotFound},
		"of an unknown instance":    {john, "01ARZ3NDEKTSV4RRFFQ69G5FAV", failure.ErrNotFound},
		"of somebody else's":        {eve, id, failure.ErrNotFound},
		"with no identifier":        {john, "nonsense", failure.ErrNotFound},
		"by another who may submit": {mary, id, nil},
	} {
		_, err := h.draft(c.who, c.id, `{}`)
		assert.ErrorIs(t, err, c.want, "a draft %s", name)
	}
	_, err = h.Form(&form.Request{Caller: john, WorkflowID: "leave", InstanceID: plain, Event: "submit"})
	assert.ErrorIs(t, err, failure.ErrNotFound, "an instance that is no form")
}

// TestADraftSaysItsTemplate, and the create of a form that comes again is answered with its id alone.
func TestADraftSaysItsTemplate(t *testing.T) {
	h := start(t, workflow.Options{})
	digest := form.DigestOf([]byte("schema"))
	create := formOf(john, "leave", form.KindForm)
	create.Retry = message.Retry{Key: "made"}
	r, err := h.Create(t.Context(), create)
	h.Must(err)
	_, err = h.SaveDraft(&message.Draft{
		Request: form.Request{Caller: john, WorkflowID: "leave", InstanceID: r.InstanceID, Event: "submit"}, Data: value(`{}`), Template: digest,
	})
	h.Must(err)
	assert.Equal(t, digest, h.form(john, r.InstanceID).Draft.Template, "the draft has the template")
	again, err := h.Create(t.Context(), create)
	assert.True(t, err == nil && again.InstanceID == r.InstanceID && len(again.Public) <= 0, "the create again is answered %+v, %v", again, err)
}

// TestADraftDoesNotOutliveWhatIsSubmitted: by whatever event and whomever.
func TestADraftDoesNotOutliveWhatIsSubmitted(t *testing.T) {
	h := start(t, workflow.Options{})
	id := h.createForm(john, "leave", form.KindForm)
	for _, who := range []*identity.Principal{john, mary} {
		h.Must(workflowtest.Second(h.draft(who, id, `{"days":1}`)))
	}
	h.MustSend(john, "leave", id, "submit", `{"days":5}`) // not the portal's way
	h.MustSend(john, "leave", id, "back", "")
	for _, who := range []*identity.Principal{john, mary} {
		if v := h.form(who, id); v.Draft != nil || !v.Editable {
			t.Errorf("%s is shown the draft %s of before the submission", who.ID, v.Draft.Data)
		}
	}
	d, err := h.draft(mary, id, `{"days":6}`)
	h.Must(err)
	h.MustSend(john, "leave", id, "note", "") // moves nothing
	v := h.form(mary, id)
	assert.True(t, v.Draft != nil && v.Draft.Revision == d.Revision, "the draft after it: %+v", v.Draft)
}

func TestDamageOfAFormIsSaid(t *testing.T) {
	h := start(t, workflow.Options{})
	id := h.ID(h.createForm(john, "leave", form.KindForm))
	sh := h.Store.ShardOf(id)
	when := h.listed(john, form.KindForm)[0].When
	set := func(key, value []byte) { h.Overwrite(sh, key, value) }
	set(key.List(nil, sh, byte(form.KindForm), "john", when, id), []byte("nonsense"))
	assert.ErrorIs(t, form.List(t.Context(), h.Queries, &form.ListRequest{Kind: form.KindForm, User: john.ID}, func(form.Listed) error { return nil }), failure.ErrExecution)
	set(key.Draft(nil, sh, id, "john"), []byte("nonsense"))
	if _, err := h.draft(john, instanceid.Text(id), `{}`); !errors.Is(err, failure.ErrExecution) {
		t.Errorf("a draft: got %v, want ErrExecution", err)
	}
	if _, err := h.draft(john, instanceid.Text(id), ""); err != nil || h.form(john, instanceid.Text(id)).Draft != nil {
		t.Errorf("a draft that cannot be read can be dropped: got %v", err)
	}
	record := h.Instances("leave")[0].Record
	d, _ := h.Catalog.Newest("leave")
	in, err := d.Restore(instanceid.Text(id), record)
	h.Must(err)
	set(key.Record(nil, sh, "leave", id), d.AppendRecord(nil, &in, record.Chain, []byte("nonsense")))
	h.Restart()
	_, err = h.Look(john, "leave", instanceid.Text(id))
	assert.ErrorIs(t, err, failure.ErrExecution, "a record")
}

// TestABuiltinIsNoChoice: it can be used by who knows it, and no file can have
// its id. Choices are what the caller may create.
func TestABuiltinIsNoChoice(t *testing.T) {
	h := start(t, workflow.Options{})
	parsed := h.Sources(strings.Replace(order, "id: order", "id: own", 1))[0].Parsed
	h.Catalog.AddBuiltin("-", parsed)
	id := h.Make(eve, "-", "")
	h.MustSend(eve, "-", id, "pay", "")
	h.Publish(leave, order)
	if r := h.MustLook(eve, "-", id); r.Sequence != 2 || !bytes.Contains(r.AppendRecord(nil), []byte(`"workflowId":"-"`)) {
		t.Errorf("got %s", r.AppendRecord(nil))
	}
	assert.Equal(t, 2, h.Catalog.Len(), "workflows, want 2")
	for who, want := range map[*identity.Principal]string{john: "[{leave Leave} {order order}]", eve: "[{order order}]"} {
		assert.Equal(t, want, fmt.Sprint(h.Choices(who)), "choices of %s", who.ID)
	}
	assert.False(t, statemachine.IsIdentifier("-"), "a file can have the id of a builtin")
}
