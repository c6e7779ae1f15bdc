package diagram

import (
	"slices"

	"troupe/statemachine"
	"troupe/statemachine/diagram/layout"
)

// place is what a wire joins: a node of the chart, or the dot before the initial states of a compound node.
type place int

// wire is one line of the picture: a transition to one of its targets, an initial arrow, or the default of a history
// node.
type wire struct {
	from, to place
	// node and transition say which transition it is; transition is -1 for others.
	node, transition int
	label            *label // of the first target; nil for others
	inside           int    // the container that both ends are in, or that one end is; -1 for a loop
	up               bool   // it leads upwards there
	across           bool   // it leads from one region to another below both

	// source, main and target are its pieces: from the node outwards, in inside, and from outside to the node, the
	// innermost last but in reverse until it is drawn.
	source, target []piece
	main           piece
}

type piece struct {
	container        int
	points           []layout.Point
	fromTop, toTop   bool // it begins, ends at the upper border
	fromBase, toBase bool // at the lower one
	labelAt          layout.Point
}

type label struct {
	lines         []line
	full          string
	width, height int
}

type line struct {
	text  string
	class string
}

var (
	nameFont  = font{size: 130}
	titleFont = font{size: 130, bold: true}
	headFont  = font{size: 150, bold: true}
	eventFont = font{size: 115, bold: true}
	noteFont  = font{size: 110}
)

const labelWidthMax = 190

// newLabel lays out the text of a transition; nil when there is nothing to say.
func (s *scene) newLabel(n *statemachine.ChartNode, k int) *label {
	l := &label{full: s.words.full(n, k)}
	if l.full == "" {
		return nil
	}
	if trigger := s.words.trigger(&n.Transitions[k]); trigger != "" {
		class := "event"
		if n.Transitions[k].Trigger != statemachine.OnEvent {
			class = "timer"
		}
		for _, text := range eventFont.wrap(clean(trigger), labelWidthMax, 2) {
			l.add(line{text, class}, eventFont)
		}
	}
	if guard := s.words.guard(n, k); guard != "" {
		for _, text := range noteFont.wrap("["+clean(guard)+"]", labelWidthMax, 2) {
			l.add(line{text, "guard"}, noteFont)
		}
	}
	l.width += 10
	l.height += 4
	return l
}

func (l *label) add(of line, f font) {
	l.lines = append(l.lines, of)
	l.width = max(l.width, f.width(of.text))
	l.height += f.height()
}

func (s *scene) makeWires() {
	for i := range s.chart.Nodes {
		n := &s.chart.Nodes[i]
		if n.Kind == statemachine.Compound {
			for _, to := range n.Initial {
				s.addWire(&wire{from: s.dot(i), to: place(to), node: i, transition: -1})
			}
		}
		for _, to := range n.Default {
			if to == i {
				continue // NB: the default entry of its parent, in a detour
			}
			s.addWire(&wire{from: place(i), to: place(to), node: i, transition: -1})
		}
		for k := range n.Transitions {
			for j, to := range n.Transitions[k].Targets {
				w := &wire{from: place(i), to: place(to), node: i, transition: k}
				if j == 0 {
					w.label = s.newLabel(n, k)
				}
				s.addWire(w)
			}
		}
	}
}

func (s *scene) dot(container int) place { return place(len(s.chart.Nodes) + container) }

func (s *scene) parent(p place) int {
	if int(p) >= len(s.chart.Nodes) {
		return int(p) - len(s.chart.Nodes)
	}
	return s.chart.Nodes[p].Parent
}

func (s *scene) path(p place) []place {
	path := []place{p}
	for c := s.parent(p); c >= 0; c = s.chart.Nodes[c].Parent {
		path = append(path, place(c))
	}
	return path
}

func (s *scene) addWire(w *wire) {
	s.wires = append(s.wires, w)
	s.boxes[w.from].framed, s.boxes[w.to].framed = true, true
	if w.from == w.to {
		w.inside = -1
		s.boxes[w.from].loops = append(s.boxes[w.from].loops, w)
		return
	}
	from, to := s.path(w.from), s.path(w.to)
	a, b := len(from)-1, len(to)-1
	for a > 0 && b > 0 && from[a-1] == to[b-1] {
		a--
		b--
	}
	// NB: from[a] and to[b] are the innermost container that is in both, which may be an end itself.
	w.inside = int(from[a])
	s.boxes[w.inside].inner = append(s.boxes[w.inside].inner, w)
	w.across = s.chart.Nodes[w.inside].Kind == statemachine.Parallel && a > 0 && b > 0
	if a > 1 {
		for _, c := range from[1:a] {
			s.boxes[c].passing = append(s.boxes[c].passing, passage{w, true})
		}
	}
	if b > 1 {
		for _, c := range to[1:b] {
			s.boxes[c].passing = append(s.boxes[c].passing, passage{w, false})
		}
	}
}

type passage struct {
	*wire
	isSource bool // its source is in the container
}

func (p *passage) end() place {
	if p.isSource {
		return p.from
	}
	return p.to
}

func (p *passage) atTop() bool {
	switch {
	case p.across:
		return false
	case p.isSource:
		return p.up
	}
	return !p.up
}

// child is the item of a container that has a place, or is it.
func (s *scene) child(container int, p place) place {
	for s.parent(p) != container {
		p = place(s.parent(p))
	}
	return p
}

func (s *scene) pointsOf(w *wire) []layout.Point {
	pieces := slices.Clone(w.source)
	if w.main.points != nil {
		pieces = append(pieces, w.main)
	}
	for _, p := range slices.Backward(w.target) {
		pieces = append(pieces, p)
	}
	var points []layout.Point
	for i := range pieces {
		p := &pieces[i]
		of := &s.boxes[p.container]
		all := slices.Clone(p.points)
		first, last := all[0], all[len(all)-1]
		switch {
		case p.fromTop:
			all = slices.Insert(all, 0, layout.Point{X: first.X, Y: 0})
		case p.fromBase:
			all = slices.Insert(all, 0, layout.Point{X: first.X, Y: of.height})
		}
		switch {
		case p.toTop:
			all = append(all, layout.Point{X: last.X, Y: 0})
		case p.toBase:
			all = append(all, layout.Point{X: last.X, Y: of.height})
		}
		for _, q := range all {
			points = append(points, layout.Point{X: q.X + of.x, Y: q.Y + of.y})
		}
	}
	points = layout.Simplify(points)
	s.meetCircle(w.from, points, 0)
	s.meetCircle(w.to, points, len(points)-1)
	return points
}

func (s *scene) meetCircle(p place, points []layout.Point, at int) {
	if int(p) >= len(s.chart.Nodes) || !s.chart.Nodes[p].Kind.IsHistory() {
		return
	}
	const radius = historySize / 2
	b, end := &s.boxes[p], &points[at]
	by, away := 0, end.X-(b.x+radius)
	for by < radius && (radius-by)*(radius-by)+away*away > radius*radius {
		by++
	}
	if end.Y > b.y+radius {
		by = -by
	}
	end.Y += by
}
