package layout

import (
	"cmp"
	"slices"
)

type placement struct {
	g       *Graph
	ranks   []int // of the nodes
	rankMax int
	count   int // of layers

	vertices []vertex // those of the nodes come first, in their order
	links    []link
	// rows has the vertices of each layer, from the left to the right.
	rows [][]int
	// placeOf is where each vertex stands in its row, once that is ordered; -1 for one of the margin.
	placeOf []int
	chains  [][]int // the links of each edge, from the upper node to the lower one
	margin  []int   // vertices left of everything, see chain
}

// vertex is a node, or a place that an edge passes in a layer.
type vertex struct {
	layer, width, height int
	body                 int // Node.Body
	x                    int // of its left side
	label                bool
	bend                 bool // of an edge, with a label or without
	upper, lower         []int
}

type link struct {
	upper, lower int
	edge         int
	// upperX and lowerX are where it touches them, from their left sides; Anywhere until attach.
	upperX, lowerX int
}

// bendsMax bounds the places that edges get in layers. Beyond it the longest edges run left of everything, with a
// place in the first and in the last layer that they pass.
const bendsMax = 20_000

// chain gives each edge a place in each layer that it passes.
func (p *placement) chain() {
	g := p.g
	ofRank, ofLabels := p.layers()
	for i := range g.Nodes {
		n := &g.Nodes[i]
		p.vertices = append(p.vertices, vertex{layer: ofRank(p.ranks[i]), width: n.Width, height: n.Height, body: cmp.Or(n.Body, n.Width)})
	}
	marginal := p.longest()
	p.chains = make([][]int, len(g.Edges))
	for i := range g.Edges {
		e := &g.Edges[i]
		upper, lower := e.ends()
		labelAt := -1
		if e.LabelWidth > 0 {
			labelAt = ofLabels(p.labelRank(e))
		}
		from, to := p.vertices[upper].layer, p.vertices[lower].layer
		last := upper
		for layer := from + 1; layer < to; layer++ {
			if marginal[i] && layer > from+1 && layer < to-1 && layer != labelAt {
				continue
			}
			v := vertex{layer: layer, bend: true}
			if layer == labelAt {
				v.width, v.height, v.label = e.LabelWidth, e.LabelHeight, true
			}
			p.vertices = append(p.vertices, v)
			next := len(p.vertices) - 1
			if marginal[i] {
				p.margin = append(p.margin, next)
			}
			p.link(i, last, next)
			last = next
		}
		p.link(i, last, lower)
		first, end := &p.links[p.chains[i][0]], &p.links[p.chains[i][len(p.chains[i])-1]]
		first.upperX, end.lowerX = e.FromX, e.ToX
		if e.Up {
			first.upperX, end.lowerX = e.ToX, e.FromX
		}
	}
	p.rows = make([][]int, p.count)
	outside := map[int]bool{}
	for _, v := range p.margin {
		outside[v] = true
	}
	for v := range p.vertices {
		if !outside[v] {
			p.rows[p.vertices[v].layer] = append(p.rows[p.vertices[v].layer], v)
		}
	}
}

func (p *placement) link(edge, upper, lower int) {
	l := link{upper: upper, lower: lower, edge: edge, upperX: Anywhere, lowerX: Anywhere}
	if p.vertices[upper].bend {
		l.upperX = p.vertices[upper].width / 2
	}
	if p.vertices[lower].bend {
		l.lowerX = p.vertices[lower].width / 2
	}
	at := len(p.links)
	p.links = append(p.links, l)
	p.chains[edge] = append(p.chains[edge], at)
	p.vertices[upper].lower = append(p.vertices[upper].lower, at)
	p.vertices[lower].upper = append(p.vertices[lower].upper, at)
}

// longest reports for each edge whether it is one of the longest, which exceed bendsMax.
func (p *placement) longest() []bool {
	marginal := make([]bool, len(p.g.Edges))
	span := func(i int) int {
		upper, lower := p.g.Edges[i].ends()
		return p.vertices[lower].layer - p.vertices[upper].layer
	}
	sum := 0
	edges := make([]int, len(marginal))
	for i := range edges {
		edges[i] = i
		sum += span(i)
	}
	if sum <= bendsMax {
		return marginal
	}
	slices.SortStableFunc(edges, func(a, b int) int { return span(b) - span(a) })
	for _, i := range edges {
		if sum <= bendsMax || span(i) < 8 {
			break
		}
		marginal[i] = true
		sum -= span(i)
	}
	return marginal
}
