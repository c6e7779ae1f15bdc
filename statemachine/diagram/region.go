package diagram

import "troupe/statemachine/diagram/layout"

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
