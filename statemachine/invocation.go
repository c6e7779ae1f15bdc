package statemachine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/schema"
)

// invokersOf reads allow.invoke.
func (b *builder) invokersOf(n *document.Node) {
	if !b.known(n, invokerKeys) {
		return
	}
	b.d.accessLine = cmp.Or(b.d.accessLine, n.Line)
	b.d.invokers = b.Texts(n.Field("workflows"))
	for _, id := range b.d.invokers {
		if !IsIdentifier(id) {
			b.Add(n.Field("workflows"), "%q cannot be the id of a workflow", data.Shorten(id))
		}
	}
	if len(b.d.invokers) == 0 {
		b.Add(n, "no workflow is named: give workflows")
	}
}

// LetsInvoke reports whether the definition names a workflow that may invoke it with any data.
func (d *Definition) LetsInvoke(workflow string) bool { return slices.Contains(d.invokers, workflow) }

// MayInvoke asks for a child whether a user could create it: ErrMayNotCreate, ErrNotSettable, ErrInvalidData, or nil. c is what the child begins
// with. A user without an id is nobody, whom only a workflow without a rule admits (statemachine/DEFINITION.md, "Who may invoke").
func (d *Definition) MayInvoke(by *Caller, c Creation) error {
	now := c.Now.UTC().Truncate(time.Millisecond)
	in := Instance{ID: c.ID, CreatedAt: now, UpdatedAt: now, Public: data.Overlay(d.public, c.Public), Private: data.Overlay(d.private, c.Private), parent: c.Parent}
	m := d.newMove(&in, newNodeSet(len(d.nodes)), by, now)
	defer m.release()
	if d.create != nil && (by.ID == "" || !d.create.admits(by, &m.scope)) {
		return ErrMayNotCreate
	}
	return d.checkCreation(&c)
}

// Invocation is a child that a definition may have.
type Invocation struct {
	Workflow string
	invoke   *invoke
}

// Invocations returns the children whose workflow stands in the definition, in document order.
func (d *Definition) Invocations() (all []Invocation) {
	for _, n := range d.nodes {
		for _, inv := range n.invoke {
			if inv.workflow != "" {
				all = append(all, Invocation{inv.workflow, inv})
			}
		}
	}
	return all
}

// ForeseeInvoke is MayInvoke before there is a child: it refuses what can never be.
func (d *Definition) ForeseeInvoke(by *Caller, inv Invocation, now time.Time) error {
	if d.CreateRight(by, now) == Denied {
		return ErrMayNotCreate
	}
	if inv.invoke.scxmlInvoke != nil {
		return nil // what it brings is computed
	}
	var c Creation
	open := false
	for _, part := range []struct {
		name   string
		given  *template
		to     *data.Value
		schema *schema.Schema
	}{{"svcPublic", inv.invoke.public, &c.Public, d.createPublic}, {"svcPrivate", inv.invoke.private, &c.Private, d.createPrivate}} {
		switch t := part.given; {
		case t == nil:
		case t.constant != nil:
			*part.to = t.constant
		case t.object && len(t.keys) > 0 && part.schema.IsNothing():
			return fmt.Errorf("on create %s: %w", part.name, ErrNotSettable)
		default:
			open = true
		}
	}
	if open {
		return nil
	}
	c.Now = now
	if d.CreateRight(by, now) == ByInstance {
		return d.checkCreation(&c) // NB: the condition may look at the parent
	}
	return d.MayInvoke(by, c)
}
