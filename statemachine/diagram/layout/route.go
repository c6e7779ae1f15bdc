package layout

import "slices"

type piece struct {
	link, from, to int // from above, to below
	track          int
}

func (a *piece) left() int  { return min(a.from, a.to) }
func (a *piece) right() int { return max(a.from, a.to) }

func (p *placement) route() {
	byLayer := make([][]piece, p.count)
	for i := range p.links {
		l := &p.links[i]
		if from, to := p.upperEnd(l), p.lowerEnd(l); from != to {
			layer := p.vertices[l.upper].layer
			if p.vertices[l.lower].layer > layer+1 {
				layer = p.vertices[l.lower].layer - 1
			}
			byLayer[layer] = append(byLayer[layer], piece{link: i, from: from, to: to})
		}
	}
	trackY := make([]int, len(p.links))
	top, height := make([]int, p.count), make([]int, p.count)
	y := 0
	for layer := range p.count {
		for _, v := range p.rows[layer] {
			height[layer] = max(height[layer], p.vertices[v].height)
		}
		for _, v := range p.margin {
			if p.vertices[v].layer == layer {
				height[layer] = max(height[layer], p.vertices[v].height)
			}
		}
		top[layer] = y
		y += height[layer]
		if layer+1 == p.count {
			break
		}
		above, below := p.pads(layer)
		tracks := assignTracks(byLayer[layer])
		for _, a := range byLayer[layer] {
			trackY[a.link] = y + above + a.track*trackGap
		}
		if tracks == 0 && (len(p.rows[layer]) == 0 || len(p.rows[layer+1]) == 0) {
			continue // nothing is pinned there
		}
		if tracks == 0 {
			y += max(flatGap/2, (above+below)*3/4)
			continue
		}
		y += above + (tracks-1)*trackGap + below
	}
	p.g.Height = y
	p.finish(top, height, trackY)
}

func (p *placement) pads(layer int) (above, below int) {
	isNarrow := func(layer int) bool {
		return !slices.ContainsFunc(p.rows[layer], func(v int) bool { return !p.vertices[v].bend && p.vertices[v].height > 0 })
	}
	above, below = rankGap, rankGap
	if isNarrow(layer) {
		above = rankGap / 2
	}
	if isNarrow(layer + 1) {
		below = rankGap / 2
	}
	return above, below
}

// assignTracks gives pieces that would touch each other different tracks, and returns their number. Pieces that go to
// the right come first, the rightmost at the top, so that neighbours do not cross; then those that go to the left.
func assignTracks(pieces []piece) (tracks int) {
	slices.SortStableFunc(pieces, func(a, b piece) int {
		switch rightA, rightB := a.to > a.from, b.to > b.from; {
		case rightA && rightB:
			return b.from - a.from
		case rightA:
			return -1
		case rightB:
			return 1
		}
		return a.from - b.from
	})
	for i := range pieces {
		a := &pieces[i]
		for k := range i {
			b := &pieces[k]
			if a.left() <= b.right()+lineGap/2 && b.left() <= a.right()+lineGap/2 {
				a.track = max(a.track, b.track+1)
			}
		}
		tracks = max(tracks, a.track+1)
	}
	return tracks
}

func (p *placement) finish(top, height, trackY []int) {
	g := p.g
	for i := range g.Nodes {
		v := &p.vertices[i]
		g.Nodes[i].X, g.Nodes[i].Y = v.x, top[v.layer]+(height[v.layer]-v.height)/2
		g.Width = max(g.Width, v.x+v.width)
	}
	for i := range g.Edges {
		e := &g.Edges[i]
		for _, at := range p.chains[i] {
			l := &p.links[at]
			upper, lower := &p.vertices[l.upper], &p.vertices[l.lower]
			from, to := p.upperEnd(l), p.lowerEnd(l)
			if lower.label {
				e.Label = Point{lower.x + lower.width/2, top[lower.layer] + height[lower.layer]/2}
			}
			e.Points = append(e.Points, Point{from, top[upper.layer] + (height[upper.layer]+upper.height)/2})
			if from != to {
				e.Points = append(e.Points, Point{from, trackY[at]}, Point{to, trackY[at]})
			}
			e.Points = append(e.Points, Point{to, top[lower.layer] + (height[lower.layer]-lower.height)/2})
			g.Width = max(g.Width, from, to)
			if lower.label {
				g.Width = max(g.Width, lower.x+lower.width)
			}
		}
		e.Points = Simplify(e.Points)
		if e.Up {
			slices.Reverse(e.Points)
		}
	}
}

// Simplify leaves out points that lie between their neighbours on one line.
func Simplify(points []Point) []Point {
	var out []Point
	for _, q := range points {
		for len(out) > 0 && out[len(out)-1] == q {
			out = out[:len(out)-1]
		}
		if k := len(out); k > 1 && (out[k-1].X == q.X && out[k-2].X == q.X || out[k-1].Y == q.Y && out[k-2].Y == q.Y) {
			out = out[:k-1]
		}
		out = append(out, q)
	}
	return out
}
