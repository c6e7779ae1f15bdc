package expr

// reading says which parts of a scope an expression reads.
type reading struct {
	public, private, event bool
	locals                 []string // variables of its own loops included
}

func readingOf(names []string) reading {
	var r reading
	for _, name := range names {
		switch name {
		case publicRoot:
			r.public = true
		case privateRoot:
			r.private = true
		case eventRoot:
			r.event = true
		case userRoot, instanceRoot, parentRoot, nowRoot, nodesRoot:
		default:
			r.locals = append(r.locals, name)
		}
	}
	return r
}

// size is how many bytes of the scope's data the expression reads at most.
func (r *reading) size(s *Scope) int {
	n := 0
	if r.public {
		n += len(s.Public)
	}
	if r.private {
		n += len(s.Private)
	}
	if r.event && s.Event != nil {
		n += len(s.Event.Data)
	}
	for _, name := range r.locals {
		n += len(s.Locals[name])
	}
	return n
}
