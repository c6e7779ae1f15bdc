package chart

import (
	"strings"
)

// Effect is what one of a node's timers does whatever the data are then.
type Effect struct {
	Target NodeID // where it leads; "" for nowhere, or if that is unknown
	// Mails and Calls: it sends a mail, or something to a webhook.
	Mails, Calls bool
}

// Effect is that of the first transition that the timer takes, unless a guard decides.
func (a *After) Effect() (e Effect) {
	for _, tr := range a.Node.On {
		if tr.After != a {
			continue
		}
		if tr.Guard != nil {
			return Effect{}
		}
		if len(tr.Targets) == 1 {
			e.Target = tr.Targets[0].ID
		}
		for _, action := range tr.Actions {
			switch action.(type) {
			case *SendMail:
				e.Mails = true
			case *SendOut:
				e.Calls = true
			}
		}
		return e
	}
	return e
}

// After is one delay of a node, with its transitions in Node.On.
type After struct {
	Node  *Node
	Event EventName // "after.<delay>.<node>"
	Delay Delay
}

// Written is the delay as the name of the event has it.
func (a *After) Written() string { return strings.TrimSuffix(string(a.Event), "."+string(a.Node.ID)) }
