package layout

// Graph is what Place works on. Indexes name nodes and edges.
type Graph struct {
	Nodes []Node
	Edges []Edge
	// TopMin is the least X of a node that is pinned to the top: left of it stands a title.
	TopMin int

	// Width and Height are set by Place. All places lie in them.
	Width, Height int
}

// Pin says where a node must stand.
type Pin uint8

// The pins of nodes.
const (
	Free   Pin = iota // in a layer
	Top               // on the border at the top: where edges come from outside
	Bottom            // on the border at the bottom
)

// Node is a box, or a point of the border.
type Node struct {
	Width, Height int
	Pin           Pin
	// Body is the width, from the left, of the part that edges may touch; 0: all of it.
	Body int

	// X and Y are set by Place: the corner at the top left.
	X, Y int
}

// Anywhere is the FromX or ToX of an edge that may touch the whole side of its node.
const Anywhere = -1

// Edge leads from one node to another one.
type Edge struct {
	From, To int
	// Up says that From stands below To. The edge then leaves at the top of From and comes in at the bottom of To;
	// otherwise it leaves at the bottom and comes in at the top.
	Up bool
	// LabelWidth and LabelHeight are 0 for an edge without a label.
	LabelWidth, LabelHeight int
	// FromX and ToX are where the edge touches its nodes, from their left sides; or Anywhere.
	FromX, ToX int

	// Points is set by Place: the bends of the edge with its ends. All pieces are horizontal or vertical.
	Points []Point
	// Label is set by Place: the centre of the label.
	Label Point
}

// Point is a place in the graph.
type Point struct{ X, Y int }

// Distances between what stands in a layer, and in the channels between layers.
const (
	nodeGap  = 36 // between two nodes
	labelGap = 14 // between a label and anything
	lineGap  = 14 // between two edges
	endGap   = 14 // between two ends of edges at a node
	cornerIn = 12 // between the corner of a node and the end of an edge
	trackGap = 10 // between two horizontal pieces
	rankGap  = 20 // above and below the horizontal pieces of a channel
	flatGap  = 26 // a channel without horizontal pieces
)

// MinWidth is the width that a node needs for that many ends of edges at one side.
func MinWidth(ends int) int { return 2*cornerIn + max(0, ends-1)*endGap }

// Orient sets Up of the edges so that no others form a cycle. It searches in depth from the roots and then from the
// other nodes, in order: an edge back to a node on the way is one that leads upwards.
func (g *Graph) Orient(roots []int) {
	out := make([][]int, len(g.Nodes))
	for i := range g.Edges {
		e := &g.Edges[i]
		e.Up = g.Nodes[e.From].Pin == Bottom || g.Nodes[e.To].Pin == Top
		if g.Nodes[e.From].Pin == Free && g.Nodes[e.To].Pin == Free {
			out[e.From] = append(out[e.From], i)
		}
	}
	const (
		unseen = iota
		onTheWay
		left
	)
	state := make([]uint8, len(g.Nodes))
	var visit func(n int)
	visit = func(n int) {
		state[n] = onTheWay
		for _, i := range out[n] {
			e := &g.Edges[i]
			switch state[e.To] {
			case unseen:
				visit(e.To)
			case onTheWay:
				e.Up = true
			}
		}
		state[n] = left
	}
	for _, n := range roots {
		if state[n] == unseen {
			visit(n)
		}
	}
	for n := range g.Nodes {
		if state[n] == unseen && g.Nodes[n].Pin == Free {
			visit(n)
		}
	}
}

// Place sets the places of nodes, edges and labels. Up of the edges must be as Orient leaves it.
func (g *Graph) Place() {
	p := &placement{g: g}
	p.rank()
	p.chain()
	p.order()
	p.spread()
	p.attach()
	p.route()
}

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

func (e *Edge) ends() (upper, lower int) {
	if e.Up {
		return e.To, e.From
	}
	return e.From, e.To
}

// layers gives each rank a layer, and each gap between two ranks that has labels one more.
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
