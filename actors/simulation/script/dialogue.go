package script

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"troupe/actors/failure"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// StepsMax is how many steps a Dialogue takes, and DialogueMax how long those of a Simulate may take.
const (
	StepsMax    = 1000
	DialogueMax = 5 * time.Second
)

// ParseSteps reads a list of steps, in YAML or JSON, that follow others in a dialogue about a workflow. The error is that of Parse.
func ParseSteps(file string, text []byte, workflow string, known *Known) ([]Step, error) {
	root, err := document.Parse(file, text)
	if err != nil {
		return nil, err
	}
	p := &parser{Collector: &document.Collector{File: file}, known: known, of: known.newest[workflow]}
	steps := p.stepList(root)
	if err := p.Err(); err != nil {
		return nil, err
	}
	return steps, nil
}

// Dialogue is a world in which steps happen one after the other, to be looked at.
type Dialogue struct {
	run   *run
	users []string // that steps have named, in that order
	steps int
}

// NewDialogue begins a dialogue about a workflow at a time.
func NewDialogue(known *Known, workflow string, now time.Time) *Dialogue {
	return &Dialogue{run: &run{world: known.World(now, false), workflow: workflow, known: known}}
}

// Do has a step happen, and returns what there is then, as JSON: "state" is the instance that the step is about, as the interface shows it,
// "tasks", "timers", "jobs" and "sent" are as a test expects them, "events" are those that each user named so far can send, and "error" is
// why the step was refused, {"status", "message"}. Expectations are not looked at.
func (d *Dialogue) Do(s *Step) data.Value {
	var out object
	if s.As != "" && !slices.Contains(d.users, s.As) {
		d.users = append(d.users, s.As)
	}
	r := d.run
	r.events, r.sent = len(r.world.Events()), len(r.world.Sent())
	var err error
	if d.steps++; d.steps > StepsMax {
		err = failure.Refuse(failure.ErrInvalid, "a simulation has at most %d steps", StepsMax)
	} else if s.Action != NoAction {
		err = r.do(s)
	}
	if in, missing := r.instance(s); missing == nil {
		out.put("state", in.AppendJSON(nil))
		if tasks, failed := in.Tasks(); failed == nil {
			out.put("tasks", listFrom(tasks, taskValue))
		}
		var events object
		for _, user := range d.users {
			if available, failed := in.EventsFor(user); failed == nil {
				events.put(user, allowedValue(available))
			}
		}
		out.put("events", events.value())
		out.put("timers", listFrom(in.Timers(), timerValue))
		out.put("jobs", listFrom(in.Jobs(), jobValue))
		out.put("sent", r.sentOf(in))
	}
	if err != nil {
		var refused object
		refused.put("status", strconv.AppendInt(nil, int64(StatusOf(err)), 10))
		refused.text("message", reasonOf(err))
		out.put("error", refused.value())
	}
	return out.value()
}

// Simulate has steps happen in a new dialogue, and returns {"steps": […]} with what Do says of each. It ends with an error behind
// DialogueMax; clock tells how long it takes.
func Simulate(known *Known, workflow string, now time.Time, steps []Step, clock func() time.Time) (json.RawMessage, error) {
	d, begun := NewDialogue(known, workflow, now), clock()
	var out []data.Value
	for i := range steps {
		if clock().Sub(begun) > DialogueMax {
			return nil, failure.Refuse(failure.ErrInvalid, "the simulation takes longer than %s: it has come to step %d of %d", DialogueMax, i, len(steps))
		}
		out = append(out, d.Do(&steps[i]))
	}
	var answer object
	answer.put("steps", listOf(out))
	return json.RawMessage(answer.value()), nil
}
