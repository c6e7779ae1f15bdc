package diagram

import (
	"strings"

	"troupe/statemachine"
	"troupe/statemachine/diagram/layout"
)

// scene is a chart with the places of everything that is drawn.
type scene struct {
	chart *statemachine.Chart
	words *phrases
	boxes []box // those of the nodes, and behind them the dots of the containers
	wires []*wire

	width, height int
}

type box struct {
	x, y          int // in the container; in the picture once all is placed
	width, height int
	cell          int // the width with the loops right of it
	header        int // the height of title and notes, of a container
	title         []string
	titleWidth    int
	notes         []shownNote

	loops             []*wire
	inner             []*wire   // wires that run inside it, see wire.inside
	passing           []passage // wires that cross its border
	portX             map[*wire]int
	topEnds, baseEnds int  // wires that end at its upper and lower border, from outside
	region            bool // of a parallel node
	framed            bool // a wire begins or ends at it
}

type shownNote struct {
	note
	lines []string
}

// Distances in boxes.
const (
	nodePadX    = 14
	nodePadY    = 9
	nodeWidth   = 72
	innerPad    = 18 // between the border of a container and what is in it
	dotSize     = 12
	historySize = 26
	loopReach   = 20 // how far a loop goes to the right
	loopHeight  = 24
	machineGap  = 28
	pagePad     = 24
	rowWidth    = 1400 // beyond which state machines go to a new row

	titleWidthMax = 190
	noteWidthMax  = 200
)

func newScene(c *statemachine.Chart, w *phrases) *scene {
	s := &scene{chart: c, words: w, boxes: make([]box, 2*len(c.Nodes))}
	s.makeWires()
	for i := range c.Nodes {
		s.orient(i)
	}
	s.countEnds()
	s.packMachines()
	s.settle()
	return s
}

func (s *scene) isContainer(i int) bool { return len(s.chart.Nodes[i].Children) > 0 }

func (s *scene) size(i int) {
	n, b := &s.chart.Nodes[i], &s.boxes[i]
	b.portX = map[*wire]int{}
	b.region = n.Parent >= 0 && s.chart.Nodes[n.Parent].Kind == statemachine.Parallel
	if n.Kind.IsHistory() {
		b.width, b.height = historySize, historySize
		b.cell = b.width
		return
	}
	s.write(i)
	switch {
	case !s.isContainer(i):
		s.sizeLeaf(i)
	case n.Kind == statemachine.Parallel:
		s.placeRegions(i)
	default:
		s.placeLayers(i)
	}
	s.placeLoops(i)
}

func (s *scene) write(i int) {
	n, b := &s.chart.Nodes[i], &s.boxes[i]
	f := nameFont
	switch {
	case n.Parent < 0:
		f = headFont
	case s.isContainer(i):
		f = titleFont
	}
	b.title = f.wrap(clean(nodeText(n)), titleWidthMax, 2)
	for _, text := range b.title {
		b.titleWidth = max(b.titleWidth, f.width(text))
	}
	b.header = 8 + len(b.title)*f.height()
	for _, of := range s.words.notes(n) {
		shown := shownNote{of, noteFont.wrap(clean(of.text), noteWidthMax, 2)}
		for _, text := range shown.lines {
			b.titleWidth = max(b.titleWidth, noteFont.width(text))
		}
		b.header += len(shown.lines) * noteFont.height()
		b.notes = append(b.notes, shown)
	}
	b.header += 6
}

func (s *scene) sizeLeaf(i int) {
	b := &s.boxes[i]
	b.width = max(nodeWidth, b.titleWidth+2*nodePadX, b.endsWidth())
	if s.chart.Nodes[i].Kind == statemachine.Final {
		b.width += 10
	}
	b.height = b.header - 14 + 2*nodePadY
	if len(b.notes) > 0 {
		b.height += 6
	}
}

func (b *box) endsWidth() int { return layout.MinWidth(max(b.topEnds, b.baseEnds)) }

// countEnds counts the wires at the top and at the bottom of each node. It follows orient.
func (s *scene) countEnds() {
	for _, w := range s.wires {
		if w.inside < 0 {
			continue
		}
		if from := &s.boxes[w.from]; int(w.from) != w.inside {
			if w.up && !w.across {
				from.topEnds++
			} else {
				from.baseEnds++
			}
		}
		if to := &s.boxes[w.to]; int(w.to) != w.inside {
			if w.up || w.across {
				to.baseEnds++
			} else {
				to.topEnds++
			}
		}
	}
}

func (s *scene) placeLoops(i int) {
	b := &s.boxes[i]
	b.cell = b.width
	if len(b.loops) == 0 {
		return
	}
	sum := 0
	for _, w := range b.loops {
		sum += loopRoom(w)
		if w.label != nil {
			b.cell = max(b.cell, b.width+loopReach+4+w.label.width)
		}
	}
	b.cell = max(b.cell, b.width+loopReach+4)
	b.height = max(b.height, sum+8)
	y := (b.height - sum) / 2
	for _, w := range b.loops {
		room := loopRoom(w)
		middle := y + room/2
		w.main = piece{container: i, points: []layout.Point{
			{X: b.width, Y: middle - loopHeight/2},
			{X: b.width + loopReach, Y: middle - loopHeight/2},
			{X: b.width + loopReach, Y: middle + loopHeight/2},
			{X: b.width, Y: middle + loopHeight/2},
		}}
		if w.label != nil {
			w.main.labelAt = layout.Point{X: b.width + loopReach + 2 + w.label.width/2, Y: middle}
		}
		y += room
	}
}

func loopRoom(w *wire) int {
	if w.label == nil {
		return loopHeight + 8
	}
	return max(loopHeight+8, w.label.height+4)
}

func (s *scene) packMachines() {
	x, y, row := 0, 0, 0
	for i := range s.chart.Nodes {
		if s.chart.Nodes[i].Parent >= 0 {
			continue
		}
		s.size(i)
		b := &s.boxes[i]
		if x > 0 && x+b.cell > rowWidth {
			x, y, row = 0, y+row+machineGap, 0
		}
		b.x, b.y = x, y
		x += b.cell + machineGap
		row = max(row, b.height)
		s.width, s.height = max(s.width, x-machineGap), max(s.height, y+b.height)
	}
}

func (s *scene) settle() {
	for i := range s.chart.Nodes {
		b := &s.boxes[i]
		if parent := s.chart.Nodes[i].Parent; parent >= 0 {
			b.x += s.boxes[parent].x
			b.y += s.boxes[parent].y
		}
		dot := &s.boxes[s.dot(i)]
		dot.x += b.x
		dot.y += b.y
	}
}

func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\r':
			return ' '
		case r < ' ' || r == 0x7F || r == 0xFFFE || r == 0xFFFF || r >= 0x80 && r < 0xA0:
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// placeRegions places the regions of a parallel node side by side, as high as the highest of them. Wires between
// them run in a strip below. A wire from the node itself into a region has its label in a row above them.
func (s *scene) placeRegions(i int) {
	b := &s.boxes[i]
	top, strip := b.header, 0
	for _, w := range b.inner {
		if int(w.from) == i {
			top += trackHeight(w)
		} else {
			strip += trackHeight(w)
		}
	}
	x, tallest := 0, 0
	for _, c := range s.chart.Nodes[i].Children {
		s.size(c)
		of := &s.boxes[c]
		of.x, of.y = x, top
		if !s.isContainer(c) { // NB: a leaf stands in its region
			of.x, of.y = x+innerPad, top+innerPad
			x += 2 * innerPad
		}
		x += of.cell
		tallest = max(tallest, of.height+2*(of.y-top))
	}
	for _, c := range s.chart.Nodes[i].Children {
		of := &s.boxes[c]
		if s.isContainer(c) {
			of.height = tallest
			continue
		}
		of.y = top + (tallest-of.height)/2
	}
	b.width = max(x, b.titleWidth+2*innerPad, b.endsWidth())
	for _, w := range b.inner {
		if w.label != nil {
			b.width = max(b.width, w.label.width+2*innerPad)
		}
	}
	s.wireRegions(i, top, top+tallest)
	b.height = top + tallest + strip
	if strip > 0 {
		b.height += innerPad
	}
}

// trackHeight is the room for a wire with its label beside the regions.
func trackHeight(w *wire) int {
	if w.label != nil {
		return w.label.height + 6
	}
	return 12
}

// wireRegions gives the wires their pieces in a parallel node whose regions stand between top and base.
func (s *scene) wireRegions(i, top, base int) {
	b := &s.boxes[i]
	taken := map[place][]int{}
	touch := func(w *wire, end place) (x int, item *box) {
		region := s.child(i, end)
		item = &s.boxes[region]
		if region != end {
			x = item.x + item.portX[w]
		} else {
			x = item.x + roomiest(taken[region], item.width)
		}
		taken[region] = append(taken[region], x-item.x)
		return x, item
	}
	for k := range b.passing {
		p := &b.passing[k]
		x, item := touch(p.wire, p.end())
		b.portX[p.wire] = x
		at := item.y
		if !p.atTop() {
			at = item.y + item.height
		}
		p.addPiece(piece{container: i, points: []layout.Point{{X: x, Y: at}}})
	}
	row, track := b.header, base+innerPad/2
	for _, w := range b.inner {
		height := trackHeight(w)
		within := func(x int) int {
			if w.label == nil {
				return x
			}
			return max(4+w.label.width/2, min(x, b.width-4-w.label.width/2))
		}
		switch {
		case int(w.from) == i:
			x, item := touch(w, w.to)
			w.main = piece{container: i, points: []layout.Point{{X: x, Y: item.y}}, fromTop: true, labelAt: layout.Point{X: within(x), Y: row + height/2}}
			row += height
		case int(w.to) == i:
			x, item := touch(w, w.from)
			w.main = piece{container: i, points: []layout.Point{{X: x, Y: item.y + item.height}}, toBase: true, labelAt: layout.Point{X: within(x), Y: track + height/2}}
			track += height
		default:
			from, source := touch(w, w.from)
			to, target := touch(w, w.to)
			y := track + height/2
			w.main = piece{container: i, labelAt: layout.Point{X: within((from + to) / 2), Y: y}, points: []layout.Point{
				{X: from, Y: source.y + source.height}, {X: from, Y: y}, {X: to, Y: y}, {X: to, Y: target.y + target.height},
			}}
			track += height
		}
	}
}

// roomiest is a place on a side of that width that is as far from those taken as can be.
func roomiest(taken []int, width int) int {
	best, most := width/2, -1
	for k := 1; k < 16; k++ {
		x := (width*k + 8) / 16
		nearest := width
		for _, t := range taken {
			nearest = min(nearest, max(t-x, x-t))
		}
		away := max(x-width/2, width/2-x)
		if score := nearest*4 - away; score > most {
			best, most = x, score
		}
	}
	return best
}
