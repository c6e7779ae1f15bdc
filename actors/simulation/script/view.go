package script

import (
	"strconv"

	"troupe/actors/simulation"
	"troupe/actors/task"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// object builds a JSON object.
type object []byte

func (o *object) put(key string, v data.Value) {
	if len(*o) == 0 {
		*o = append(*o, '{')
	} else {
		*o = append(*o, ',')
	}
	*o = append(append(data.AppendString(*o, key), ':'), v...)
}

func (o *object) text(key, text string) {
	if text != "" {
		o.put(key, data.AppendString(nil, text))
	}
}

func (o object) value() data.Value {
	if len(o) == 0 {
		return data.Value("{}")
	}
	return append(data.Value(o), '}')
}

func listOf(items []data.Value) data.Value {
	out := []byte{'['}
	for i, item := range items {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, item...)
	}
	return append(out, ']')
}

func listOfTexts[T ~string](list []T) data.Value {
	items := make([]data.Value, len(list))
	for i, s := range list {
		items[i] = data.AppendString(nil, string(s))
	}
	return listOf(items)
}

func listFrom[T any](list []T, item func(*T) data.Value) data.Value {
	items := make([]data.Value, len(list))
	for i := range list {
		items[i] = item(&list[i])
	}
	return listOf(items)
}

func truth(is bool) data.Value { return data.Value(strconv.FormatBool(is)) }

// view is what the instance shows of what is asked for, by the keys of expect.
func (r *run) view(in *simulation.Instance, asked *document.Node) (map[string]data.Value, error) {
	d, state := in.Definition(), in.State()
	view := map[string]data.Value{
		"states": statesOf(d, state), "svcPublic": state.Public, "svcPrivate": state.Private,
		"done": truth(d.IsDone(state)), "cancelled": truth(state.IsEnded()),
		"timers": listFrom(in.Timers(), timerValue), "incidents": listFrom(in.Incidents(), incidentValue),
		"children": listFrom(state.Children(), childValue),
		"events":   r.eventsOf(in), "sent": r.sentOf(in), "jobs": listFrom(in.Jobs(), jobValue),
	}
	for key, text := range map[string]string{"svcRedirect": state.Redirect, "key": state.Key(), "title": d.Title(state).For("en")} {
		if text != "" {
			view[key] = data.AppendString(nil, text)
		}
	}
	tasks, err := in.Tasks()
	if err != nil {
		return nil, err
	}
	view["tasks"] = listFrom(tasks, taskValue)
	for _, key := range []string{"allowed", "refused"} {
		var users object
		if of := asked.Field(key); of != nil {
			for _, f := range of.Fields {
				if r.may != nil && r.may(r.world.Bytes()) != nil {
					break // NB: each user costs as much as an event
				}
				events, err := in.EventsFor(f.Key.Text)
				if err != nil {
					return nil, err
				}
				users.put(f.Key.Text, allowedValue(events))
			}
		}
		view[key] = users.value()
	}
	return view, nil
}

func statesOf(d *statemachine.Definition, in *statemachine.Instance) data.Value {
	var o object
	for _, p := range d.Positions(in) {
		o.text(string(p.Machine), string(p.Node))
	}
	return o.value()
}

// allowedValue lists the events that no guard stops for certain.
func allowedValue(events []statemachine.Available) data.Value {
	var names []statemachine.EventName
	for _, e := range events {
		if e.Guard != statemachine.GuardFalse {
			names = append(names, e.Name)
		}
	}
	return listOfTexts(names)
}

func taskValue(of **task.Item) data.Value {
	t := *of
	var o object
	o.text("title", t.Title.For("en"))
	o.text("description", t.Description.For("en"))
	names := append(append(append([]string{}, t.Candidates.Roles...), t.Candidates.Privileges...), t.Candidates.Users...)
	if t.Candidates.Everybody {
		names = append(names, "*")
	}
	o.put("for", listOfTexts(names))
	if !t.Due.IsZero() {
		o.text("due", t.Due.Format(statemachine.TimeLayout))
	}
	o.put("priority", strconv.AppendInt(nil, int64(t.Priority), 10))
	o.text("assignee", t.Assignee)
	o.text("form", t.Form)
	o.text("stateMachineId", string(t.At.Machine))
	o.text("nodeId", string(t.At.Node))
	return o.value()
}

func timerValue(t *statemachine.Timer) data.Value {
	var o object
	o.text("event", string(t.Event))
	o.text("due", t.Due.Format(statemachine.TimeLayout))
	o.text("stateMachineId", string(t.At.Machine))
	o.text("nodeId", string(t.At.Node))
	return o.value()
}

func incidentValue(i *simulation.Incident) data.Value {
	var o object
	o.text("error", i.Fault.Error())
	o.text("event", string(i.Event))
	return o.value()
}

func childValue(c *statemachine.Child) data.Value {
	var o object
	o.text("workflow", c.Workflow)
	o.text("status", c.Status.String())
	return o.value()
}

func jobValue(j *simulation.Job) data.Value {
	var o object
	o.text("job", j.Type)
	if j.Data.Kind() != data.Absent {
		o.put("data", j.Data)
	}
	o.put("priority", strconv.AppendInt(nil, int64(j.Priority), 10))
	o.put("attempts", strconv.AppendInt(nil, int64(j.Attempts), 10))
	o.put("failed", truth(j.Failed))
	o.text("message", j.Message)
	o.text("stateMachineId", string(j.At.Machine))
	o.text("nodeId", string(j.At.Node))
	return o.value()
}

// eventsOf are the entries of the instance since the last step that did something, without that of its creation.
func (r *run) eventsOf(in *simulation.Instance) data.Value {
	var items []data.Value
	for _, e := range r.world.Events()[r.events:] {
		if e.Instance != in || e.Event == "" {
			continue
		}
		var o object
		o.text("event", string(e.Event))
		o.text("user", e.User)
		if e.Data.Kind() != data.Absent {
			o.put("data", e.Data)
		}
		items = append(items, o.value())
	}
	return listOf(items)
}

func (r *run) sentOf(in *simulation.Instance) data.Value {
	var items []data.Value
	for _, s := range r.world.Sent()[r.sent:] {
		if s.Instance != in {
			continue
		}
		var o object
		if s.Webhook != "" {
			o.text("webhook", s.Webhook)
			if s.Body.Kind() != data.Absent {
				o.put("body", s.Body)
			}
		} else {
			o.put("mail", listOfTexts(s.To))
			o.text("subject", s.Subject)
			o.text("text", s.Text)
		}
		items = append(items, o.value())
	}
	return listOf(items)
}
