package layout

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	_ "troupe/internal/fixedseed"
)

// TestSettle compares the pooled places with the closest of all that keep the distances.
func TestSettle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const low, high = 0, 12
		n := rapid.IntRange(1, 3).Draw(t, "count")
		wishes, gaps := make([]wish, n), make([]int, n)
		for i := range wishes {
			wishes[i] = wish{rapid.IntRange(-2, 14).Draw(t, "x"), rapid.IntRange(1, 4).Draw(t, "weight")}
			gaps[i] = rapid.IntRange(0, 4).Draw(t, "gap")
		}
		cost := func(places []int) (sum int) {
			for i, x := range places {
				sum += wishes[i].weight * (x - wishes[i].x) * (x - wishes[i].x)
			}
			return sum
		}
		got := settle(wishes, gaps, low, high)
		best := -1
		var try func(places []int)
		try = func(places []int) {
			if k := len(places); k == n {
				if c := cost(places); best < 0 || c < best {
					best = c
				}
				return
			}
			from := low
			if k := len(places); k > 0 {
				from = places[k-1] + gaps[k]
			}
			for x := from; x <= high; x++ {
				try(append(slices.Clone(places), x))
			}
		}
		try(nil)
		weight := 0
		for i, x := range got {
			weight += wishes[i].weight
			require.True(t, x >= low && x <= high && (i <= 0 || x >= got[i-1]+gaps[i]), "%v with gaps %v: got %v", wishes, gaps, got)
		}
		if cost(got) > best+weight*n { // NB: a block stands at a whole pixel, rounded down
			t.Errorf("%v with gaps %v: got %v, which costs %d; the best costs %d", wishes, gaps, got, cost(got), best)
		}
	})
}

func graphs() *rapid.Generator[*Graph] {
	return rapid.Custom(func(t *rapid.T) *Graph {
		g := &Graph{TopMin: rapid.IntRange(0, 100).Draw(t, "title")}
		free := rapid.IntRange(1, 12).Draw(t, "nodes")
		for range free {
			g.Nodes = append(g.Nodes, Node{Width: rapid.IntRange(60, 200).Draw(t, "width"), Height: rapid.IntRange(20, 80).Draw(t, "height")})
		}
		node := rapid.IntRange(0, free-1)
		for range rapid.IntRange(0, 20).Draw(t, "edges") {
			e := Edge{From: node.Draw(t, "from"), To: node.Draw(t, "to"), FromX: Anywhere, ToX: Anywhere}
			if rapid.Bool().Draw(t, "labelled") {
				e.LabelWidth, e.LabelHeight = rapid.IntRange(10, 150).Draw(t, "label width"), 20
			}
			if pin := Pin(rapid.IntRange(0, 2).Draw(t, "pin")); pin != Free {
				g.Nodes = append(g.Nodes, Node{Pin: pin})
				e.To = len(g.Nodes) - 1
				if rapid.Bool().Draw(t, "in") {
					e.From, e.To = e.To, e.From
				}
			} else if e.From == e.To {
				continue
			}
			g.Edges = append(g.Edges, e)
		}
		return g
	})
}

// TestPlace: edges lead from node to node in horizontal and vertical pieces, and leave and come in at the sides that Up says.
func TestPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := graphs().Draw(t, "graph")
		g.Orient(nil)
		g.Place()
		for i := range g.Nodes {
			n := &g.Nodes[i]
			at := map[Pin]int{Top: 0, Bottom: g.Height}
			y, pinned := at[n.Pin]
			assert.True(t, (!pinned || n.Y == y) && n.X >= 0 && n.X+n.Width <= g.Width && (n.Pin != Top || n.X >= g.TopMin), "%v %v %v %v", i, n, g.Width, g.Height)
		}
		for i := range g.Edges {
			e := &g.Edges[i]
			from, to := &g.Nodes[e.From], &g.Nodes[e.To]
			begin, end := e.Points[0], e.Points[len(e.Points)-1]
			wantBegin, wantEnd := from.Y+from.Height, to.Y
			if e.Up {
				wantBegin, wantEnd = from.Y, to.Y+to.Height
			}
			assert.True(t, begin.Y == wantBegin && end.Y == wantEnd && begin.X >= from.X && begin.X <= from.X+from.Width && end.X >= to.X && end.X <= to.X+to.Width,
				"edge %d from %+v to %+v: %+v", i, from, to, e)
			assert.Equal(t, e.Up, begin.Y > end.Y, "edge %d leads the other way", i)
			for k := 1; k < len(e.Points); k++ {
				assert.False(t, e.Points[k].X != e.Points[k-1].X && e.Points[k].Y != e.Points[k-1].Y, "edge %d slants: %v", i, e.Points)
			}
		}
	})
}

// TestOrient: without the edges that lead upwards there is no cycle, and a graph without one has none of them.
func TestOrient(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := graphs().Draw(t, "graph")
		isAcyclic := rapid.Bool().Draw(t, "acyclic")
		if isAcyclic {
			g.Edges = slices.DeleteFunc(g.Edges, func(e Edge) bool { return e.From >= e.To || g.Nodes[e.To].Pin != Free })
		}
		g.Orient([]int{0})
		for i := range g.Edges {
			assert.False(t, isAcyclic && g.Edges[i].Up, "edge %d leads upwards without a cycle", i)
		}
		p := &placement{g: g}
		p.rank()
		for i := range g.Edges {
			upper, lower := g.Edges[i].ends()
			assert.Less(t, p.ranks[upper], p.ranks[lower], "edge %d leads from rank", i)
		}
	})
}

// TestCrossings compares the count with that of all pairs.
func TestCrossings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := graphs().Draw(t, "graph")
		g.Orient(nil)
		p := &placement{g: g}
		p.rank()
		p.chain()
		want := 0
		for _, row := range p.rows {
			at := map[int]int{}
			for _, r := range p.rows {
				for i, v := range r {
					at[v] = i
				}
			}
			var ends [][2]int
			for _, v := range row {
				for _, l := range p.vertices[v].lower {
					ends = append(ends, [2]int{at[v], at[p.links[l].lower]})
				}
			}
			for i, a := range ends {
				for _, b := range ends[i+1:] {
					if (a[0]-b[0])*(a[1]-b[1]) < 0 {
						want++
					}
				}
			}
		}
		assert.Equal(t, want, p.crossings())
	})
}

func TestSimplify(t *testing.T) {
	for _, c := range []struct{ points, want []Point }{
		{[]Point{{0, 0}, {0, 5}, {0, 9}}, []Point{{0, 0}, {0, 9}}},
		{[]Point{{0, 0}, {0, 5}, {0, 5}, {4, 5}, {4, 9}}, []Point{{0, 0}, {0, 5}, {4, 5}, {4, 9}}},
		{[]Point{{0, 0}, {0, 5}}, []Point{{0, 0}, {0, 5}}},
	} {
		got := Simplify(c.points)
		assert.True(t, slices.Equal(got, c.want), "%v: got %v, want %v", c.points, got, c.want)
	}
}
