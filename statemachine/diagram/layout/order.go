package layout

import (
	"cmp"
	"slices"
)

// sweepsMax is how often the layers are ordered from the top to the bottom and back. Most graphs are done after a few.
const sweepsMax = 12

// order orders the layers by the barycentres of their neighbours, and keeps the order with the fewest crossings.
func (p *placement) order() {
	p.begin()
	best, fewest := p.copyRows(), p.crossings()
	worse := 0
	for sweep := 0; sweep < sweepsMax && fewest > 0 && worse < 4; sweep++ {
		if sweep%2 == 0 {
			for layer := 1; layer < len(p.rows); layer++ {
				p.sortRow(layer, true)
			}
		} else {
			for layer := len(p.rows) - 2; layer >= 0; layer-- {
				p.sortRow(layer, false)
			}
		}
		worse++
		if now := p.crossings(); now < fewest {
			best, fewest, worse = p.copyRows(), now, 0
		}
	}
	p.rows = best
	p.placeOf = make([]int, len(p.vertices))
	for _, v := range p.margin {
		p.placeOf[v] = -1
	}
	for _, row := range p.rows {
		for i, v := range row {
			p.placeOf[v] = i
		}
	}
}

func (p *placement) copyRows() [][]int {
	rows := make([][]int, len(p.rows))
	for i, row := range p.rows {
		rows[i] = slices.Clone(row)
	}
	return rows
}

// begin orders each layer as a search in depth from the top meets it.
func (p *placement) begin() {
	placed := make([]bool, len(p.vertices))
	for _, v := range p.margin {
		placed[v] = true
	}
	rows := make([][]int, len(p.rows))
	var visit func(v int)
	visit = func(v int) {
		if placed[v] {
			return
		}
		placed[v] = true
		layer := p.vertices[v].layer
		rows[layer] = append(rows[layer], v)
		for _, l := range p.vertices[v].lower {
			visit(p.links[l].lower)
		}
	}
	for _, row := range p.rows {
		for _, v := range row {
			visit(v)
		}
	}
	p.rows = rows
}

// sortRow orders a layer by the mean place of the neighbours above or below. What has none stays where it is.
func (p *placement) sortRow(layer int, byUpper bool) {
	neighbours := layer + 1
	if byUpper {
		neighbours = layer - 1
	}
	at := p.placesIn(neighbours)
	row := p.rows[layer]
	const scale = 1 << 12
	type weighed struct{ v, mean int }
	var moving []weighed
	var free []int // the places of those that move
	for i, v := range row {
		links := p.vertices[v].lower
		if byUpper {
			links = p.vertices[v].upper
		}
		sum, count := 0, 0
		for _, l := range links {
			other := p.links[l].lower
			if byUpper {
				other = p.links[l].upper
			}
			if place, ok := at[other]; ok {
				sum += place*scale + p.touch(l, byUpper)
				count++
			}
		}
		if count == 0 {
			continue
		}
		moving = append(moving, weighed{v, sum / count})
		free = append(free, i)
	}
	slices.SortStableFunc(moving, func(a, b weighed) int { return a.mean - b.mean })
	for k, m := range moving {
		row[free[k]] = m.v
	}
}

func (p *placement) touch(l int, atUpper bool) int {
	x, v := p.links[l].lowerX, p.links[l].lower
	if atUpper {
		x, v = p.links[l].upperX, p.links[l].upper
	}
	if width := p.vertices[v].width; x != Anywhere && width > 0 {
		return min(x, width) * (1<<12 - 1) / width
	}
	return 1 << 11
}

func (p *placement) placesIn(layer int) map[int]int {
	at := make(map[int]int, len(p.rows[layer]))
	for i, v := range p.rows[layer] {
		at[v] = i
	}
	return at
}

// crossings counts the pairs of links that cross, with a tree of sums for each pair of layers.
func (p *placement) crossings() (count int) {
	for layer := 0; layer+1 < len(p.rows); layer++ {
		at := p.placesIn(layer + 1)
		tree := make([]int, len(at)+1)
		seen := 0
		for _, v := range p.rows[layer] {
			var ends []int
			for _, l := range p.vertices[v].lower {
				if place, ok := at[p.links[l].lower]; ok {
					ends = append(ends, place)
				}
			}
			for _, end := range ends { // those before that end further right
				notRight := 0
				for i := end + 1; i > 0; i -= i & -i {
					notRight += tree[i]
				}
				count += seen - notRight
			}
			for _, end := range ends {
				for i := end + 1; i < len(tree); i += i & -i {
					tree[i]++
				}
				seen++
			}
		}
	}
	return count
}

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
