package outbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"troupe/actors/child"
	"troupe/persistence"
	"troupe/persistence/key"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/packed"
)

const (
	MailQueue   = ":mail"   // its mails
	ChildQueue  = ":child"  // what it tells its children
	ParentQueue = ":parent" // what it tells its parent
)

func isInside(queue string) bool { return queue == ChildQueue || queue == ParentQueue }

// State says whether a delivery is still tried.
type State string

const (
	Pending State = "pending"
	Dead    State = "dead" // Dead ones are kept, and tried again only when a person says so
)

// states are the stored forms, from 1 on.
var states = []State{"", Pending, Dead}

// Delivery is one row of the outbox: what is sent, and what happened to it so far.
type Delivery struct {
	Workflow      string
	Version       uint64 // of the definition
	Created       time.Time
	State         State
	Attempts      uint32
	Next          time.Time // of a pending one
	LastStatus    uint32    // that of the last answer, 0 when there was none; LastError says what was wrong
	LastError     string
	Body          data.Value // that of a webhook, the rest that of a mail
	To            []string
	Subject, Text string
	Trace         string // the value of trace.Header for who gets it; "": nobody follows it
}

const deliveryFormat = 1

const lastErrorMax = 1 << 10

// ErrDamaged: a row of the outbox cannot be read.
var ErrDamaged = errors.New("a delivery cannot be read")

// Append appends the stored form:
//
//	format(1) state(1) version attempts status created next  (varints; times in ms)
//	workflow error body subject text  (each with its length), the number of addressees, and each
//	trace  (with its length; only if there is one)
func (d *Delivery) Append(dst []byte) []byte {
	dst = append(dst, deliveryFormat, byte(slices.Index(states, d.State)))
	dst = binary.AppendUvarint(dst, d.Version)
	dst = binary.AppendUvarint(dst, uint64(d.Attempts))
	dst = binary.AppendUvarint(dst, uint64(d.LastStatus))
	dst = packed.AppendTime(dst, d.Created)
	dst = packed.AppendTime(dst, d.Next)
	dst = packed.AppendText(dst, d.Workflow)
	dst = packed.AppendText(dst, data.Clip(d.LastError, lastErrorMax))
	dst = packed.AppendText(dst, d.Body)
	dst = packed.AppendText(dst, d.Subject)
	dst = packed.AppendText(dst, d.Text)
	dst = binary.AppendUvarint(dst, uint64(len(d.To)))
	for _, to := range d.To {
		dst = packed.AppendText(dst, to)
	}
	if d.Trace != "" {
		dst = packed.AppendText(dst, d.Trace)
	}
	return dst
}

// Parse reads the stored form, and keeps nothing of it.
func Parse(stored []byte) (*Delivery, error) {
	r := packed.NewReader(stored)
	if r.Byte() != deliveryFormat {
		return nil, fmt.Errorf("%w: unknown format", ErrDamaged)
	}
	state := int(r.Byte())
	d := &Delivery{Version: r.Uvarint()}
	d.Attempts, d.LastStatus = uint32(r.Uvarint()), uint32(r.Uvarint())
	d.Created, d.Next = r.Time(), r.Time()
	d.Workflow, d.LastError = string(r.Text()), string(r.Text())
	if body := r.Text(); len(body) > 0 {
		d.Body = data.Value(bytes.Clone(body))
	}
	d.Subject, d.Text = string(r.Text()), string(r.Text())
	for n := r.Uvarint(); n > 0 && !r.Failed(); n-- {
		d.To = append(d.To, string(r.Text()))
	}
	if !r.Failed() && !r.Whole() {
		d.Trace = string(r.Text())
	}
	if !r.Whole() || state < 1 || state >= len(states) {
		return nil, fmt.Errorf("%w: layout", ErrDamaged)
	}
	d.State = states[state]
	return d, nil
}

// mailCauses says of errors of mails what is wrong without their addressees.
var mailCauses = [][2]string{
	{"nobody of ", "none of its addressees has an email in identity.yaml"},
	{"no mail server is set", "no mail server is set: mail.host"},
	{"connection refused", "connection refused"},
	{"no such host", "the mail server's name has no address"},
	{"x509: ", "the mail server's certificate is not trusted"},
	{"tls: ", "TLS failed"},
	{"i/o timeout", "the mail server did not answer in time"},
	{"deadline exceeded", "the mail server did not answer in time"},
}

// Cause is LastError without what may be data of the instance, for those who run the service. A webhook's error speaks of
// the destination alone; a mail's may quote addressees. "": nothing is left.
func (d *Delivery) Cause(kind string) string {
	switch {
	case kind == "webhook":
		return d.LastError
	case kind == "mail" && d.LastStatus != 0:
		return fmt.Sprintf("the mail server answered %d", d.LastStatus)
	case kind == "mail":
		for _, cause := range mailCauses {
			if strings.Contains(d.LastError, cause[0]) {
				return cause[1]
			}
		}
	}
	return ""
}

// Put writes what an event sends out, into the commit of that event.
func Put(w *persistence.Batch, of Origin, outs []statemachine.Delivery) {
	for i := range outs {
		out := &outs[i]
		d := Delivery{
			Workflow: of.Workflow, Version: of.Version, Created: of.At, Next: of.Due, State: Pending,
			Body: out.Body, To: out.To, Subject: out.Subject, Text: out.Text, Trace: of.Trace,
		}
		if message := child.Of(of.Instance, out); message != nil {
			d.Body = message
		}
		k := key.Delivery{ID: of.Instance, Queue: QueueOf(out), Sequence: of.Sequence, Number: uint32(i)} //nolint:gosec // few
		w.Set(k.Key(nil, of.Shard), d.Append(nil))
		w.Set(key.Attempt(nil, of.Shard, of.Workflow, of.Due.UnixMilli(), k), nil)
	}
}

// KindOf says what a delivery of a queue is: "webhook", "mail" or "invoke", and the name of the webhook or the workflow that it
// goes to.
func (d *Delivery) KindOf(queue string) (kind, name string) {
	switch kind = QueueKind(queue); kind {
	case "webhook":
		name = queue
	case "invoke":
		if m, err := child.Parse(d.Body); err == nil {
			name = m.To().Workflow
		}
	}
	return kind, name
}

// Kinds are what deliveries are.
var Kinds = []string{"webhook", "mail", "invoke"}

// QueueKind says which of Kinds those of a queue are.
func QueueKind(queue string) string {
	switch {
	case queue == MailQueue:
		return "mail"
	case isInside(queue):
		return "invoke"
	}
	return "webhook"
}

// StateOf reads the state alone of the stored form; "" of what cannot be read.
func StateOf(stored []byte) State {
	if len(stored) < 2 || stored[0] != deliveryFormat || int(stored[1]) >= len(states) {
		return ""
	}
	return states[stored[1]]
}

// Origin is the event that sends out.
type Origin struct {
	Shard    key.Shard
	Workflow string
	Version  uint64
	Instance key.ID
	Sequence uint64 // of its history entry
	At       time.Time
	Due      time.Time // of the first attempts; Service.Began is told the same
	Trace    string    // Delivery.Trace
}

// QueueOf is the queue in which something waits for what its instance sent before to the same place.
func QueueOf(out *statemachine.Delivery) string {
	switch {
	case out.Start != nil, out.End != nil, out.Forward != nil && out.Forward.Parent == nil:
		return ChildQueue
	case out.Notice != nil, out.Forward != nil:
		return ParentQueue
	case out.Webhook == "":
		return MailQueue
	}
	return out.Webhook
}
