package instance

import (
	"troupe/actors/form"
	"troupe/actors/message"
)

// Look is a question about the instance, of a caller who may see it.
type Look struct {
	caller *message.Load
	see    func(*Actor) error
}

func (m Look) run(i *Actor, c *Call) error {
	if err := i.mayRead(m.caller.Caller); err != nil {
		return err
	}
	if err := m.see(i); err != nil {
		return err
	}
	i.deliver(c, &message.Reply{})
	return nil
}

// See calls f inside the actor.
func See(req *message.Load, f func(message.View)) Look {
	return Look{req, func(i *Actor) error {
		f(message.View{ID: i.id, Of: i.of, Instance: &i.state, Form: i.form})
		return nil
	}}
}

// SeeEvents finds out what the caller may send now. out is written before the answer.
func SeeEvents(req *message.Load, out *message.Events) Look {
	return Look{req, func(i *Actor) error {
		out.Sequence, out.Of, out.Events = i.state.Sequence, i.of, i.available(req)
		return nil
	}}
}

// SeeForm finds out what the instance is as a form. out is written before the answer.
func SeeForm(req *form.Request, out **form.View) Look {
	load := &message.Load{Caller: req.Caller, WorkflowID: req.WorkflowID, InstanceID: req.InstanceID}
	return Look{load, func(i *Actor) (err error) {
		*out, err = i.formView(req)
		return err
	}}
}

// SeeTaskForm finds out what a task is with its form. out is written before the answer.
func SeeTaskForm(req *message.TaskForm, out **message.TaskView) Look {
	return Look{&message.Load{Caller: req.Caller}, func(i *Actor) (err error) {
		*out, err = i.taskView(req)
		return err
	}}
}

// Load is the request of Load.
type Load struct{ *message.Load }

func (req Load) run(i *Actor, c *Call) error {
	if err := i.mayRead(req.Caller); err != nil {
		return err
	}
	reply, err := i.reply(req.WithHistory)
	if err != nil {
		return err
	}
	i.deliver(c, reply)
	return nil
}

func (Load) traits() traits { return traits{reads: true} }

func (Look) traits() traits { return traits{reads: true} }
