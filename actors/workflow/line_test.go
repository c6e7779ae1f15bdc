package workflow_test

import (
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"

	"troupe/actors/catalog"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/query"
	"troupe/persistence/key"
	"troupe/statemachine"
)

// lineLetters are the lists of instances that are no forms: current, under way, done, by the time of that, and the mark of a shard.
const lineLetters = "ijklm"

func isOfInstance(k key.Parts) bool { return strings.IndexByte(lineLetters, k.Kind) >= 0 }

// lines are the keys of the rows of instances that are no forms, without the marks of shards.
func (h *harness) lines() map[string][]byte {
	h.t.Helper()
	rows := map[string][]byte{}
	h.EachRow(func(k key.Parts, key, value []byte) {
		if k.Table == "list" && isOfInstance(k) && k.Kind != 'm' {
			rows[string(key)] = slices.Clone(value)
		}
	})
	return rows
}

// workflows are those that have instances.
func (h *harness) workflows() (ids []string) {
	h.t.Helper()
	h.EachRow(func(k key.Parts, _, _ []byte) {
		if k.Table == "record" && !slices.Contains(ids, k.Workflow) {
			ids = append(ids, k.Workflow)
		}
	})
	return ids
}

// checkLines is the invariant: each instance that is no form and that somebody has created has its row where its history says that it
// belongs, and there are no other rows.
func (h *harness) checkLines() {
	h.t.Helper()
	got := h.lines()
	take := func(list byte, by string, when int64, id key.ID) []byte {
		key := string(key.List(nil, h.Store.ShardOf(id), list, by, when, id))
		value := got[key]
		delete(got, key)
		return value
	}
	for _, workflowID := range h.workflows() {
		for _, s := range h.Instances(workflowID) {
			var entries []struct {
				User string
				End  []string `json:"endState"`
			}
			h.Must(json.Unmarshal(s.Document.History(), &entries))
			by, left := entries[0].User, false
			if by == statemachine.System || len(s.Record.Attachment) > 0 {
				continue
			}
			for _, e := range entries { // NB: the creations of these tests stay in the initial nodes
				left = left || !slices.Equal(e.End, entries[0].End)
			}
			d, err := h.Catalog.Version(workflowID, s.Record.Version)
			h.Must(err)
			in, err := d.Restore(s.Name, s.Record)
			h.Must(err)
			list, made := byte('i'), s.Record.CreatedAt.UnixMilli()
			switch {
			case d.IsDone(&in) || in.IsEnded():
				list = 'k'
			case left:
				list = 'j'
			}
			row, err := form.ParseRow(take(list, by, made, s.ID))
			if !assert.NoError(h.t, err, "%s/%s: row in the list %c of %s", workflowID, s.Name, list, by) {
				continue
			}
			assert.True(h.t, row.By == by && row.WorkflowID == workflowID && row.Name == d.Name && row.Kind == form.KindInstance && (row.DoneAt != 0) == (list == 'k'),
				"%s/%s in the list %c: %+v", workflowID, s.Name, list, row)
			if list == 'k' {
				place := take('l', by, row.DoneAt, s.ID)
				assert.True(h.t, len(place) == 8 && binary.BigEndian.Uint64(place) == ^uint64(made), "%v %v %v", workflowID, s.Name, place)
			}
		}
	}
	for key := range got {
		h.t.Errorf("row %x is too many", key)
	}
}

// created is a page of what a user has created, by id, and how many there are.
func (h *harness) created(who *identity.Principal, category form.Category, more func(*form.PageRequest)) (ids []string, page *form.Page, err error) {
	h.t.Helper()
	req := &form.PageRequest{
		ListRequest: form.ListRequest{Kind: form.KindForm, WithInstances: true, User: who.ID, Category: category}, Limit: 100, Count: true,
		Title: func(from query.Loader, f form.Listed) (statemachine.Text, error) { return h.seen(from, who, f) },
	}
	more(req)
	if page, err = form.ReadPage(h.t.Context(), h.Queries, req); err != nil {
		return nil, nil, err
	}
	for _, f := range page.Forms {
		ids = append(ids, f.InstanceID)
	}
	return ids, page, nil
}

// seen is a title for an instance that a user may read.
func (h *harness) seen(from query.Loader, who *identity.Principal, f form.Listed) (statemachine.Text, error) {
	id, _ := instanceid.Parse(f.InstanceID)
	in, err := query.LoadInstance(from, h.Catalog, h.Store.ShardOf(id), f.WorkflowID, id)
	if err != nil {
		return nil, err
	}
	rules, err := h.Catalog.Newest(f.WorkflowID)
	if err != nil || !rules.MayRead(statemachine.View{Instance: &in.State, Of: in.Of}, catalog.CallerOf(who), h.Clock()) {
		return nil, err
	}
	return statemachine.Plain("title of " + f.InstanceID), nil
}
