package layout

import "slices"

// sweepsMax is how often the layers are ordered from the top to the bottom and back. Most graphs are done after a few.
const sweepsMax = 12

// order orders the layers by the barycentres of their neighbours, and keeps the order with the fewest crossings.
// It begins with the order in which a search from the top meets the vertices.
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

// touch is where a link touches its neighbour, as a part of the neighbour's width: up to 1 << 12.
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
