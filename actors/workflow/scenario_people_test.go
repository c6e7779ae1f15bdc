package workflow_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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
	case "tasks": // USER SCOPE [sort=…] [limit=N] [workflow=…]
		req := task.ListRequest{Caller: who, Scope: task.Scope(a.at(2)), WorkflowID: a.more["workflow"], Sort: a.more["sort"], Filter: a.data, Query: a.more["q"], Limit: 10}
		if n, err := strconv.Atoi(a.more["limit"]); err == nil {
			req.Limit = n
		}
		page, err := s.Worklists.List(ctx, &req)
		if err != nil {
			return "", err
		}
		var out strings.Builder
		for _, i := range page.Items {
			out.WriteString(s.taskText(i))
		}
		if page.Next != "" {
			out.WriteString("more\n")
		}
		return cmp.Or(out.String(), "none\n"), nil
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
	case "created": // USER CATEGORY
		ids, page := s.created(who, map[string]form.Category{"current": form.Current, "submitted": form.Submitted, "archived": form.Archived, "every": form.Every}[a.at(2)],
			func(req *form.PageRequest) {
				if a.more["later"] != "" {
					req.ArchivedBefore = time.Now().Add(time.Hour).UnixMilli()
				}
			})
		for n := range ids {
			ids[n] = s.named(ids[n])
		}
		slices.Sort(ids)
		return fmt.Sprintf("%d of %d: %s\n", len(ids), *page.Count, strings.Join(ids, " ")), nil
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
	if i.Assignee != "" {
		out += " by " + i.Assignee
	}
	if !i.Due.IsZero() {
		out += ", due " + s.at(i.Due)
	}
	out += fmt.Sprintf(", priority %d, for %q, of %q", i.Priority, append(append(i.Candidates.Users, i.Candidates.Roles...), i.Candidates.Privileges...), i.Requester)
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
