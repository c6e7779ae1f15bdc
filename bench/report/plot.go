package report

import (
	"fmt"
	"html"
	"math"
	"strings"

	"troupe/gateway/hypertext"
)

// The size of a plot in its own units, and the margins around what is drawn.
const (
	plotWidth, wideWidth              = 640, 1290
	marginLeft, marginRight           = 58, 20
	marginTop, marginBottom           = 14, 44
	drawnHeight                       = 226
	legendRow, legendDash, legendStep = 18, 18, 14 // a row, a dash, between entries
	letterWidth                       = 6.8
)

// plot is lines over an axis, written as SVG. Colours come from the page (styles of
// page.html), so that they fit light and dark.
type plot struct {
	title  string // read by those who do not see it
	x, y   axis
	lines  []line
	shaded []span // along x
	wide   bool   // it has the room of two
}

func (p *plot) width() int {
	if p.wide {
		return wideWidth
	}
	return plotWidth
}

func (p *plot) drawnWidth() int { return p.width() - marginLeft - marginRight }

// begin is how far down the drawn part begins: below the legend.
func (p *plot) begin() int {
	rows := 0
	for _, e := range p.entries() {
		rows = e.row + 1
	}
	return marginTop + legendRow*rows
}

func (p *plot) height() int { return p.begin() + drawnHeight + marginBottom }

type entry struct {
	line *line
	row  int
	left float64
}

// entries lays the legend out, in as many rows as it needs; none for one line without a name.
func (p *plot) entries() (all []entry) {
	left, row := float64(marginLeft), 0
	for i := range p.lines {
		l := &p.lines[i]
		if l.name == "" {
			continue
		}
		width := legendDash + 5 + letterWidth*float64(len([]rune(l.name)))
		if left > marginLeft && left+width > float64(p.width()-marginRight) {
			left, row = marginLeft, row+1
		}
		all = append(all, entry{l, row, left})
		left += width + legendStep
	}
	return all
}

// line is a row of points. A NaN breaks it.
type line struct {
	name   string
	colour int // 1 to colours
	dashed bool
	area   bool // filled down to the axis
	xs, ys []float64
}

const colours = 6

type span struct{ from, to float64 }

type axis struct {
	label    string
	from, to float64
	log      bool
	ticks    []tick
}

type tick struct {
	at   float64
	text string
}

func (a *axis) part(v float64) float64 {
	from, to := a.from, a.to
	if a.log {
		v, from, to = math.Log10(math.Max(v, a.from)), math.Log10(from), math.Log10(to)
	}
	if to <= from {
		return 0
	}
	return (v - from) / (to - from)
}

// linear is an axis from 0, or from another begin, to at least the end, with about n ticks.
func linear(label string, from, to float64, n int) axis {
	if !(to > from) {
		to = from + 1
	}
	step := niceStep((to - from) / float64(n))
	end := from + math.Ceil((to-from)/step-1e-9)*step
	a := axis{label: label, from: from, to: end}
	for k := 0; from+float64(k)*step <= end+step/2; k++ {
		v := from + float64(k)*step
		a.ticks = append(a.ticks, tick{v, number(v)})
	}
	return a
}

func niceStep(least float64) float64 {
	base := math.Pow(10, math.Floor(math.Log10(least)))
	for _, m := range []float64{1, 2, 5} {
		if m*base >= least*(1-1e-9) {
			return m * base
		}
	}
	return 10 * base
}

func logarithmic(label string, least, most float64) axis {
	steps := []float64{1, 2, 5}
	decade := math.Floor(math.Log10(least))
	a := axis{label: label, log: true}
	for d := decade; len(a.ticks) < 40; d++ {
		for _, m := range steps {
			v := m * math.Pow(10, d)
			if next := v * 2.5; next < least {
				continue
			}
			a.ticks = append(a.ticks, tick{v, number(v)})
			if v >= most {
				a.from, a.to = a.ticks[0].at, v
				return a.thinned()
			}
		}
	}
	a.from, a.to = a.ticks[0].at, a.ticks[len(a.ticks)-1].at
	return a.thinned()
}

// thinned keeps only the powers of ten when there are many ticks.
func (a axis) thinned() axis {
	if len(a.ticks) <= 9 {
		return a
	}
	var kept []tick
	for _, t := range a.ticks {
		if l := math.Log10(t.at); math.Abs(l-math.Round(l)) < 1e-9 {
			kept = append(kept, t)
		}
	}
	a.ticks = kept
	return a
}

// latencyAxis fits the values; it is logarithmic when they are far apart.
func latencyAxis(lines []line) axis {
	const label, farApart = "latency in ms", 12
	least, most := math.Inf(1), 0.0
	for _, l := range lines {
		for _, v := range l.ys {
			if v > 0 {
				least, most = math.Min(least, v), math.Max(most, v)
			}
		}
	}
	if most > farApart*least {
		return logarithmic(label, least, most)
	}
	return linear(label, 0, most, 5)
}

func (p *plot) svg() hypertext.Raw {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, p.width(), p.height(), html.EscapeString(p.title))
	for _, s := range p.shaded {
		from, to := p.left(s.from), p.left(s.to)
		fmt.Fprintf(&b, `<rect class="gap" x="%.1f" y="%d" width="%.1f" height="%d"/>`, from, p.begin(), math.Max(to-from, 1), drawnHeight)
	}
	p.grid(&b)
	for i := range p.lines {
		p.draw(&b, &p.lines[i])
	}
	p.legend(&b)
	b.WriteString(`</svg>`)
	return hypertext.Raw(b.String()) // texts are escaped above and below
}

func (p *plot) left(x float64) float64 { return marginLeft + p.x.part(x)*float64(p.drawnWidth()) }
func (p *plot) top(y float64) float64  { return float64(p.begin()) + (1-p.y.part(y))*drawnHeight }

func (p *plot) grid(b *strings.Builder) {
	begin := p.begin()
	below, right := begin+drawnHeight, marginLeft+p.drawnWidth()
	for _, t := range p.y.ticks {
		y := p.top(t.at)
		fmt.Fprintf(b, `<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`, marginLeft, y, right, y)
		fmt.Fprintf(b, `<text class="end" x="%d" y="%.1f">%s</text>`, marginLeft-6, y+4, html.EscapeString(t.text))
	}
	for _, t := range p.x.ticks {
		x := p.left(t.at)
		fmt.Fprintf(b, `<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, x, begin, x, below)
		fmt.Fprintf(b, `<text class="middle" x="%.1f" y="%d">%s</text>`, x, below+16, html.EscapeString(t.text))
	}
	fmt.Fprintf(b, `<path class="axis" d="M%d %dV%dH%d"/>`, marginLeft, begin, below, right)
	fmt.Fprintf(b, `<text class="middle" x="%d" y="%d">%s</text>`, marginLeft+p.drawnWidth()/2, p.height()-8, html.EscapeString(p.x.label))
	fmt.Fprintf(b, `<text class="middle" transform="translate(13 %d) rotate(-90)">%s</text>`, begin+drawnHeight/2, html.EscapeString(p.y.label))
}

func (l *line) class() string {
	class := fmt.Sprintf("line c%d", l.colour)
	if l.dashed {
		class += " dashed"
	}
	return class
}

func (p *plot) draw(b *strings.Builder, l *line) {
	var path strings.Builder
	first := 0.0
	end := func() { // of a part without a break
		if path.Len() == 0 {
			return
		}
		if l.area {
			fmt.Fprintf(b, `<path class="area c%d" d="%sV%dH%.1fZ"/>`, l.colour, path.String(), p.begin()+drawnHeight, first)
		}
		fmt.Fprintf(b, `<path class="%s" d="%s"/>`, l.class(), path.String())
		path.Reset()
	}
	for i, y := range l.ys {
		x := p.left(l.xs[i])
		switch {
		case math.IsNaN(y):
			end()
		case path.Len() > 0:
			fmt.Fprintf(&path, "L%.1f %.1f", x, p.top(y))
		default:
			// A point alone is seen as a dot, by the round end of its stroke.
			fmt.Fprintf(&path, "M%.1f %.1fh0", x, p.top(y))
			first = x
		}
	}
	end()
}

func (p *plot) legend(b *strings.Builder) {
	for _, e := range p.entries() {
		y := marginTop + legendRow*e.row
		fmt.Fprintf(b, `<path class="%s" d="M%.1f %dh%d"/>`, e.line.class(), e.left, y, legendDash)
		fmt.Fprintf(b, `<text x="%.1f" y="%d">%s</text>`, e.left+legendDash+5, y+4, html.EscapeString(e.line.name))
	}
}

func number(v float64) string {
	abs := math.Abs(v)
	switch {
	case abs >= 1e6:
		return trim(fmt.Sprintf("%.2f", v/1e6)) + "M"
	case abs >= 1e4:
		return trim(fmt.Sprintf("%.1f", v/1e3)) + "k"
	case abs >= 100 || v == 0:
		return fmt.Sprintf("%.0f", v)
	case abs >= 1:
		return trim(fmt.Sprintf("%.2f", v))
	}
	return trim(fmt.Sprintf("%.4f", v))
}

func trim(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}
