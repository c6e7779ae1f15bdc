package layout

import "slices"

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

// attachSide moves the ends at the bottom of a node, or at its top.
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
