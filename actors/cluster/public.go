package cluster

import "slices"

// Contract is the status as programs see it: its fields are a contract. What it leaves out is for people.
func (s Status) Contract() Status {
	s.Nodes = slices.Clone(s.Nodes)
	for i := range s.Nodes {
		s.Nodes[i].Leaving, s.Nodes[i].Full = false, false
	}
	return s
}

// Public is what everybody may see who can reach a node: all but where the nodes listen.
func (s Status) Public() Status {
	s = s.Contract()
	for i := range s.Nodes {
		s.Nodes[i].Address = ""
	}
	return s
}
