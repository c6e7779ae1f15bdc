package diagram

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"troupe/statemachine"
	"troupe/statemachine/diagram/layout"
)

// SVG draws the picture: one document without scripts and without anything from elsewhere, for light and dark pages.
func (p *Picture) SVG() []byte {
	s := newScene(p.translated(), p.words())
	w := &svgWriter{scene: s, picture: p, marks: marksOf(p)}
	w.open()
	w.containers()
	w.drawWires(false)
	w.drawWires(true)
	w.labels()
	w.captions()
	w.leaves()
	w.counts()
	w.legend()
	w.f("</svg>\n")
	return w.Bytes()
}

type svgWriter struct {
	bytes.Buffer
	*scene
	picture *Picture
	marks   *marks
	left    int // of the scene in the page
	top     int
}

func (w *svgWriter) f(format string, args ...any) { fmt.Fprintf(w, format, args...) }

func escape(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(clean(text))) // a Builder takes everything
	return b.String()
}

func (w *svgWriter) open() {
	c := w.chart
	heading := c.Name
	if heading == "" {
		heading = string(c.ID)
	}
	under := string(c.ID) + w.words.version + strconv.FormatUint(c.Version, 10)
	if w.picture.Instance != nil {
		under += w.words.instance + w.picture.Instance.ID
	}
	if w.picture.Counts != nil {
		under += w.words.everywhere
	}
	w.left, w.top = pagePad, pagePad+46
	heading = font{size: 180, bold: true}.cut(clean(heading), max(320, w.width))
	width := max(w.width, font{size: 180, bold: true}.width(heading), font{size: 120}.width(clean(under))) + 2*pagePad
	height := w.top + w.height + pagePad
	if w.picture.isMarked() {
		now, been := w.legendWidths()
		width = max(width, now+been+2*pagePad)
		height += 30
	}
	w.f(`<svg xmlns="http://www.w3.org/2000/svg" class="tp" role="img" width="%d" height="%d" viewBox="0 0 %d %d">`+"\n", width, height, width, height)
	w.f("<title>%s</title>\n<desc>%s</desc>\n<style>%s</style>\n", escape(heading), escape(w.description()), style)
	w.f(`<rect class="page" width="%d" height="%d"/>`+"\n", width, height)
	w.f(`<text class="title heading" x="%d" y="%d">%s</text>`+"\n", pagePad, pagePad+14, escape(heading))
	w.f(`<text class="note under" x="%d" y="%d">%s</text>`+"\n", pagePad, pagePad+33, escape(under))
}

func (w *svgWriter) description() string {
	var machines, at []string
	for i := range w.chart.Nodes {
		if n := &w.chart.Nodes[i]; n.Parent < 0 {
			machines = append(machines, nodeText(n))
		}
	}
	text := fmt.Sprintf(w.words.chart, w.chart.ID, strings.Join(machines, ", "))
	if in := w.picture.Instance; in != nil {
		for _, p := range in.At {
			node := string(p.Node)
			if i, ok := w.chart.Node(p); ok {
				node = nodeText(&w.chart.Nodes[i])
			}
			at = append(at, string(p.Machine)+": "+node)
		}
		text += fmt.Sprintf(w.words.stands, in.ID, strings.Join(at, ", "))
	}
	return text
}

func (w *svgWriter) classOf(class string, now, visited bool) string {
	switch {
	case !w.picture.isMarked():
		return class
	case now:
		return class + " visited now"
	case visited:
		return class + " visited"
	}
	return class + " quiet"
}

func (w *svgWriter) depth(i int) (depth int) {
	for i = w.chart.Nodes[i].Parent; i >= 0; i = w.chart.Nodes[i].Parent {
		depth++
	}
	return depth
}

// shade is the class of what a container is filled with; neighbours in depth differ.
func (w *svgWriter) shade(i int) string {
	for w.boxes[i].region {
		i = w.chart.Nodes[i].Parent
	}
	switch depth := w.depth(i); {
	case depth == 0:
		return "machine"
	case depth%2 == 1:
		return "odd"
	}
	return "even"
}

func (w *svgWriter) nodeData(i int) string {
	return fmt.Sprintf(`data-machine="%s" data-node="%s"`, escape(string(w.chart.Nodes[w.chart.Machine(i)].ID)), escape(string(w.chart.Nodes[i].ID)))
}

func (w *svgWriter) containers() {
	for i := range w.chart.Nodes {
		if !w.isContainer(i) {
			continue
		}
		b := &w.boxes[i]
		w.f(`<g class="%s" %s>`, w.containerClass("node", i), w.nodeData(i))
		switch { // NB: a region has no box of its own, only a frame where lines end at it
		case !b.region:
			w.f(`<rect class="box" x="%d" y="%d" width="%d" height="%d" rx="10"/>`, w.left+b.x, w.top+b.y, b.width, b.height)
		case b.framed:
			w.f(`<rect class="divider" x="%d" y="%d" width="%d" height="%d" rx="10"/>`, w.left+b.x, w.top+b.y, b.width, b.height)
		}
		w.f("</g>\n")
		if w.chart.Nodes[i].Kind == statemachine.Parallel {
			w.dividers(i)
		}
	}
}

// containerClass is the class of a container. It is never quiet: that would be said of all in it.
func (w *svgWriter) containerClass(class string, i int) string {
	return strings.TrimSuffix(w.classOf(class+" "+w.shade(i), w.marks.now[i], w.marks.visited[i]), " quiet")
}

func (w *svgWriter) captions() {
	for i := range w.chart.Nodes {
		if w.isContainer(i) {
			w.f(`<g class="%s">`, w.containerClass("caption", i))
			if n := &w.chart.Nodes[i]; isRenamed(n) {
				w.f("<title>%s</title>", escape(string(n.ID)))
			}
			w.texts(i, w.left+w.boxes[i].x+innerPad-4, false)
			w.f("</g>\n")
		}
	}
}

func (w *svgWriter) dividers(i int) {
	regions := w.chart.Nodes[i].Children
	for k, c := range regions {
		if k == 0 {
			continue
		}
		x, top, base := w.boxes[c].x, w.boxes[i].y+w.boxes[i].header, w.boxes[i].y+w.boxes[i].height
		if !w.isContainer(c) {
			x -= innerPad
		}
		w.f(`<path class="divider" d="M%d %dV%d"/>`+"\n", w.left+x, w.top+top, w.top+base-1)
	}
}

func (w *svgWriter) texts(i, x int, centred bool) {
	b, n := &w.boxes[i], &w.chart.Nodes[i]
	anchor := ""
	if centred {
		anchor = ` text-anchor="middle"`
	}
	f := titleFont
	class := "title"
	switch {
	case n.Parent < 0:
		f, class = headFont, "title head"
	case centred:
		f, class = nameFont, "name"
	}
	y := w.top + b.y + 4
	if centred {
		y = w.top + b.y + (b.height-b.header+14)/2
	} else {
		y += 2
	}
	for _, text := range b.title {
		y += f.height()
		w.f(`<text class="%s" x="%d" y="%d"%s>%s</text>`, class, x, y-4, anchor, escape(text))
	}
	for k := range b.notes {
		of := &b.notes[k]
		if of.transition >= 0 {
			w.f(`<g class="%s" %s>`, w.classOf("transition internal", false, w.marks.taken[i][of.transition]), w.transitionData(i, of.transition))
		}
		if len(of.lines) > 1 || clean(of.full) != of.lines[0] {
			w.f("<title>%s</title>", escape(of.full))
		}
		for _, text := range of.lines {
			y += noteFont.height()
			w.f(`<text class="note" x="%d" y="%d"%s>%s</text>`, x, y-3, anchor, escape(text))
		}
		if of.transition >= 0 {
			w.f("</g>")
		}
	}
}

func (w *svgWriter) leaves() {
	for i := range w.chart.Nodes {
		if w.isContainer(i) {
			if n := &w.chart.Nodes[i]; n.Kind == statemachine.Compound && len(n.Initial) > 0 {
				dot := &w.boxes[w.dot(i)]
				w.f(`<g class="%s"><circle class="dot" cx="%d" cy="%d" r="%d"/></g>`+"\n", w.classOf("initial", false, w.marks.start[i]), w.left+dot.x+dotSize/2, w.top+dot.y+dotSize/2, dotSize/2)
			}
			continue
		}
		b, n := &w.boxes[i], &w.chart.Nodes[i]
		w.f(`<g class="%s" %s>`, w.classOf(leafClass(n), w.marks.now[i], w.marks.visited[i]), w.nodeData(i))
		if strings.Join(b.title, "") != string(n.ID) {
			w.f("<title>%s</title>", escape(string(n.ID)))
		}
		x, y := w.left+b.x, w.top+b.y
		switch {
		case n.Kind.IsHistory():
			sign := "H"
			if n.Kind == statemachine.DeepHistory {
				sign = "H*"
			}
			w.f(`<circle class="box" cx="%d" cy="%d" r="%d"/><text class="name" x="%d" y="%d" text-anchor="middle">%s</text>`,
				x+historySize/2, y+historySize/2, historySize/2, x+historySize/2, y+historySize/2+5, sign)
		case n.Kind == statemachine.Final:
			w.f(`<rect class="box" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`, x, y, b.width, b.height, b.height/2)
			w.f(`<rect class="ring" x="%d" y="%d" width="%d" height="%d" rx="%d"/>`, x+4, y+4, b.width-8, b.height-8, b.height/2-4)
			w.texts(i, x+b.width/2, true)
		default:
			w.f(`<rect class="box" x="%d" y="%d" width="%d" height="%d" rx="8"/>`, x, y, b.width, b.height)
			w.texts(i, x+b.width/2, true)
		}
		w.f("</g>\n")
	}
}

func leafClass(n *statemachine.ChartNode) string {
	if n.Tone == statemachine.Neutral || n.Kind.IsHistory() {
		return "node leaf"
	}
	return "node leaf " + n.Tone.String()
}

// drawWires draws the initial arrows and the transitions: those that were taken, or the others.
func (w *svgWriter) drawWires(taken bool) {
	for k := 0; k < len(w.wires); {
		first, begin := w.wires[k], k
		for k++; k < len(w.wires) && first.transition >= 0 && w.wires[k].node == first.node && w.wires[k].transition == first.transition; k++ {
			// another target of the same transition
		}
		if isTaken := first.transition >= 0 && w.marks.taken[first.node][first.transition] || first.transition < 0 && w.marks.start[first.node]; isTaken != taken {
			continue
		}
		class, data := "arrow", ""
		if first.transition >= 0 {
			class, data = "transition", " "+w.transitionData(first.node, first.transition)
		}
		w.f(`<g class="%s"%s>`, w.classOf(class, false, taken), data)
		if first.label != nil {
			w.f("<title>%s</title>", escape(first.label.full))
		}
		for _, wire := range w.wires[begin:k] {
			w.arrow(w.pointsOf(wire))
		}
		w.f("</g>\n")
	}
}

func (w *svgWriter) transitionData(i, k int) string {
	t := &w.chart.Nodes[i].Transitions[k]
	var targets []string
	for _, to := range t.Targets {
		targets = append(targets, string(w.chart.Nodes[to].ID))
	}
	return fmt.Sprintf(`data-from="%s" data-event="%s" data-to="%s"`, escape(string(w.chart.Nodes[i].ID)), escape(t.Event), escape(strings.Join(targets, " ")))
}

// The sizes of arrows.
const (
	cornerRadius = 7
	headLength   = 8
	headHalf     = 4
)

func (w *svgWriter) arrow(points []layout.Point) {
	last := len(points) - 1
	tip := points[last]
	line := append([]layout.Point(nil), points...)
	dx, dy := sign(tip.X-points[last-1].X), sign(tip.Y-points[last-1].Y)
	line[last] = layout.Point{X: tip.X - dx*(headLength-1), Y: tip.Y - dy*(headLength-1)}
	w.f(`<path class="line" d="%s"/>`, w.linePath(line))
	back := layout.Point{X: w.left + tip.X - dx*headLength, Y: w.top + tip.Y - dy*headLength}
	w.f(`<path class="head" d="M%d %dL%d %dL%d %dZ"/>`, w.left+tip.X, w.top+tip.Y, back.X-dy*headHalf, back.Y-dx*headHalf, back.X+dy*headHalf, back.Y+dx*headHalf)
}

func (w *svgWriter) linePath(points []layout.Point) string {
	var b strings.Builder
	at := func(p layout.Point) string { return strconv.Itoa(w.left+p.X) + " " + strconv.Itoa(w.top+p.Y) }
	b.WriteString("M" + at(points[0]))
	for k := 1; k < len(points); k++ {
		p := points[k]
		if k+1 == len(points) {
			b.WriteString("L" + at(p))
			break
		}
		before, after := points[k-1], points[k+1]
		r := min(cornerRadius, (distance(before, p)+1)/2, (distance(p, after)+1)/2)
		in := layout.Point{X: p.X - sign(p.X-before.X)*r, Y: p.Y - sign(p.Y-before.Y)*r}
		out := layout.Point{X: p.X + sign(after.X-p.X)*r, Y: p.Y + sign(after.Y-p.Y)*r}
		b.WriteString("L" + at(in) + "Q" + at(p) + " " + at(out))
	}
	return b.String()
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	}
	return 0
}

func distance(a, b layout.Point) int { return max(a.X-b.X, b.X-a.X) + max(a.Y-b.Y, b.Y-a.Y) }

func (s *scene) labelBox(of *wire) (x, y int) {
	in := &s.boxes[of.main.container]
	return in.x + of.main.labelAt.X - of.label.width/2, in.y + of.main.labelAt.Y - of.label.height/2
}

func (w *svgWriter) labels() {
	for _, of := range w.wires {
		if of.label != nil {
			w.f(`<g class="%s"><title>%s</title>`, w.classOf("label", false, w.marks.taken[of.node][of.transition]), escape(of.label.full))
			w.label(of)
			w.f("</g>\n")
		}
	}
}

func (w *svgWriter) label(of *wire) {
	x, y := w.labelBox(of)
	l := of.label
	around := of.main.container
	if of.inside < 0 { // a loop stands beside its node
		around = max(0, w.chart.Nodes[around].Parent)
	}
	w.f(`<rect class="back %s" x="%d" y="%d" width="%d" height="%d" rx="4"/>`, w.shade(around), w.left+x, w.top+y, l.width, l.height)
	y += 2
	for _, line := range l.lines {
		f := noteFont
		if line.class != "guard" {
			f = eventFont
		}
		y += f.height()
		w.f(`<text class="%s" x="%d" y="%d" text-anchor="middle">%s</text>`, line.class, w.left+x+l.width/2, w.top+y-3, escape(line.text))
	}
}

func (w *svgWriter) legendWidths() (now, been int) {
	return 30*max(1, len(w.classesNow())) + 3 + noteFont.width(w.words.now) + 17, 63 + noteFont.width(w.words.been)
}

// legend explains the marks. Where it is now has the colours of the nodes that it stands at.
func (w *svgWriter) legend() {
	if !w.picture.isMarked() {
		return
	}
	x, y, been := w.left, w.top+w.height+14, w.words.reached
	w.f(`<g class="legend">`)
	if w.picture.Reached == nil {
		been = w.words.been
		for _, class := range w.classesNow() {
			w.f(`<g class="%s visited now"><rect class="box" x="%d" y="%d" width="26" height="16" rx="5"/></g>`, class, x, y)
			x += 30
		}
		w.f(`<text class="key" x="%d" y="%d">%s</text>`, x+3, y+12, w.words.now)
		now, _ := w.legendWidths()
		x = w.left + now
	}
	w.f(`<g class="leaf visited"><rect class="box" x="%d" y="%d" width="26" height="16" rx="5"/></g>`, x, y)
	w.f(`<g class="visited"><path class="line" d="M%d %dh22"/><path class="head" d="M%d %dl-8 -4v8z"/></g>`, x+26, y+8, x+56, y+8)
	w.f(`<text class="key" x="%d" y="%d">%s</text></g>`+"\n", x+63, y+12, been)
}

func (w *svgWriter) classesNow() (classes []string) {
	for i := range w.chart.Nodes {
		if class := strings.TrimPrefix(leafClass(&w.chart.Nodes[i]), "node "); w.marks.now[i] && !w.isContainer(i) && !slices.Contains(classes, class) {
			classes = append(classes, class)
		}
	}
	return classes
}
