package chart

import (
	"slices"
)

// LetsInvoke reports whether the definition names a workflow that may invoke it with any data.
func (d *Definition) LetsInvoke(workflow string) bool { return slices.Contains(d.Invokers, workflow) }

// Invocation is a child that a definition may have.
type Invocation struct {
	Workflow string
	Invoke   *Invoke
}

// Invocations returns the children whose workflow stands in the definition, in document order.
func (d *Definition) Invocations() (all []Invocation) {
	for _, n := range d.Nodes {
		for _, inv := range n.Invoke {
			if inv.Workflow != "" {
				all = append(all, Invocation{inv.Workflow, inv})
			}
		}
	}
	return all
}

// Invoke is one child or job that a node has while it is active.
type Invoke struct {
	Node            *Node
	Number          int // among those of the node
	Workflow        string
	Version         uint64     // 0: the newest
	Public, Private *Template  // nil: none
	*SCXMLInvoke               // nil: with our own rules
	Job             *JobInvoke // nil: it begins a workflow
}

// ChildTransition is what happened to a child or a job.
type ChildTransition struct {
	Invoke *Invoke
	Failed bool
}

// Event is the name of the event that says it.
func (t *ChildTransition) Event() EventName {
	if t.Failed {
		return EventName("error.invoke." + string(t.Invoke.Node.ID))
	}
	return EventName("done.invoke." + string(t.Invoke.Node.ID))
}

const ParentCancelled EventName = "parent.cancelled"

// SCXMLInvoke is an invoke with the rules of SCXML (W3C SCXML, section 6.4).
type SCXMLInvoke struct {
	Workflow, Kind *Template // computed; nil: they are not
	ID             string    // "": it is made
	IDTo           *Place    // where it goes; nil: nowhere
	Payload        Payload   // svcPublic of the child
	Autoforward    bool
	Finalize       []Action
}

// Reference is a name of something outside that a definition needs, and the line where it stands first.
type Reference struct {
	Name string
	Line int
}

// AddReference adds a name that is new.
func AddReference(to []Reference, name string, line int) []Reference {
	if slices.ContainsFunc(to, func(r Reference) bool { return r.Name == name }) {
		return to
	}
	return append(to, Reference{name, line})
}
