package diagram

import (
	"slices"

	"troupe/statemachine"
	"troupe/statemachine/diagram/layout"
)

// items are what stands in a container: its children, and the dot of a compound one.
func (s *scene) items(i int) []place {
	var items []place
	if n := &s.chart.Nodes[i]; n.Kind == statemachine.Compound && len(n.Initial) > 0 {
		items = append(items, s.dot(i))
	}
	for _, c := range s.chart.Nodes[i].Children {
		items = append(items, place(c))
	}
	return items
}

// orient decides which wires of a compound node lead upwards. It needs no sizes, and the borders that wires cross
// depend on it, so it comes before anything is placed.
func (s *scene) orient(i int) {
	if !s.isContainer(i) || s.chart.Nodes[i].Kind == statemachine.Parallel {
		return
	}
	items := s.items(i)
	g := layout.Graph{Nodes: make([]layout.Node, len(items))}
	at := indexOf(items)
	var wires []*wire
	for _, w := range s.boxes[i].inner {
		if int(w.from) != i && int(w.to) != i {
			wires = append(wires, w)
			g.Edges = append(g.Edges, layout.Edge{From: at[s.child(i, w.from)], To: at[s.child(i, w.to)]})
		}
	}
	g.Orient([]int{0}) // NB: the dot, when there is one
	for k, w := range wires {
		w.up = g.Edges[k].Up
	}
}

func indexOf(items []place) map[place]int {
	at := make(map[place]int, len(items))
	for k, p := range items {
		at[p] = k
	}
	return at
}

func (s *scene) placeLayers(i int) {
	b := &s.boxes[i]
	items := s.items(i)
	at := indexOf(items)
	g := &layout.Graph{}
	for _, p := range items {
		if int(p) >= len(s.chart.Nodes) {
			s.boxes[p] = box{width: dotSize, height: dotSize, cell: dotSize}
		} else {
			s.size(int(p))
		}
		of := &s.boxes[p]
		g.Nodes = append(g.Nodes, layout.Node{Width: of.cell, Height: of.height, Body: of.width})
	}
	pin := func(side layout.Pin) int {
		g.Nodes = append(g.Nodes, layout.Node{Pin: side})
		return len(g.Nodes) - 1
	}
	ports := make([]int, len(b.passing)) // the nodes of g that they are
	for k := range b.passing {
		p := &b.passing[k]
		side := layout.Bottom
		if p.atTop() {
			side = layout.Top
		}
		ports[k] = pin(side)
		item := s.child(i, p.end())
		e := layout.Edge{From: at[item], To: ports[k], FromX: s.touch(item, p.wire, p.end()), ToX: layout.Anywhere}
		if !p.isSource {
			e.From, e.To, e.FromX, e.ToX = e.To, e.From, e.ToX, e.FromX
		}
		g.Edges = append(g.Edges, e)
	}
	for _, w := range b.inner {
		g.Edges = append(g.Edges, s.innerEdge(i, w, at, pin))
	}
	for k := range g.Edges {
		e := &g.Edges[k]
		e.Up = g.Nodes[e.From].Pin == layout.Bottom || g.Nodes[e.To].Pin == layout.Top
		if k >= len(ports) {
			e.Up = e.Up || b.inner[k-len(ports)].up
		}
	}
	titleEnd := innerPad + b.titleWidth + 10
	g.TopMin = max(0, titleEnd-innerPad)
	g.Place()
	b.width = max(g.Width+2*innerPad, titleEnd, b.endsWidth())
	shift := layout.Point{X: (b.width - g.Width) / 2, Y: b.header + innerPad/3}
	b.height = shift.Y + g.Height + innerPad
	for k, p := range items {
		s.boxes[p].x, s.boxes[p].y = g.Nodes[k].X+shift.X, g.Nodes[k].Y+shift.Y
	}
	s.takePieces(i, g, shift, ports)
}

// innerEdge is the edge of a wire that runs inside container i: between two of its items, or between one and its
// border, where it begins or ends.
func (s *scene) innerEdge(i int, w *wire, at map[place]int, pin func(layout.Pin) int) layout.Edge {
	e := layout.Edge{FromX: layout.Anywhere, ToX: layout.Anywhere}
	if w.label != nil {
		e.LabelWidth, e.LabelHeight = w.label.width, w.label.height
	}
	if int(w.from) == i {
		e.From = pin(layout.Top)
	} else {
		item := s.child(i, w.from)
		e.From, e.FromX = at[item], s.touch(item, w, w.from)
	}
	if int(w.to) == i {
		e.To = pin(layout.Bottom)
	} else {
		item := s.child(i, w.to)
		e.To, e.ToX = at[item], s.touch(item, w, w.to)
	}
	return e
}

// touch is where a wire touches an item that has its end: where it crosses the item's border, or anywhere when the
// item itself is the end.
func (s *scene) touch(item place, w *wire, end place) int {
	if item == end {
		return layout.Anywhere
	}
	return s.boxes[item].portX[w]
}

func (s *scene) takePieces(i int, g *layout.Graph, shift layout.Point, ports []int) {
	b := &s.boxes[i]
	moved := func(points []layout.Point) []layout.Point {
		points = slices.Clone(points)
		for k := range points {
			points[k].X += shift.X
			points[k].Y += shift.Y
		}
		return points
	}
	for k := range b.passing {
		p := &b.passing[k]
		of := piece{container: i, points: moved(g.Edges[k].Points)}
		b.portX[p.wire] = g.Nodes[ports[k]].X + shift.X
		p.addPiece(of)
	}
	for k, w := range b.inner {
		e := &g.Edges[len(b.passing)+k]
		w.main = piece{
			container: i, points: moved(e.Points), fromTop: int(w.from) == i, toBase: int(w.to) == i,
			labelAt: layout.Point{X: e.Label.X + shift.X, Y: e.Label.Y + shift.Y},
		}
	}
}

// addPiece adds what the wire has in a container whose border it crosses.
func (p *passage) addPiece(of piece) {
	switch {
	case p.isSource && p.atTop():
		of.toTop = true
	case p.isSource:
		of.toBase = true
	case p.atTop():
		of.fromTop = true
	default:
		of.fromBase = true
	}
	if p.isSource {
		p.source = append(p.source, of)
	} else {
		p.target = append(p.target, of)
	}
}
