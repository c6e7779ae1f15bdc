package script

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"troupe/actors/failure"
	"troupe/actors/simulation"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// The bounds of a simulation.
const (
	StepsMax      = 1000
	DialogueMax   = 5 * time.Second
	DialogueBytes = 16 << 20 // of its world, and of its answer
	// shownEntries is how many entries of its history an instance is shown with: each step shows it again.
	shownEntries = 50
)

// ParseSteps reads a list of steps, in YAML or JSON, that follow others in a dialogue about a workflow. as does those that do not say who
// does them; "": they must. The error is that of Parse.
func ParseSteps(file string, text []byte, workflow, as string, known *Known) ([]Step, error) {
	root, err := document.Parse(file, text)
	if err != nil {
		return nil, err
	}
	p := &parser{Collector: &document.Collector{File: file}, known: known, of: known.current(workflow), as: as}
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
	may   func(bytes int) error // simulation.Options.May
}

// NewDialogue begins a dialogue about a workflow at a time.
func NewDialogue(known *Known, workflow string, now time.Time) *Dialogue {
	return newDialogue(known, workflow, now, func(int) error { return nil })
}

func newDialogue(known *Known, workflow string, now time.Time, may func(bytes int) error) *Dialogue {
	o := known.options(now, false)
	o.May = may
	return &Dialogue{run: &run{world: simulation.New(o), workflow: workflow, known: known, may: may}, may: may}
}

// Do has a step happen, and returns what there is then, as JSON: "state" is the instance that the step is about, as the interface shows it,
// "tasks", "timers", "jobs" and "sent" are as a test expects them, "events" are those that each user named so far can send, and "error" is
// why the step was refused or is not as it expects, {"status", "message"}.
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
	if err == nil && s.Refused {
		err = failure.Refuse(failure.ErrUnprocessable, "expected the step to be refused, but it was done")
	} else if err == nil || s.Refused {
		if failed := r.expected(s); failed != nil {
			err = failure.Refuse(failure.ErrUnprocessable, "not as expected: %s", failed.Summary())
		}
	}
	if in, missing := r.instance(s); missing == nil {
		out.put("state", in.AppendJSON(nil, shownEntries))
		if tasks, failed := in.Tasks(); failed == nil {
			out.put("tasks", listFrom(tasks, taskValue))
		}
		var events object
		for _, user := range d.users {
			if d.may(r.world.Bytes()) != nil {
				break // NB: each user costs as much as an event
			}
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

// Simulation is a list of steps that happen in a dialogue of their own, within bounds.
type Simulation struct {
	Known    *Known
	Workflow string
	Now      time.Time
	Steps    []Step
	Clock    func() time.Time // tells how long it takes
	// Ended is asked between two events; its error ends the simulation.
	Ended func() error
}

// Run returns {"steps": […]} with what Dialogue.Do says of each. The error is failure.ErrInvalid behind one of the bounds, or that of Ended.
func (s *Simulation) Run() (json.RawMessage, error) {
	begun, at, answered := s.Clock(), 0, 0
	var over error
	beyond := func(format string, args ...any) error {
		return failure.Refuse(failure.ErrInvalid, "%s: it has come to step %d of %d", fmt.Sprintf(format, args...), at+1, len(s.Steps))
	}
	may := func(bytes int) error {
		if over != nil {
			return over
		}
		switch err := s.Ended(); {
		case err != nil:
			over = err
		case s.Clock().Sub(begun) > DialogueMax:
			over = beyond("the simulation takes longer than %s", DialogueMax)
		case bytes > DialogueBytes:
			over = beyond("the instances of the simulation have more than %d bytes", DialogueBytes)
		case answered > DialogueBytes:
			over = beyond("the answer has more than %d bytes", DialogueBytes)
		}
		return over
	}
	if len(s.Steps) > StepsMax {
		return nil, failure.Refuse(failure.ErrInvalid, "a simulation has at most %d steps, not %d", StepsMax, len(s.Steps))
	}
	d := newDialogue(s.Known, s.Workflow, s.Now, may)
	out := []byte(`{"steps":[`)
	for i := range s.Steps {
		if at = i; i > 0 {
			out = append(out, ',')
		}
		out = append(out, d.Do(&s.Steps[i])...)
		answered = len(out)
		if err := may(d.run.world.Bytes()); err != nil {
			return nil, err
		}
	}
	return append(out, "]}"...), nil
}
