package instance

import (
	"errors"
	"fmt"
	"strings"

	"troupe/actors/message"
	"troupe/statemachine"
	"troupe/statemachine/data"
)

// Why finds out whether somebody may send an event now, and why. Answer is written before the reply.
type Why struct {
	*message.Load
	Event  string
	Answer *message.Permission
}

func (req Why) run(i *Actor, c *Call) error {
	a, err := i.access(req.Caller, nil, nil)
	if err != nil {
		return err
	}
	*req.Answer = a.why(req.Event)
	i.deliver(c, &message.Reply{})
	return nil
}

func (Why) traits() traits { return traits{reads: true} }

func (a *access) why(event string) (p message.Permission) {
	reads, why := a.rules.WhyRead(a.view(), a.as, a.now)
	p.Why = append(p.Why, verdict("allow.read", reads, why))
	sends, why := a.rules.WhySend(a.view(), a.as, a.now)
	p.Why = append(p.Why, verdict("allow.send", sends, why))
	takes, why := a.whyEvent(event)
	p.Why = append(p.Why, verdict("event "+data.Clip(event, 80), takes, why))
	p.Allowed = sends && takes
	return p
}

func verdict(what string, yes bool, why string) string {
	if yes {
		return what + ": yes, " + why
	}
	return what + ": no, " + why
}

// whyEvent says whether a transition takes the event now from the caller, leaving aside allow.send.
func (a *access) whyEvent(event string) (takes bool, why string) {
	var states []string
	for _, p := range a.of.Positions(&a.state) {
		states = append(states, string(p.Node))
	}
	in := "in state " + strings.Join(states, ", ")
	for _, e := range a.view().Available(a.as, a.now) {
		if string(e.Name) != event {
			continue
		}
		switch e.Guard {
		case statemachine.GuardFalse:
			return false, "no guard holds " + in
		case statemachine.GuardTrue:
			return true, "it can be sent " + in
		}
		return true, "it can be sent " + in + ", if its data meets the guard and the rules that look at it"
	}
	name, ok := statemachine.ParseEventName(event)
	if !ok {
		return false, "the workflow has no such event"
	}
	_, err := a.of.Step(&a.state, statemachine.Event{Name: name, Data: data.Value("{}"), Caller: a.as, Now: a.now}) // a pure function: nothing is done
	for _, of := range []struct {
		kind error
		why  string
	}{
		{statemachine.ErrUnknownEvent, "the workflow has no such event"},
		{statemachine.ErrForbidden, "the rules of the event and of its transitions (allow) refuse it " + in},
		{statemachine.ErrClaimed, "the task is assigned to someone else"},
		{statemachine.ErrEnded, "the instance was stopped or canceled"},
	} {
		if errors.Is(err, of.kind) {
			return false, of.why
		}
	}
	why = "no transition takes it " + in
	for _, j := range a.state.Jobs() {
		what := "waits for a job of the type "
		if j.Failed {
			what = "has an incident, of a job of the type "
		}
		why += fmt.Sprintf("; %s %s%s", j.At.Node, what, j.Type)
	}
	return false, why
}
