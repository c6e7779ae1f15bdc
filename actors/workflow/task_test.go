package workflow_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/failure"
	"troupe/actors/identity"
	"troupe/actors/internal/instanceid"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/actors/workflow"
	"troupe/actors/workflow/workflowtest"
	"troupe/persistence/key"
	"troupe/statemachine"
)

var (
	requester  = workflowtest.Principal("rita", []string{"requester"})
	manager    = workflowtest.Principal("mary", []string{"manager"})
	manager2   = workflowtest.Principal("max", []string{"clerk", "manager"})
	clerk      = workflowtest.Principal("carl", []string{"clerk"})
	ida        = workflowtest.Principal("ida", []string{"requester"})
	overseer   = workflowtest.Principal("boss", []string{"clerk"}, string(identity.Workflows))
	stranger   = workflowtest.Principal("eve", []string{"employee"})
	deskPeople = []*identity.Principal{requester, manager, manager2, clerk, ida, overseer, stranger}
)

// waiting is what a test expects of one task.
type waiting struct {
	id       string
	at       statemachine.Task
	title    string
	instance string
}

// expected are the open tasks for a caller, found by looking at every stored instance.
func expected(t testing.TB, h *harness, who *identity.Principal, scope task.Scope) (out []waiting) {
	caller := &statemachine.Caller{ID: string(who.ID), Roles: who.Roles, Privileges: who.Privileges}
	h.Must(h.Store.Scan(key.RecordsPrefix(nil, key.EveryShard), func(rowKey, value []byte) error {
		k, _ := key.Parse(rowKey)
		record, err := statemachine.ParseRecord(value)
		h.Must(err)
		of, err := h.Catalog.Version(k.Workflow, record.Version)
		h.Must(err)
		in, err := of.Restore(instanceid.Text(k.ID), record)
		h.Must(err)
		seen := statemachine.View{Instance: &in, Of: of}
		if !of.MayRead(seen, caller, h.Clock()) {
			return nil
		}
		for _, at := range in.Tasks() {
			mine, open := at.Assignee == caller.ID, at.Assignee == "" && seen.IsCandidate(&at, caller, h.Clock())
			if mine && scope != task.ScopeOpen || open && scope != task.ScopeMine {
				out = append(out, waiting{in.ID + "-" + at.ID.String(), at, seen.TaskText(&at).Title.For("de"), in.ID})
			}
		}
		return nil
	}))
	return out
}

// inOrder sorts what is expected.
func inOrder(all []waiting, sort string) []string {
	name, down := strings.CutPrefix(sort, "-")
	due := func(w waiting) int64 {
		if w.at.Due.IsZero() {
			return 1 << 62
		}
		return w.at.Due.UnixMilli()
	}
	slices.SortFunc(all, func(a, b waiting) int {
		order := 0
		switch name {
		case "due":
			order = cmp.Compare(due(a), due(b))
		case "created":
			order = a.at.Created.Compare(b.at.Created)
		case "priority":
			order = cmp.Or(cmp.Compare(a.at.Priority, b.at.Priority), b.at.Created.Compare(a.at.Created))
		case "title":
			order = cmp.Or(cmp.Compare(strings.ToLower(a.title), strings.ToLower(b.title)), a.at.Created.Compare(b.at.Created))
		}
		order = cmp.Or(order, cmp.Compare(a.instance, b.instance), cmp.Compare(a.at.ID.Sequence, b.at.ID.Sequence), cmp.Compare(a.at.ID.Number, b.at.ID.Number))
		if down {
			return -order
		}
		return order
	})
	ids := make([]string, len(all))
	for i := range all {
		ids[i] = all[i].id
	}
	return ids
}

// listed are the ids of all pages of a list.
func listed(t testing.TB, h *harness, req task.ListRequest) (ids []string) {
	t.Helper()
	for {
		page, err := h.Worklists.List(context.Background(), &req)
		h.Must(err)
		for _, i := range page.Items {
			ids = append(ids, i.TaskID())
		}
		assert.LessOrEqual(t, len(page.Items), req.Limit, "a page")
		require.False(t, page.Next == req.Cursor && page.Next != "", "the page behind %q goes on there", req.Cursor)
		if req.Cursor = page.Next; page.Next == "" {
			return ids
		}
	}
}

// deskEvents is what people do in desk.
var deskEvents = []string{"submit", "approve", "reject", "change", "pack", "look", "cancel", "loud", "quiet"}

// act does something at random.
func act(h *harness, r *rand.Rand, ids []string) {
	who, id := deskPeople[r.IntN(len(deskPeople))], ids[r.IntN(len(ids))]
	if r.IntN(3) > 0 {
		data := ""
		if r.IntN(3) == 0 {
			data = fmt.Sprintf(`{"amount":%d,"wanted":%q,"due":%q}`, 10+r.IntN(5), oneOf(r, "", "carl", "max"), oneOf(r, "", "P1D", "PT1H", "2030-01-01T00:00:00Z"))
		}
		_, _ = h.Send(context.Background(), event(who, "desk", id, oneOf(r, deskEvents...), data, ""))
		return
	}
	page, err := h.Worklists.List(context.Background(), &task.ListRequest{Caller: who, Scope: task.ScopeAll, Limit: 3})
	h.Must(err)
	for _, i := range page.Items {
		action, to := workflowtest.OneOf(r, message.Claim, message.Release, message.Assign), deskPeople[r.IntN(len(deskPeople))]
		if action != message.Assign {
			to = nil
		}
		_, err := h.ChangeTask(context.Background(), &message.TaskChange{Caller: who, TaskID: i.TaskID(), Action: action, To: to})
		if err != nil && !errors.Is(err, failure.ErrForbidden) && !errors.Is(err, failure.ErrInvalid) {
			h.t.Errorf("%s of %s by %s: %v", action, i.TaskID(), who.ID, err)
		}
	}
}

// TestListsOfTasks compares worklists with what the instances say (gateway/INTERFACE.md, "Lists of tasks").
func TestListsOfTasks(t *testing.T) {
	rounds := 4
	if testing.Short() {
		rounds = 2
	}
	for seed := range *seeds {
		h := start(t, workflow.Options{})
		h.Publish(desk)
		r := rand.New(rand.NewPCG(seed, 14))
		var ids []string
		for range 30 {
			ids = append(ids, h.Make(workflowtest.OneOf(r, requester, ida, manager), "desk", fmt.Sprintf(`{"amount":%d,"due":%q}`, r.IntN(20), oneOf(r, "", "P1D", "PT2H"))))
		}
		for round := range rounds {
			for range 60 {
				act(h, r, ids)
			}
			if round%2 == 1 {
				h.sleepAll()
			}
			checkWorklists(t, h, r)
			checkWorkRows(t, h)
		}
	}
}

func checkWorklists(t *testing.T, h *harness, r *rand.Rand) {
	t.Helper()
	for _, who := range deskPeople {
		for _, scope := range []task.Scope{task.ScopeMine, task.ScopeOpen, task.ScopeAll} {
			for _, sort := range []string{"due", "-due", "created", "-created", "priority", "-priority", "title", "-title"} {
				want := inOrder(expected(t, h, who, scope), sort)
				got := listed(t, h, task.ListRequest{Caller: who, Scope: scope, Sort: sort, Limit: 1 + r.IntN(7), Languages: []string{"de"}})
				require.True(t, slices.Equal(got, want), "%s of %s by %s: got\n%q, want\n%q", scope, who.ID, sort, got, want)
				page, err := h.Worklists.List(context.Background(), &task.ListRequest{Caller: who, Scope: scope, Sort: sort, Limit: 1 + r.IntN(7), Count: true})
				require.True(t, err == nil && page.Count != nil && *page.Count == int64(len(want)), "%v %v %v %v %v", scope, who.ID, page, err, len(want))
			}
		}
	}
}

// checkWorkRows holds that the rows are those of the instances, and no others.
func checkWorkRows(t *testing.T, h *harness) {
	t.Helper()
	for _, f := range workRowFaults(t, h) {
		t.Error(f)
	}
}

// workRowFaults compares the rows of tasks with what all instances say.
func workRowFaults(t testing.TB, h *harness) (faults []string) {
	t.Helper()
	want := map[string]bool{}
	h.Must(h.Store.Scan(key.RecordsPrefix(nil, key.EveryShard), func(rowKey, value []byte) error {
		k, _ := key.Parse(rowKey)
		record, err := statemachine.ParseRecord(value)
		h.Must(err)
		of, err := h.Catalog.Version(k.Workflow, record.Version)
		h.Must(err)
		in, err := of.Restore(instanceid.Text(k.ID), record)
		h.Must(err)
		for _, at := range in.Tasks() {
			want[in.ID+"-"+at.ID.String()] = true
		}
		return nil
	}))
	rows, work := map[string]bool{}, map[string]int{}
	h.EachRow(func(k key.Parts, _, value []byte) {
		id := instanceid.PartText(k.ID, k.Number, k.Place)
		switch {
		case k.Table == "task" && k.ID != (key.ID{}) && len(value) < 10: // the others are decided
			rows[id] = true
		case k.Table == "work" && k.Kind != 'd':
			work[id]++
		}
	})
	for id := range want {
		if !rows[id] || work[id] == 0 || work[id]%3 != 0 {
			faults = append(faults, fmt.Sprintf("task %s: its row is there: %t, and %d in worklists", id, rows[id], work[id]))
		}
	}
	if len(rows) != len(want) || len(work) != len(want) {
		faults = append(faults, fmt.Sprintf("%d rows, tasks in worklists %d, tasks %d", len(rows), len(work), len(want)))
	}
	return faults
}
