package pending

import (
	"troupe/actors/identity"
	"troupe/actors/incident"
	"troupe/actors/outbox"
	"troupe/actors/timer"
	"troupe/statemachine"
)

// Delivery is a row of the outbox.
type Delivery struct {
	ID         string
	InstanceID string
	// Kind is "webhook", "mail" or "invoke", a message between a parent and its child. Name is that of the webhook, or the
	// workflow that the message goes to; "" for a mail.
	Kind, Name string
	URL        string // where it goes; "" for a mail, and where nobody knows
	*outbox.Delivery
}

// DeliveryList asks for a part of the outbox.
type DeliveryList struct {
	Caller *identity.Principal // Caller asks: of instances that they may not read, LastError is HiddenReason
	State  outbox.State        // 0: all
	Cursor string              // DeliveryPage.Next of the page before; empty is the first page
	Limit  int
}

// DeliveryPage is a part of the outbox, in the order of shards and instances.
type DeliveryPage struct {
	Deliveries []Delivery
	Next       string // the cursor of the next page; empty when there is none
}

// Timer is an event that comes to an instance by itself, unless something else happens before.
type Timer struct {
	ID                   string
	Workflow, InstanceID string
	statemachine.Timer
}

// TimerList asks for a part of the timers that are running.
type TimerList struct {
	User     identity.UserID // User asks: users take turns
	Workflow string          // "": of all
	Cursor   string          // TimerPage.Next of the page before; empty is the first page
	Limit    int
}

// TimerPage is a part of the timers, in the order in which they are due.
type TimerPage struct {
	Timers []Timer
	Next   string // the cursor of the next page; empty when there is none
}

// Incident is something that failed.
type Incident struct {
	ID         string
	InstanceID string // "": it was never created
	timer.Incident
	Timer statemachine.ElementID // how the instance calls the event, which came by itself
	// Row is what is known of an incident that no timer keeps. Callers who may not read the instance get HiddenReason
	// and no values.
	Row *incident.Row
}

// IncidentList asks for a part of the incidents.
type IncidentList struct {
	Caller *identity.Principal // Caller asks: of instances that they may not read, the incidents have no data
	Cursor string              // IncidentPage.Next of the page before; empty is the first page
	Limit  int
}

// IncidentPage is a part of the incidents, in the order of shards and instances.
type IncidentPage struct {
	Incidents []Incident
	Next      string // the cursor of the next page; empty when there is none
}
