package chart

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/mail"
	"slices"
	"strings"

	"troupe/statemachine/data"
)

const MaxMailTo = 100 // addressees of one mail

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

var errAddressee = errors.New("mail: to is user:NAME, role:NAME, an address, or a list of them")

// Addressees reads a text or a list of texts.
func Addressees(v data.Value) (to []string, err error) {
	list := []data.Value{v}
	if v.Kind() == data.Array {
		list = list[:0]
		for _, item := range v.Elements() {
			list = append(list, item)
		}
	}
	for _, item := range list {
		if item.Kind() != data.String {
			return nil, errAddressee
		}
		text := item.Text()
		if err := checkAddressee(text); err != nil {
			return nil, err
		}
		to = append(to, text)
	}
	if len(to) == 0 || len(to) > MaxMailTo {
		return nil, fmt.Errorf("%w, of one to %d", errAddressee, MaxMailTo)
	}
	return to, nil
}

func checkAddressee(text string) error {
	for _, kind := range []string{"user:", "role:"} {
		if name, ok := strings.CutPrefix(text, kind); ok {
			if name == "" {
				return errAddressee
			}
			return nil
		}
	}
	if a, err := mail.ParseAddress(text); err != nil || a.Address != text {
		return fmt.Errorf("%w, not %q", errAddressee, data.Shorten(text))
	}
	return nil
}

// AddServiceEvent notes that nobody but the service sends an event.
func (d *Definition) AddServiceEvent(name EventName) {
	if d.ServiceEvents == nil {
		d.ServiceEvents = map[EventName]bool{}
	}
	d.ServiceEvents[name] = true
}
