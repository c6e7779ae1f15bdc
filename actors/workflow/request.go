package workflow

// Posted is a request on its way to its instance.
type Posted struct {
	call  *call // nil: the answer comes in any case
	round int64 // of the sweep, when it was posted
}

// GiveUp says what a request has come to that was not answered in time: failure.ErrBusy
// when it will never be applied, else failure.ErrOutcomeUnknown, and then an answer may still
// come; nil while there is time.
func (p Posted) GiveUp() error {
	if p.call == nil {
		return nil
	}
	r := p.call.activation.router
	if r.round.Load()-p.round <= int64(r.o.ReplyWaitMax/sweepEvery) {
		return nil
	}
	return p.call.giveUp()
}
