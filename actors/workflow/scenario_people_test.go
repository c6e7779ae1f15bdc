package workflow_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/assert"
	"troupe/actors/failure"
	"troupe/actors/pending"

	"troupe/actors/activity"
	"troupe/actors/form"
	"troupe/actors/identity"
	"troupe/actors/message"
	"troupe/actors/task"
	"troupe/actors/workflow/workflowtest"
)

// stepOfPeople are the steps of those who have tasks, forms and something to say.
func (s *scenario) stepOfPeople(a args, who *identity.Principal) (string, error) {
	ctx := s.t.Context()
	switch a.words[0] {
	case "tasks": // USER SCOPE [sort=…] [limit=N] [workflow=…] [count=1] [lang=…] [ids=1] [pages=N]: a page; or in pages of any size, and the ids; or how many
		// there are, on no fewer than N pages
		req := task.ListRequest{Caller: who, Scope: task.Scope(a.at(2)), WorkflowID: a.more["workflow"], Sort: a.more["sort"], Filter: a.data, Query: a.more["q"], Limit: 10}
		if n, err := strconv.Atoi(a.more["limit"]); err == nil {
			req.Limit = n
		}
		req.Count, req.Languages = a.more["count"] != "", strings.Fields(a.more["lang"])
		if a.more["ids"] != "" {
			return s.taskIDs(&req)
		}
		var out strings.Builder
		for n, pages := 0, 1; ; pages++ {
			page, err := s.Worklists.List(ctx, &req)
			if err != nil {
				return "", err
			}
			if page.Count != nil {
				fmt.Fprintf(&out, "count %d\n", *page.Count)
			}
			if least, err := strconv.Atoi(a.more["pages"]); err == nil {
				n += len(page.Items)
				if req.Cursor = page.Next; req.Cursor != "" {
					continue
				}
				fmt.Fprintf(&out, "%d tasks\n", n)
				assert.GreaterOrEqual(s.t, pages, least, "pages of %d tasks", n)
				return out.String(), nil
			}
			for _, i := range page.Items {
				out.WriteString(s.taskText(i))
			}
			if page.Next != "" {
				out.WriteString("more\n")
			}
			return cmp.Or(out.String(), "none\n"), nil
		}
	case "task": // USER ID
		i, err := s.Worklists.Task(ctx, who, s.id(a.at(2)))
		if err != nil {
			return "", err
		}
		return s.taskText(i), nil
	case "claim", "release", "assign": // USER ID [TO]
		i, err := s.ChangeTask(ctx, &message.TaskChange{Caller: who, TaskID: s.id(a.at(2)), Action: message.TaskAction(a.words[0]), To: s.users[identity.UserID(a.at(3))]})
		if err != nil {
			return "", err
		}
		return s.taskText(i), nil
	case "comment": // USER NAME [key=K] "TEXT"
		text := strings.Trim(a.data, `"`)
		r := &message.Comment{Load: s.load(who, a.at(2)), Text: text, Retry: event(who, "", "", "", a.data, a.more["key"]).Retry}
		return "", workflowtest.Second(s.AddComment(r))
	case "activity": // USER NAME [as-of=N]: the same in pages of any size and both orders; or how many lines it had behind entry N
		if n, err := strconv.ParseUint(a.more["as-of"], 10, 64); err == nil {
			page, err := activity.Read(s.Store, &activity.Request{Instance: s.ID(s.id(a.at(2))), Sequence: n, OldestFirst: true, Limit: 100})
			s.Must(err)
			return fmt.Sprintf("%d lines\n", len(page.Items)), nil
		}
		of, want := s.load(who, a.at(2)), s.activity(&message.Activity{Load: s.load(who, a.at(2)), OldestFirst: true, Limit: 100})
		s.wantActivity(of, want...)
		return strings.Join(want, "\n") + "\n", nil
	case "events": // USER NAME: what may be sent now
		of := s.load(who, a.at(2))
		r, err := s.Events(&of)
		if err != nil {
			return "", err
		}
		out := fmt.Sprintf("entry %d:", r.Sequence)
		for _, e := range r.Events {
			out += " " + string(e.Name)
			for _, to := range e.Transitions {
				out += fmt.Sprintf("(%s.%s %v %s)", to.From.Machine, to.From.Node, to.Targets, to.Guard)
			}
		}
		return out + "\n", nil
	case "draft": // USER NAME EVENT [if=N|none|any] [DATA]
		req := &message.Draft{Request: s.formRequest(who, a), Data: value(a.data)}
		switch at := a.more["if"]; at {
		case "none":
			req.IfAbsent = true
		case "any":
			req.MustExist = true
		case "":
		default:
			n, _ := strconv.Atoi(at)
			req.IfMatch = []uint64{uint64(n)}
		}
		d, err := s.SaveDraft(req)
		if err != nil || a.data == "" {
			return "", err
		}
		return fmt.Sprintf("revision %d\n", d.Revision), nil
	case "form": // USER NAME EVENT
		req := s.formRequest(who, a)
		v, err := s.Form(&req)
		if err != nil {
			return "", err
		}
		out := fmt.Sprintf("entry %d at %s %s, editable %t, submitted %t", v.Sequence, v.Nodes, v.Public, v.Editable, v.Form.SubmissionID != "")
		if v.Draft != nil {
			out += fmt.Sprintf(", draft %d %s", v.Draft.Revision, v.Draft.Data)
		}
		return out + "\n", nil
	case "submit": // USER NAME EVENT [key=K] [DATA]
		r, err := s.Submit(&message.Submit{Request: s.formRequest(who, a), Data: value(a.data), Retry: event(who, "", "", a.at(3), a.data, a.more["key"]).Retry})
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("entry %d\n", r.Sequence), nil
	case "forms": // USER form|checklist
		var out strings.Builder
		for _, f := range s.listed(who, map[string]form.Kind{"form": form.KindForm, "checklist": form.KindChecklist}[a.at(2)]) {
			fmt.Fprintf(&out, "%s at %s, moved %t, submitted %t, done %t\n", f.InstanceID, f.Nodes, f.Moved(), f.SubmissionID != "", f.DoneAt != 0)
		}
		return cmp.Or(out.String(), "none\n"), nil
	case "created": // USER CATEGORY [later=1] [sort=…] [q=WORDS] [from=CATEGORY]: in pages of 7; from: from the second page of another list
		var ids []string
		for cursor := s.places[a.more["from"]]; ; {
			some, page, err := s.created(who, map[string]form.Category{"current": form.Current, "submitted": form.Submitted, "archived": form.Archived, "every": form.Every}[a.at(2)],
				func(req *form.PageRequest) {
					if a.more["later"] != "" {
						req.ArchivedBefore = time.Now().Add(time.Hour).UnixMilli()
					}
					req.Limit, req.Cursor, req.Sort, req.Query = 7, cursor, form.Sort(a.more["sort"]), a.more["q"]
					if words, name, ok := strings.Cut(req.Query, "+"); ok {
						req.Query = words + " " + s.id(name)
					}
				})
			if err != nil {
				return "", err
			}
			for _, id := range some {
				ids = append(ids, s.named(id))
			}
			if cursor = page.Next; cursor == "" {
				slices.Sort(ids)
				return fmt.Sprintf("%d of %d: %s\n", len(ids), *page.Count, strings.Join(ids, " ")), nil
			}
			s.places[a.at(2)] = cursor
		}
	case "timers": // USER [WORKFLOW]: in pages of any size
		return s.timers(who, a.at(2))
	case "history": // USER NAME [limit=N] [from=PLACE] [desc=1]: a page, behind which is the place next; without a limit, in pages of any size
		of := s.load(who, a.at(2))
		req := message.History{Caller: who, WorkflowID: of.WorkflowID, InstanceID: of.InstanceID, Cursor: s.place(a.more["from"]), Descending: a.more["desc"] != ""}
		limit, err := strconv.Atoi(a.more["limit"])
		if err != nil {
			return s.histories(req), nil
		}
		req.Limit = limit
		page, err := s.History(&req)
		if err != nil {
			return "", err
		}
		out := ""
		for _, e := range value("[" + string(page.Entries) + "]").Elements() {
			name, _ := e.Lookup("transitionEvent")
			out += cmp.Or(name.Text(), "created") + " "
		}
		if s.places["next"] = page.Next; page.Next != "" {
			out += "…"
		}
		return strings.TrimSpace(out) + "\n", nil
	case "invariants": // of lists and indexes
		s.checkLists()
		s.CheckIndexes()
		s.checkNoLeftovers()
		return "", nil
	case "watch": // USER: tells of tasks from now on
		s.feed, s.unwatch = s.watchTasks(who)
		return "", nil
	case "unwatch":
		err := s.unwatch()
		if s.unwatch = nil; errors.Is(err, context.Canceled) {
			err = nil
		}
		return "", err
	case "taskform": // USER ID
		of, err := s.taskFormOf(who, a)
		if err != nil {
			return "", err
		}
		v, err := s.TaskForm(of)
		if err != nil {
			return "", err
		}
		out := fmt.Sprintf("editable %t", v.Editable)
		if v.Draft != nil {
			out += fmt.Sprintf(", draft %d %s", v.Draft.Revision, v.Draft.Data)
		}
		return out + ", " + s.taskText(v.Item), nil
	case "taskdraft": // USER ID DATA
		of, err := s.taskFormOf(who, a)
		if err != nil {
			return "", err
		}
		d, err := s.SaveTaskDraft(&message.TaskDraft{TaskForm: *of, Data: value(a.data)})
		return fmt.Sprintf("revision %d\n", d.Revision), err
	case "tasksubmit": // USER ID EVENT DATA
		of, err := s.taskFormOf(who, a)
		if err != nil {
			return "", err
		}
		return "", workflowtest.Second(s.SubmitTask(&message.TaskSubmit{TaskForm: *of, Event: a.at(3), Data: value(a.data)}))
	case "told": // the next thing that the watcher hears
		e := s.feed()
		out := e.InstanceID + ":"
		for _, i := range e.Items {
			out += fmt.Sprintf(" %s %q", i.Status, i.Title.For())
		}
		return out + "\n", nil
	}
	return s.stepOfReaders(a, who)
}

// taskIDs are the tasks of a list, which are the same in pages of any size.
func (s *scenario) taskIDs(req *task.ListRequest) (string, error) {
	page, err := s.Worklists.List(s.t.Context(), req)
	if err != nil {
		return "", err
	}
	var all []string
	for n, limit := range []int{1, 3, 5, 20} {
		of := *req
		of.Limit = limit
		ids := listed(s.t, s.harness, of)
		if n == 0 {
			all = ids
		}
		assert.Equal(s.t, all, ids, "in pages of %d", limit)
	}
	out := strings.Join(all, " ") + "\n"
	if page.Count != nil {
		out += fmt.Sprintf("count %d\n", *page.Count)
	}
	return out, nil
}

// histories are all entries, which are the same in pages of any size and both orders.
func (s *scenario) histories(req message.History) string {
	want := s.StoredHistory(s.Store, s.ID(req.InstanceID))
	count := len(slices.Collect(maps.Keys(maps.Collect(want.Elements()))))
	for _, req.Descending = range []bool{false, true} {
		for _, req.Limit = range []int{1, 7, count - 1, count, count + 1, 1000} {
			var got [][]byte
			pages := 0
			for req.Cursor = ""; req.Cursor != "" || pages == 0; pages++ {
				page, err := s.History(&req)
				s.Must(err)
				for _, e := range value("[" + string(page.Entries) + "]").Elements() {
					got = append(got, e)
				}
				if req.Cursor = page.Next; req.Cursor != "" {
					other := req
					other.Descending = !req.Descending
					_, err = s.History(&other)
					assert.ErrorIs(s.t, err, failure.ErrInvalid, "a cursor of the other order")
				}
			}
			if req.Descending {
				slices.Reverse(got)
			}
			assert.Equal(s.t, string(want), "["+string(bytes.Join(got, []byte(",")))+"]", "pages of %d, descending %t", req.Limit, req.Descending)
			assert.Equal(s.t, (count+req.Limit-1)/req.Limit, pages, "pages of %d", req.Limit)
		}
	}
	return fmt.Sprintf("%d entries\n", count)
}

// timers are those that run, which are the same in pages of any size.
func (s *scenario) timers(who *identity.Principal, workflowID string) (out string, err error) {
	for _, limit := range []int{1, 7, 1000} {
		before := out
		out = ""
		for req := (pending.TimerList{User: who.ID, Workflow: workflowID, Limit: limit}); ; {
			page, err := s.Waiting.Timers(s.t.Context(), &req)
			if err != nil {
				return "", err
			}
			for _, timer := range page.Timers {
				out += fmt.Sprintf("%s %s of %s %s at %s, failed %t\n", s.at(timer.Due), timer.Event, timer.Workflow, timer.InstanceID, timer.At.Node, timer.Failed)
			}
			if req.Cursor = page.Next; req.Cursor == "" {
				break
			}
		}
		assert.True(s.t, limit == 1 || out == before, "in pages of %d: %s instead of %s", limit, out, before)
	}
	return out, nil
}

func (s *scenario) taskFormOf(who *identity.Principal, a args) (*message.TaskForm, error) {
	name, err := s.Worklists.LocateForm(s.t.Context(), s.id(a.at(2)))
	return &message.TaskForm{Caller: who, Task: name}, err
}

func (s *scenario) formRequest(who *identity.Principal, a args) form.Request {
	of := s.load(who, a.at(2))
	return form.Request{Caller: who, WorkflowID: of.WorkflowID, InstanceID: of.InstanceID, Event: a.at(3)}
}

func (s *scenario) taskText(i *task.Item) string {
	out := fmt.Sprintf("%s %s %q: %s", i.TaskID(), i.At.Node, i.Title.For(), i.Status)
	if text := i.Description.For(); text != "" {
		out += fmt.Sprintf(", %q", text)
	}
	if i.Assignee != "" {
		out += " by " + i.Assignee
	}
	if !i.Due.IsZero() {
		out += ", due " + s.at(i.Due)
	}
	out += fmt.Sprintf(", priority %d, for %q, of %q", i.Priority, slices.Concat(i.Candidates.Users, i.Candidates.Roles, i.Candidates.Privileges), i.Requester)
	for _, e := range i.Events {
		out += " " + string(e.Name)
	}
	if i.Form != "" {
		out += ", form " + i.Form
	}
	if i.Decided != nil {
		out += fmt.Sprintf(", decided by %s with %s", i.Decided.By, i.Decided.Event)
	}
	if i.IsBlind {
		out += ", blind"
	}
	return out + "\n"
}
