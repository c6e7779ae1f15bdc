package filter

// Nodes returns the nodes that Positions names alone: an instance that matches
// is in each of them.
func (f *Filter) Nodes() (nodes []string) {
	for _, p := range f.Positions() {
		if len(p.Nodes) == 1 {
			nodes = append(nodes, p.Nodes[0])
		}
	}
	return nodes
}
