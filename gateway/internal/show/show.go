// Package show writes what the actors answer as package api has it: tasks, timers, deliveries, statuses, in
// the reader's languages. It sends nothing.
package show

import (
	"troupe/actors/identity"
	"troupe/actors/task"
	"troupe/gateway/api"
	"troupe/gateway/internal/kernel"
)

// Tasks are tasks in the reader's languages.
func Tasks(items []*task.Item, languages []string, users Names) []api.Task {
	out := make([]api.Task, len(items))
	for n, i := range items {
		out[n] = Task(i, languages, users)
	}
	return out
}

// Task is a task in the reader's languages.
func Task(i *task.Item, languages []string, users Names) api.Task {
	t := api.Task{
		TaskID: i.TaskID(), WorkflowID: i.WorkflowID, InstanceID: i.InstanceID, StateMachineID: string(i.At.Machine), NodeID: string(i.At.Node),
		Title: i.Title.For(languages...), Description: TextOrNil(i.Description.For(languages...)), Status: string(i.Status),
		Created: Time(i.Created), Due: TimeOrNil(i.Due), Priority: i.Priority, Assignee: TextOrNil(i.Assignee),
		Candidates: api.Candidates{Roles: OrEmpty(i.Candidates.Roles), Users: OrEmpty(i.Candidates.Users), Privileges: OrEmpty(i.Candidates.Privileges)},
		Requester:  TextOrNil(i.Requester), Form: TextOrNil(i.Form), Events: []api.TaskEvent{},
	}
	if !i.IsBlind {
		t.RequesterName = TextOrNil(users.Of(i.Requester))
	}
	if i.Assignee != "" {
		t.AssigneeName = TextOrNil(users.Of(i.Assignee))
	}
	for n, e := range i.Events {
		of := i.EventLabels[n]
		t.Events = append(t.Events, api.TaskEvent{Name: string(e.Name), Label: of.Label.For(languages...), Style: of.Style.String()})
	}
	if d := i.Decided; d != nil {
		t.Done = &api.TaskEnd{User: d.By, UserName: users.Of(d.By), Event: d.Event, TS: Time(d.When)}
	}
	return t
}

// TextOrNil is nil for no text.
func TextOrNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// OrEmpty is a list that is not nil, so that JSON has [] and not null.
func OrEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// Names says what people are called.
type Names struct{ Users kernel.Users }

// Of is the name of a user for people: the login name where there is no other.
func (n Names) Of(user string) string {
	if n.Users != nil {
		if name := n.Users.Directory().Name(identity.UserID(user)); name != "" {
			return name
		}
	}
	return user
}
