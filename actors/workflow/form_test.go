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

	"github.com/stretchr/testify/assert"

	"troupe/actors/failure"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/message"
	"troupe/actors/workflow"
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
	for _, workflowID := range h.workflows() {
		for _, s := range h.Instances(workflowID) {
			if len(s.Record.Attachment) == 0 {
				continue
			}
			f, err := form.Parse(s.Record.Attachment)
			h.Must(err)
			d, err := h.Catalog.Version(workflowID, s.Record.Version)
			h.Must(err)
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
