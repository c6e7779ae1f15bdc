package task

import (
	"strconv"
	"strings"

	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/filter"
)

func (r *reading) matches(i *Item, of *Whole) bool {
	if len(r.words) > 0 {
		text := strings.ToLower(strings.Join(append([]string{i.TaskID(), i.Requester, r.nameOf(i.Requester)}, i.Title.All()...), "\n"))
		for _, word := range r.words {
			if !strings.Contains(text, word) {
				return false
			}
		}
	}
	if r.req.Filter == "" {
		return true
	}
	return r.filter.Match(filter.Document{
		ID: i.InstanceID, WorkflowID: i.WorkflowID, States: of.Of.States(of.State), Public: of.State.Public, Own: r.document(i),
	})
}

func (r *reading) nameOf(user string) string {
	if r.req.NameOf == nil {
		return ""
	}
	return r.req.NameOf(user)
}

// document has what a filter sees of a task: ownRoots.
func (r *reading) document(i *Item) data.Value {
	v := data.Value("{")
	text := func(name, value string) {
		if len(v) > 1 {
			v = append(v, ',')
		}
		v = append(data.AppendString(v, name), ':')
		if value == "" {
			v = append(v, "null"...)
			return
		}
		v = data.AppendString(v, value)
	}
	text("taskId", i.TaskID())
	text("instanceId", i.InstanceID)
	text("stateMachineId", string(i.At.Machine))
	text("nodeId", string(i.At.Node))
	text("title", i.Title.For(r.req.Languages...))
	text("status", string(i.Status))
	text("created", i.Created.Format(statemachine.TimeLayout))
	due := ""
	if !i.Due.IsZero() {
		due = i.Due.Format(statemachine.TimeLayout)
	}
	text("due", due)
	text("assignee", i.Assignee)
	text("requester", i.Requester)
	v = append(v, `,"priority":`...)
	return append(strconv.AppendInt(v, int64(i.Priority), 10), '}')
}
