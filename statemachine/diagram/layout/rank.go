package layout

// rank gives each node a layer: the longest path from a node that no edge leads to. What stands at the top only
// because nothing leads to it comes down to what it leads to.
func (p *placement) rank() {
	g := p.g
	n := len(g.Nodes)
	p.ranks = make([]int, n)
	below := make([][]int, n)
	waits := make([]int, n)
	for i := range g.Edges {
		upper, lower := g.Edges[i].ends()
		if g.Nodes[upper].Pin == Free && g.Nodes[lower].Pin == Free {
			below[upper] = append(below[upper], lower)
			waits[lower]++
		}
	}
	hasUpper := make([]bool, n)
	var sorted []int
	for i := range n {
		hasUpper[i] = waits[i] > 0
		if waits[i] == 0 && g.Nodes[i].Pin == Free {
			sorted = append(sorted, i)
		}
	}
	for k := 0; k < len(sorted); k++ {
		i := sorted[k]
		for _, lower := range below[i] {
			p.ranks[lower] = max(p.ranks[lower], p.ranks[i]+1)
			if waits[lower]--; waits[lower] == 0 {
				sorted = append(sorted, lower)
			}
		}
	}
	for k := len(sorted) - 1; k >= 0; k-- {
		i := sorted[k]
		if hasUpper[i] || len(below[i]) == 0 {
			continue
		}
		nearest := p.ranks[below[i][0]]
		for _, lower := range below[i] {
			nearest = min(nearest, p.ranks[lower])
		}
		p.ranks[i] = nearest - 1
	}
	for i := range n {
		p.rankMax = max(p.rankMax, p.ranks[i])
	}
	for i := range n {
		switch g.Nodes[i].Pin {
		case Top:
			p.ranks[i] = -1
		case Bottom:
			p.ranks[i] = p.rankMax + 1
		}
	}
}

// ends returns the node that stands above, and the one below.
func (e *Edge) ends() (upper, lower int) {
	if e.Up {
		return e.To, e.From
	}
	return e.From, e.To
}

// layers gives each rank a layer, and each gap between two ranks that has labels one more. It returns the layer of a
// rank and of the labels below a rank.
func (p *placement) layers() (ofRank, ofLabels func(rank int) int) {
	labelled := make([]bool, p.rankMax+3)
	for i := range p.g.Edges {
		if e := &p.g.Edges[i]; e.LabelWidth > 0 {
			labelled[p.labelRank(e)+1] = true
		}
	}
	first := make([]int, p.rankMax+4) // the layer of each rank, from -1
	for r := 1; r < len(first); r++ {
		first[r] = first[r-1] + 1
		if labelled[r-1] {
			first[r]++
		}
	}
	p.count = first[p.rankMax+2] + 1
	return func(rank int) int { return first[rank+1] }, func(rank int) int { return first[rank+1] + 1 }
}

// labelRank is the rank below which the label of an edge stands: close to where the edge comes from.
func (p *placement) labelRank(e *Edge) int {
	if e.Up {
		return p.ranks[e.From] - 1
	}
	return p.ranks[e.From]
}
