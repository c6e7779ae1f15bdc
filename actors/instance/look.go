package instance

import (
	"troupe/actors/form"
	"troupe/actors/message"
)

// Look is a question about the instance, of a caller who may see it.
type Look struct {
	caller *message.Load
	see    func(access) error
}

func (m Look) run(i *Actor, c *Call) error {
	a, err := i.visible(m.caller)
	if err == nil {
		err = m.see(a)
	}
	if err != nil {
		return err
	}
	i.deliver(c, &message.Reply{})
	return nil
}

// See calls f inside the actor.
func See(req *message.Load, f func(message.View)) Look {
	return Look{req, func(a access) error {
		f(message.View{ID: a.id, Of: a.of, Instance: &a.state, Form: a.form})
		return nil
	}}
}

// SeeEvents finds out what the caller may send now. out is written before the answer.
func SeeEvents(req *message.Load, out *message.Events) Look {
	return Look{req, func(a access) error {
		out.Sequence, out.Of, out.Events = a.state.Sequence, a.of, a.available()
		return nil
	}}
}

// SeeForm finds out what the instance is as a form. out is written before the answer.
func SeeForm(load *message.Load, req *form.Request, out **form.View) Look {
	return Look{load, func(a access) (err error) {
		*out, err = a.formView(req)
		return err
	}}
}

// SeeTaskForm finds out what a task is with its form. out is written before the answer.
func SeeTaskForm(req *message.TaskForm, out **message.TaskView) Look {
	return Look{&message.Load{Caller: req.Caller}, func(a access) (err error) {
		*out, err = a.taskView(req)
		return err
	}}
}

// Load is the request of Load.
type Load struct{ *message.Load }

func (req Load) run(i *Actor, c *Call) error {
	if _, err := i.visible(req.Load); err != nil {
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
