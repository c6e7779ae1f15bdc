package record

import (
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
)

// Delivery is what an event sends out of the instance: to a webhook, or as a mail. It leaves after the event is
// durable, at least once, and in order for its instance and name (statemachine/DEFINITION.md, "Deliveries").
type Delivery struct {
	// Webhook is its name; "" for a mail.
	Webhook string
	// Body is the data of a webhook.
	Body data.Value
	// To, Subject and Text are those of a mail. An addressee is user:NAME, role:NAME or an address.
	To            []string
	Subject, Text string
	// Start and End are for a child, and Notice is for the parent; nil for all others.
	Start  *ChildStart
	End    *ChildEnd
	Notice *ParentNotice
	// Forward is an event for the parent or a child.
	Forward *Forward
}

// ChildStart has a child created. The instance's own ElementID and Begun make the id of the child, so that it is the same
// however often it is asked for.
type ChildStart struct {
	ID              ElementID
	Begun           time.Time
	Workflow        string
	Version         uint64 // 0: the newest
	Public, Private data.Value
	Depth           int // how many instances stand above it
}

// ChildEnd has a child cancelled.
type ChildEnd struct {
	ID       ElementID
	Begun    time.Time
	Workflow string
	By       string // who has stopped the whole tree; "": nobody
}

// ParentNotice tells the parent what happened to its child.
type ParentNotice struct {
	Parent Parent
	Failed bool
	Output data.Value // null without one
}

// Forward is an event for the parent, or for a child.
type Forward struct {
	Parent *Parent   // nil: to the child
	Child  *ChildEnd // nil: to the parent
	Event  chart.EventName
	Data   data.Value
	SendID string
}

// Cancellation has the child cancelled.
func (c *ChildState) Cancellation() *ChildEnd {
	return &ChildEnd{ID: c.ID, Begun: c.Begun, Workflow: c.WorkflowID()}
}
