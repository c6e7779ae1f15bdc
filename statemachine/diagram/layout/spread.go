package layout

import "slices"

// wish is where something wants to stand, and how much.
type wish struct{ x, weight int }

// settle returns the places closest to the wishes, by the sum of weighted squares, at which each stands at least its
// gap right of the one before, and all between low and high; gaps[0] is not used. Neighbours that would come too close
// are pooled into a block, which stands at the mean of their wishes (pool adjacent violators).
func settle(wishes []wish, gaps []int, low, high int) []int {
	type block struct{ sum, weight, first int }
	shift := make([]int, len(wishes)) // what the gaps before it add up to
	for i := 1; i < len(wishes); i++ {
		shift[i] = shift[i-1] + gaps[i]
	}
	var blocks []block
	for i, w := range wishes {
		blocks = append(blocks, block{(w.x - shift[i]) * w.weight, w.weight, i})
		for len(blocks) > 1 {
			a, b := &blocks[len(blocks)-2], blocks[len(blocks)-1]
			if a.sum*b.weight < b.sum*a.weight {
				break
			}
			a.sum += b.sum
			a.weight += b.weight
			blocks = blocks[:len(blocks)-1]
		}
	}
	places := make([]int, len(wishes))
	for k, b := range blocks {
		end := len(wishes)
		if k+1 < len(blocks) {
			end = blocks[k+1].first
		}
		at := floorDiv(b.sum, b.weight)
		if len(shift) > 0 {
			at = max(min(at, high-shift[len(shift)-1]), low)
		}
		for i := b.first; i < end; i++ {
			places[i] = at + shift[i]
		}
	}
	return places
}

func floorDiv(a, b int) int {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

const unbounded = 1 << 40

func (p *placement) gap(left, right int) int {
	a, b := &p.vertices[left], &p.vertices[right]
	switch {
	case a.label || b.label:
		return labelGap
	case a.width == 0 && b.width == 0:
		return lineGap
	case a.width == 0 || b.width == 0:
		return lineGap + 6
	}
	return nodeGap
}

// The weights of links: edges that pass several layers are to be straight.
const (
	weightBends = 8 // between two places of an edge
	weightEnd   = 3 // between a place of an edge and a node
	weightNodes = 2
)

func (p *placement) weight(l *link) int {
	switch upper, lower := p.vertices[l.upper].bend, p.vertices[l.lower].bend; {
	case upper && lower:
		return weightBends
	case upper || lower:
		return weightEnd
	}
	return weightNodes
}

func (p *placement) spread() {
	for _, row := range p.rows {
		x := 0
		for i, v := range row {
			if i > 0 {
				x += p.gap(row[i-1], v)
			}
			p.vertices[v].x = x
			x += p.vertices[v].width
		}
	}
	const rounds = 10
	for round := range rounds {
		both := round >= rounds/2
		for layer := range p.rows {
			p.spreadRow(layer, true, both)
		}
		for layer := len(p.rows) - 1; layer >= 0; layer-- {
			p.spreadRow(layer, both, true)
		}
	}
	for range 3 {
		for _, chain := range p.chains {
			p.straighten(chain)
		}
	}
	p.alignBorders()
}

// alignBorders puts the margin left of everything, has the graph begin at 0, and moves what is pinned to the top out
// of the way of the title.
func (p *placement) alignBorders() {
	left := unbounded
	for _, row := range p.rows {
		for _, v := range row {
			left = min(left, p.vertices[v].x)
		}
	}
	edge, middle := -1, 0
	for _, v := range p.margin {
		of := &p.vertices[v]
		if now := p.links[of.upper[0]].edge; now != edge {
			edge = now
			width := 0
			for _, l := range p.chains[edge] {
				if lower := &p.vertices[p.links[l].lower]; lower.label {
					width = lower.width
				}
			}
			left -= lineGap + width
			middle = left + width/2
		}
		of.x = middle - of.width/2
	}
	for i := range p.vertices {
		p.vertices[i].x -= left
	}
	var pinned []int
	for _, v := range p.rows[0] {
		if p.isPinned(v) && p.g.Nodes[v].Pin == Top {
			pinned = append(pinned, v)
		}
	}
	wishes, gaps := make([]wish, len(pinned)), make([]int, len(pinned))
	for i, v := range pinned {
		wishes[i], gaps[i] = wish{p.vertices[v].x, 1}, lineGap
	}
	for i, x := range settle(wishes, gaps, p.g.TopMin, unbounded) {
		p.vertices[pinned[i]].x = x
	}
}

func (p *placement) spreadRow(layer int, byUpper, byLower bool) {
	row := p.rows[layer]
	wishes, gaps := make([]wish, len(row)), make([]int, len(row))
	for i, v := range row {
		var w wish
		add := func(x, weight int) { w.x += x * weight; w.weight += weight }
		if byUpper {
			for _, l := range p.vertices[v].upper {
				k := &p.links[l]
				add(p.upperEnd(k)-p.offset(k.lowerX, v), p.weight(k))
			}
		}
		if byLower {
			for _, l := range p.vertices[v].lower {
				k := &p.links[l]
				add(p.lowerEnd(k)-p.offset(k.upperX, v), p.weight(k))
			}
		}
		if w.weight == 0 {
			w = wish{p.vertices[v].x, 1}
		} else {
			w.x = floorDiv(w.x+w.weight/2, w.weight)
		}
		wishes[i] = w
		if i > 0 {
			gaps[i] = p.vertices[row[i-1]].width + p.gap(row[i-1], v)
		}
	}
	for i, x := range settle(wishes, gaps, -unbounded, unbounded) {
		p.vertices[row[i]].x = x
	}
}

// offset is where a link touches a vertex, from its left side; its middle before that is known.
func (p *placement) offset(x, v int) int {
	if x == Anywhere {
		return p.vertices[v].body / 2
	}
	return x
}

func (p *placement) upperEnd(l *link) int { return p.vertices[l.upper].x + p.offset(l.upperX, l.upper) }

func (p *placement) lowerEnd(l *link) int { return p.vertices[l.lower].x + p.offset(l.lowerX, l.lower) }

// reach is the part of a node's side that a link may touch.
func (p *placement) reach(x, v int) (low, high int) {
	of := &p.vertices[v]
	if p.isPinned(v) {
		return -unbounded, unbounded
	}
	if x != Anywhere {
		return of.x + x, of.x + x
	}
	in := min(cornerIn, of.body/4)
	return of.x + in, of.x + of.body - in
}

// straighten moves the bends of an edge, and an end that is pinned to a border, to one line where there is room for
// it; and the line to where both its nodes can be reached, or one of them.
func (p *placement) straighten(chain []int) {
	first, last := &p.links[chain[0]], &p.links[chain[len(chain)-1]]
	var moving []int
	if p.isPinned(first.upper) {
		moving = append(moving, first.upper)
	}
	for _, l := range chain[:len(chain)-1] {
		moving = append(moving, p.links[l].lower)
	}
	if p.isPinned(last.lower) {
		moving = append(moving, last.lower)
	}
	if len(moving) == 0 || len(chain) > 1 && p.placeOf[p.links[chain[0]].lower] < 0 {
		return
	}
	low, high := -unbounded, unbounded
	sum := 0
	for _, v := range moving {
		left, right := p.room(v)
		half := p.vertices[v].width / 2
		low, high = max(low, left+half), min(high, right-(p.vertices[v].width-half))
		sum += p.vertices[v].x + half
	}
	if low > high {
		return
	}
	middle := sum / len(moving)
	upperLow, upperHigh := p.reach(first.upperX, first.upper)
	lowerLow, lowerHigh := p.reach(last.lowerX, last.lower)
	for _, aim := range [][2]int{{max(upperLow, lowerLow), min(upperHigh, lowerHigh)}, {lowerLow, lowerHigh}, {upperLow, upperHigh}, {low, high}} {
		if from, to := max(low, aim[0]), min(high, aim[1]); from <= to {
			middle = min(max(middle, from), to)
			break
		}
	}
	for _, v := range moving {
		p.vertices[v].x = middle - p.vertices[v].width/2
	}
}

func (p *placement) isPinned(v int) bool { return v < len(p.g.Nodes) && p.g.Nodes[v].Pin != Free }

func (p *placement) room(v int) (left, right int) {
	left, right = -unbounded, unbounded
	row := p.rows[p.vertices[v].layer]
	i := p.placeOf[v]
	if i > 0 {
		n := row[i-1]
		left = p.vertices[n].x + p.vertices[n].width + p.gap(n, v)
	}
	if i+1 < len(row) {
		right = p.vertices[row[i+1]].x - p.gap(v, row[i+1])
	}
	return left, right
}

// attach finds where the edges touch their nodes: in the order of where they lead, at a distance from each other, and
// straight above or below the other end where that can be.
func (p *placement) attach() {
	fixed := make([][2]bool, len(p.links))
	for i := range p.links {
		l := &p.links[i]
		fixed[i] = [2]bool{l.upperX != Anywhere, l.lowerX != Anywhere}
		l.upperX, l.lowerX = p.offset(l.upperX, l.upper), p.offset(l.lowerX, l.lower)
	}
	for range 4 {
		for n := range p.g.Nodes {
			p.attachSide(n, true, fixed)
		}
		for n := range p.g.Nodes {
			p.attachSide(n, false, fixed)
		}
	}
	for v := range p.vertices {
		if p.vertices[v].label {
			p.slide(v, fixed)
		}
	}
	for i := range p.links {
		p.nudge(i, fixed[i])
	}
}

// slide takes a small kink out of an edge at its label: the edge may pass the label beside its middle. It makes none
// on the other side, or one that nudge takes out.
func (p *placement) slide(v int, fixed [][2]bool) {
	of := &p.vertices[v]
	above, below := &p.links[of.upper[0]], &p.links[of.lower[0]]
	middle := p.lowerEnd(above)
	up, down := p.upperEnd(above)-middle, p.lowerEnd(below)-middle
	isSmall := func(by int) bool { return by != 0 && max(by, -by) <= kinkMax }
	isLoose := func(by, end int, isFixed bool) bool { return by != 0 || end < len(p.g.Nodes) && !isFixed }
	by := 0
	switch {
	case of.width < 4*kinkMax:
	case isSmall(up) && isLoose(down, below.lower, fixed[of.lower[0]][1]):
		by = up
	case isSmall(down) && isLoose(up, above.upper, fixed[of.upper[0]][0]):
		by = down
	}
	above.lowerX += by
	below.upperX += by
}

func (p *placement) attachSide(n int, bottom bool, fixed [][2]bool) {
	of := &p.vertices[n]
	links := slices.Clone(of.upper)
	if bottom {
		links = slices.Clone(of.lower)
	}
	if len(links) == 0 || of.width == 0 {
		return
	}
	const firm = 1 << 10
	slices.SortStableFunc(links, func(a, b int) int { return p.wanted(a, bottom, fixed).x - p.wanted(b, bottom, fixed).x })
	low, high := p.reach(Anywhere, n)
	gap := endGap
	if len(links) > 1 {
		gap = min(gap, (high-low)/(len(links)-1))
	}
	wishes, gaps := make([]wish, len(links)), make([]int, len(links))
	for i, l := range links {
		wishes[i], gaps[i] = p.wanted(l, bottom, fixed), gap
		if isFixed(fixed[l], bottom) {
			wishes[i].weight = firm
		}
	}
	for i, x := range settle(wishes, gaps, low, high) {
		l := &p.links[links[i]]
		switch {
		case isFixed(fixed[links[i]], bottom):
		case bottom:
			l.upperX = x - of.x
		default:
			l.lowerX = x - of.x
		}
	}
}

func isFixed(ends [2]bool, upper bool) bool { return ends[0] && upper || ends[1] && !upper }

// wanted is where a link wants to touch a node: straight above or below its other end.
func (p *placement) wanted(l int, bottom bool, fixed [][2]bool) wish {
	k := &p.links[l]
	switch {
	case isFixed(fixed[l], bottom) && bottom:
		return wish{p.upperEnd(k), 1}
	case isFixed(fixed[l], bottom):
		return wish{p.lowerEnd(k), 1}
	case bottom:
		return wish{p.lowerEnd(k), 1}
	}
	return wish{p.upperEnd(k), 1}
}

// kinkMax is the longest horizontal piece that is taken out of an edge although the ends at the node then are closer.
const kinkMax = 8

// nudgeIn is how much closer to a corner such an end may stand.
const nudgeIn = 6

// nudge takes a small kink out of a link, where one of its ends can move.
func (p *placement) nudge(i int, fixed [2]bool) {
	l := &p.links[i]
	by := p.lowerEnd(l) - p.upperEnd(l)
	if by == 0 || by > kinkMax || by < -kinkMax {
		return
	}
	if !fixed[0] && p.isClear(l.upper, p.vertices[l.upper].lower, i, p.lowerEnd(l), p.upperEnd) {
		l.upperX += by
		return
	}
	if !fixed[1] && p.isClear(l.lower, p.vertices[l.lower].upper, i, p.upperEnd(l), p.lowerEnd) {
		l.lowerX -= by
	}
}

// isClear reports whether an end of a link can stand at x on the side of a node that the links touch.
func (p *placement) isClear(n int, links []int, self, x int, end func(*link) int) bool {
	low, high := p.reach(Anywhere, n)
	if p.isPinned(n) || p.vertices[n].body < 4*cornerIn {
		return false
	}
	if x < low-nudgeIn || x > high+nudgeIn {
		return false
	}
	return !slices.ContainsFunc(links, func(l int) bool {
		at := end(&p.links[l])
		return l != self && at > x-kinkMax && at < x+kinkMax
	})
}
