package statemachine

import (
	"fmt"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
)

const maxOut = 100

const maxOutBytes = 1 << 20

var (
	errTooManyOut error = executionError{reason: fmt.Sprintf("more than %d deliveries", maxOut)}
	errOutLarge   error = executionError{reason: fmt.Sprintf("deliveries with more than %d MiB", maxOutBytes>>20)}
)

// Out is what an event sends out of the instance: to a webhook, or as a mail. It leaves after the event is
// durable, at least once, and in order for its instance and name (statemachine/DEFINITION.md, "Deliveries").
type Out struct {
	// Webhook is its name; "" for a mail.
	Webhook string
	// Body is the data of a webhook.
	Body data.Value
	// To, Subject and Text are those of a mail. An addressee is user:NAME, role:NAME or an address.
	To            []string
	Subject, Text string
	// Start and End are for a child, and Tell is for the parent; nil for all others.
	Start *ChildStart
	End   *ChildEnd
	Tell  *ParentNews
	// Forward is an event for the parent or a child.
	Forward *Forward
}

func (m *macrostep) runSendOut(a *chart.SendOut) error {
	var v data.Value
	if a.Body != nil {
		var err error
		if v, err = a.Body.Eval(&m.scope); err != nil {
			return err
		}
	}
	m.putDelivery(Out{Webhook: a.To, Body: v}, len(v))
	return nil
}

func (m *macrostep) runSendMail(a *chart.SendMail) error {
	v, err := a.To.Eval(&m.scope)
	if err != nil {
		return err
	}
	to, err := chart.Addressees(v)
	if err != nil {
		return err
	}
	subject, err := a.Subject.Text(&m.scope)
	if err != nil {
		return err
	}
	body, err := a.Body.Text(&m.scope)
	if err != nil {
		return err
	}
	// NB: a line break in a subject would begin another header.
	subject = strings.Join(strings.Fields(subject), " ")
	m.putDelivery(Out{To: to, Subject: subject, Text: body}, len(subject)+len(body))
	return nil
}

func (m *macrostep) putDelivery(out Out, bytes int) {
	m.outBytes += bytes
	switch {
	case len(m.out) >= maxOut:
		m.fail(errTooManyOut)
	case m.outBytes > maxOutBytes:
		m.fail(errOutLarge)
	default:
		m.out = append(m.out, out)
	}
}
