package kernel

import (
	"troupe/actors/audit"
	"troupe/actors/failure"
	"troupe/actors/message"
)

// noted is what the audit log gets before an answer is sent.
type noted struct {
	action audit.Action // empty: nothing
	target string
	read   bool
	done   bool // what shows it has changed something too
}

// Note has an action recorded that was carried out, before it is answered.
func (x *Exchange) Note(action audit.Action, target string) {
	x.noted = noted{action: action, target: target}
}

// NoteRead has it recorded that an operator looks at something, before anything of it is sent.
func (x *Exchange) NoteRead(action audit.Action, target string) {
	x.noted = noted{action: action, target: target, read: true}
}

// RecordRead is NoteRead for a stream, and returns when it is recorded.
func (x *Exchange) RecordRead(action audit.Action, target string) error {
	x.NoteRead(action, target)
	return x.record()
}

// RecordReply is RecordRead for what answers an item of a batch, which is done.
func (x *Exchange) RecordReply(reply *message.Reply) error {
	if !reply.ByPrivilege {
		return nil
	}
	x.noted = noted{action: audit.InstanceList, target: reply.WorkflowID, read: true, done: true}
	return x.record()
}

// NoteInstance is NoteRead for an instance that was read, if only a privilege made it possible.
func (x *Exchange) NoteInstance(of *message.Load) {
	if of.ByPrivilege {
		x.NoteRead(audit.InstanceRead, of.WorkflowID+"/"+of.InstanceID)
	}
}

// record writes what was noted. The error is the answer then.
func (x *Exchange) record() error {
	n := x.noted
	if n.action == "" {
		return nil
	}
	x.noted = noted{}
	log, ctx, actor := x.Services.Audit, x.Request.Context(), string(x.Caller.ID)
	if !n.read {
		return log.Record(ctx, actor, n.action, n.target)
	}
	err := log.Read(ctx, actor, n.action, n.target)
	if err != nil && n.done {
		err = failure.Errorf(failure.ErrOutcomeUnknown, "%w", err)
	}
	return err
}
