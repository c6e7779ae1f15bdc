package diagram

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine"
	"troupe/statemachine/diagram/layout"
)

type rectangle struct{ left, top, right, bottom int }

func (a rectangle) overlaps(b rectangle) bool {
	return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
}

func (a rectangle) contains(b rectangle) bool {
	return a.left <= b.left && b.right <= a.right && a.top <= b.top && b.bottom <= a.bottom
}

func (s *scene) rectangle(p place) rectangle {
	b := &s.boxes[p]
	return rectangle{b.x, b.y, b.x + b.width, b.y + b.height}
}

// cellOf is a node with the loops right of it.
func (s *scene) cellOf(p place) rectangle {
	b := &s.boxes[p]
	return rectangle{b.x, b.y, b.x + max(b.cell, b.width), b.y + b.height}
}

// faultsOf are the places of a scene that break a promise of DESIGN.md, "What is promised".
func faultsOf(s *scene) []string {
	return slices.Concat(s.nodeFaults(), s.lineFaults(), s.labelFaults())
}

func (s *scene) nodeFaults() (faults []string) {
	for i := range s.chart.Nodes {
		items := s.items(i)
		for a, p := range items {
			if !s.rectangle(place(i)).contains(s.cellOf(p)) {
				faults = append(faults, fmt.Sprintf("%d is not inside %d: %v, %v", p, i, s.cellOf(p), s.rectangle(place(i))))
			}
			for _, q := range items[a+1:] {
				if s.cellOf(p).overlaps(s.cellOf(q)) {
					faults = append(faults, fmt.Sprintf("%d and %d overlap: %v, %v", p, q, s.cellOf(p), s.cellOf(q)))
				}
			}
		}
	}
	return faults
}

func (s *scene) lineFaults() (faults []string) {
	for _, w := range s.wires {
		points := s.pointsOf(w)
		for k := 1; k < len(points); k++ {
			if points[k-1].X != points[k].X && points[k-1].Y != points[k].Y {
				faults = append(faults, fmt.Sprintf("the wire %d to %d has a slanting piece: %v", w.from, w.to, points))
			}
		}
		if touched := s.crossed(points); touched >= 0 {
			faults = append(faults, fmt.Sprintf("the wire %d to %d runs through %d: %v, %v", w.from, w.to, touched, points, s.rectangle(place(touched))))
		}
	}
	return faults
}

func (s *scene) labelFaults() (faults []string) {
	lines := map[*wire][]layout.Point{}
	for _, w := range s.wires {
		lines[w] = s.pointsOf(w)
	}
	for k, w := range s.wires {
		if w.label == nil {
			continue
		}
		label := s.labelRectangle(w)
		for i := range s.chart.Nodes {
			if !s.isContainer(i) && label.overlaps(s.rectangle(place(i))) {
				faults = append(faults, fmt.Sprintf("the label of %d to %d covers %d: %v, %v", w.from, w.to, i, label, s.rectangle(place(i))))
			}
		}
		inRegions := w.inside >= 0 && s.chart.Nodes[w.inside].Kind == statemachine.Parallel
		for j, other := range s.wires {
			if other.label != nil && j > k && label.overlaps(s.labelRectangle(other)) {
				faults = append(faults, fmt.Sprintf("the label of %d to %d covers that of %d to %d", w.from, w.to, other.from, other.to))
			}
			isSame := w.node == other.node && w.transition == other.transition
			if !inRegions && !isSame && runsThrough(lines[other], label) {
				faults = append(faults, fmt.Sprintf("the wire %d to %d runs through the label of %d to %d: %v, %v", other.from, other.to, w.from, w.to, lines[other], label))
			}
		}
	}
	return faults
}

func (s *scene) labelRectangle(w *wire) rectangle {
	x, y := s.labelBox(w)
	return rectangle{x, y, x + w.label.width, y + w.label.height}
}

func runsThrough(points []layout.Point, of rectangle) bool {
	inner := rectangle{of.left + 1, of.top + 1, of.right - 1, of.bottom - 1}
	for k := 1; k < len(points); k++ {
		if pieceOf(points[k-1], points[k]).overlaps(inner) {
			return true
		}
	}
	return false
}

func pieceOf(a, b layout.Point) rectangle {
	return rectangle{min(a.X, b.X), min(a.Y, b.Y), max(a.X, b.X) + 1, max(a.Y, b.Y) + 1}
}

// crossed is a leaf that a line runs through; -1 for none. Lines end inside the squares around history nodes.
func (s *scene) crossed(points []layout.Point) int {
	for i := range s.chart.Nodes {
		if !s.isContainer(i) && !s.chart.Nodes[i].Kind.IsHistory() && runsThrough(points, s.rectangle(place(i))) {
			return i
		}
	}
	return -1
}

// TestPlaces holds DESIGN.md, "What is promised".
func TestPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		for _, fault := range faultsOf(newScene(charts(30).Draw(t, "chart"), english)) {
			t.Error(fault)
		}
	})
}

// TestPlacesControl moves things, which TestPlaces must find.
func TestPlacesControl(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScene(charts(20).Draw(t, "chart"), english)
		child := place(rapid.SampledFrom(s.chart.Nodes[0].Children).Draw(t, "child"))
		s.boxes[child].x += s.boxes[0].x + s.boxes[0].width
		assert.NotEmpty(t, faultsOf(s), "a node that stands outside of its container is not found")
	})
}

// TestSVGIsWhole reads the document as XML: it has each node and each transition once, and is the same twice.
func TestSVGIsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := charts(30).Draw(t, "chart")
		p := &Picture{Chart: c, Languages: []string{"de"}}
		if rapid.Bool().Draw(t, "counted") {
			p.Counts = map[int]Count{0: {rapid.Int64Range(0, 1<<50).Draw(t, "count"), true, rapid.Bool().Draw(t, "more")}}
		}
		if rapid.Bool().Draw(t, "marked") {
			p.Instance = &Instance{ID: name(t)}
		}
		text := p.SVG()
		assert.Equal(t, string(p.SVG()), string(text), "drawn twice, the pictures differ")
		got, err := drawn(text)
		require.NoError(t, err, "in\n%s", text)
		want := map[string]int{}
		for i := range c.Nodes {
			n := &c.Nodes[i]
			want["node "+clean(string(n.ID))]++
			for k := range n.Transitions {
				want["transition "+clean(string(n.ID))+" "+clean(n.Transitions[k].Event)]++
			}
		}
		assert.Equal(t, fmt.Sprint(want), fmt.Sprint(got), "got  %v\nwant %v", got, want)
	})
}

func drawn(text []byte) (map[string]int, error) {
	got := map[string]int{}
	d := xml.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return nil, err
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		attributes := map[string]string{}
		for _, a := range e.Attr {
			attributes[a.Name.Local] = a.Value
		}
		switch class, _, _ := strings.Cut(attributes["class"], " "); class {
		case "node":
			got["node "+attributes["data-node"]]++
		case "transition":
			got["transition "+attributes["data-from"]+" "+attributes["data-event"]]++
		}
		if e.Name.Local == "script" || attributes["href"] != "" || attributes["style"] != "" { // NB: a style in an attribute needs a policy that allows all
			return nil, fmt.Errorf("<%s> has no place in a picture, with %v", e.Name.Local, attributes)
		}
	}
}

var texts = flag.String("texts", "", "a folder for the texts of TestTextsAreWhole, for other readers")

// TestTextsAreWhole holds that Mermaid and DOT declare each node once, and that no text ends its line.
func TestTextsAreWhole(t *testing.T) {
	count := 0
	rapid.Check(t, func(t *rapid.T) {
		c := charts(30).Draw(t, "chart")
		p := &Picture{Chart: c, Instance: &Instance{ID: "1"}, Languages: []string{"de"}, Counts: map[int]Count{0: {1000, true, false}}}
		mermaid, dot := string(p.Mermaid()), string(p.DOT())
		count++
		for i := range c.Nodes {
			got := strings.Count(mermaid, fmt.Sprintf(`" as n%d`+"\n", i)) + strings.Count(mermaid, fmt.Sprintf(`" as n%d {`+"\n", i))
			assert.Equal(t, 1, got, "Mermaid declares node %d, %s", i, mermaid)
			got = strings.Count(dot, fmt.Sprintf("  n%d [label=", i)) + strings.Count(dot, fmt.Sprintf("subgraph cluster_%d {\n", i))
			assert.Equal(t, 1, got, "DOT declares node %d, %s", i, dot)
		}
		for suffix, text := range map[string]string{".mmd": mermaid, ".dot": dot} {
			if *texts != "" {
				require.NoError(t, os.WriteFile(filepath.Join(*texts, strconv.Itoa(count)+suffix), []byte(text), 0o644))
			}
			assert.True(t, !strings.ContainsAny(text, "\r\x00\x01") && strings.HasSuffix(text, "\n"), "a line is broken: %q", text)
		}
	})
}

// TestTraceOfAnything: no history breaks the search for its path.
func TestTraceOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := charts(20).Draw(t, "chart")
		at := func() (out []statemachine.Position) {
			for range rapid.IntRange(0, 3).Draw(t, "positions") {
				i := rapid.IntRange(0, len(c.Nodes)-1).Draw(t, "node")
				out = append(out, statemachine.Position{Machine: statemachine.MachineID(c.Nodes[c.Machine(i)].ID), Node: c.Nodes[i].ID})
			}
			return out
		}
		in := &Instance{At: at()}
		for range rapid.IntRange(0, 4).Draw(t, "steps") {
			in.Add(Step{Event: statemachine.EventName(name(t)), Start: at(), End: at()})
		}
		m := marksOf(&Picture{Chart: c, Instance: in})
		for i, now := range m.now {
			assert.False(t, now && !m.visited[i], "node %d is active and was not visited", i)
		}
	})
}

// TestPlacesOfALongChart has more bends than edges get places for, so that the longest run in the margin.
func TestPlacesOfALongChart(t *testing.T) {
	for _, fault := range faultsOf(newScene(flatChart(300), english)) {
		t.Error(fault)
	}
}
