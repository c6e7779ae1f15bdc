package chart

import (
	"cmp"
	"maps"
	"slices"
)

// Webhook is where deliveries of one name go.
type Webhook struct {
	Name string
	Line int    // in the file
	URL  string // "": the service's settings have it
	Retry
	// OnDone and OnError are the events that tell the instance; "": none.
	OnDone, OnError EventName
}

// Webhook returns one of the definition's; nil when it has none of that name.
func (d *Definition) Webhook(name string) *Webhook { return d.WebhookByName[name] }

// Webhooks returns those of the definition, by name.
func (d *Definition) Webhooks() []*Webhook {
	return slices.SortedFunc(maps.Values(d.WebhookByName), func(a, b *Webhook) int { return cmp.Compare(a.Name, b.Name) })
}

// AddServiceEvent notes that nobody but the service sends an event.
func (d *Definition) AddServiceEvent(name EventName) {
	if d.ServiceEvents == nil {
		d.ServiceEvents = map[EventName]bool{}
	}
	d.ServiceEvents[name] = true
}
