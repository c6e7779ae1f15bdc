package clause

import (
	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// KeyPath is the path of the index that every workflow with keys has.
var KeyPath = data.Path{"key"}

// notInKeys are the variables that a key may not read, with the reason.
var notInKeys = map[string]string{
	"svcPrivate": "lists show keys",
	"event":      "a key is made when the instance is created",
	"user":       "the same data have the same key, no matter who sends them",
	"now":        "the same data have the same key at any time",
	"instance":   "the key decides the id of the instance",
	"parent":     "children have no key",
}

// Key reads what makes the keys of instances.
func (b *Reader) Key(n *document.Node) {
	if n == nil {
		return
	}
	p := b.Prose(n)
	made := false
	for _, part := range p.Parts {
		if part.Program == nil {
			continue
		}
		made = true
		for _, variable := range ReservedVariables {
			if reason, no := notInKeys[variable]; no && part.Program.Reads(variable) {
				b.Add(n, "a key may not read %s: %s", variable, reason)
			}
		}
	}
	if !made && n.Kind == document.String && !b.Stored {
		b.Advise(n, "write an expression, such as ${svcPublic.orderNumber}", "the key is the same for all instances")
	}
	b.Definition.Key = p
	b.Definition.Indexes = append(b.Definition.Indexes, KeyPath)
}
