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
	plotWidth, wideWidth    = 640, 1290
	marginLeft, marginRight = 58, 20
	drawnTop, drawnHeight   = 14, 226
	drawnBottom             = drawnTop + drawnHeight
	plotHeight              = drawnBottom + 44
)

// plot is lines over an axis, written as SVG below a legend. Colours come from the page (page.css), so that they fit light
// and dark.
type plot struct {
	title  string // read by those who do not see it
	x, y   axis
	lines  []line
	shaded []span // along x
	width  int
}

// line is a row of points. A NaN breaks it.
type line struct {
	name   string // empty: it is the only one
	colour int    // 1 to colours
	dashed bool
	area   bool // filled down to the axis
	xs, ys []float64
}

const colours = 6

func (l *line) class() string {
	class := fmt.Sprintf("line c%d", l.colour)
	if l.dashed {
		class += " dashed"
	}
	return class
}

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

// linear is an axis from 0 to at least the end, with about n ticks.
func linear(label string, to float64, n int) axis {
	if !(to > 0) {
		to = 1
	}
	step := niceStep(to / float64(n))
	a := axis{label: label, to: math.Ceil(to/step-1e-9) * step}
	for k := 0; float64(k)*step <= a.to+step/2; k++ {
		a.ticks = append(a.ticks, tick{float64(k) * step, number(float64(k) * step)})
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

// ticksMax is how many ticks of a logarithmic axis are all shown; of more, only the powers of ten.
const ticksMax = 9

func logarithmic(label string, least, most float64) axis {
	a := axis{label: label, log: true}
	var powers []tick
	for d := math.Floor(math.Log10(least)); a.to < most; d++ {
		for _, m := range []float64{1, 2, 5} {
			v := m * math.Pow(10, d)
			if v*2.5 < least || a.to >= most {
				continue
			}
			a.to = v
			a.ticks = append(a.ticks, tick{v, number(v)})
			if m == 1 {
				powers = append(powers, a.ticks[len(a.ticks)-1])
			}
		}
	}
	a.from = a.ticks[0].at
	if len(a.ticks) > ticksMax {
		a.ticks = powers
	}
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
	return linear(label, most, 5)
}

// valueAxis begins with 0.
func valueAxis(label string, lines []line) axis {
	most := 0.0
	for _, l := range lines {
		for _, v := range l.ys {
			if v > most { // NB: not NaN
				most = v
			}
		}
	}
	return linear(label, most, 5)
}

func (p *plot) left(x float64) float64 {
	return marginLeft + p.x.part(x)*float64(p.width-marginLeft-marginRight)
}

func (p *plot) top(y float64) float64 { return drawnTop + (1-p.y.part(y))*drawnHeight }

func (p *plot) svg() hypertext.Raw {
	if p.width == 0 {
		p.width = plotWidth
	}
	var b strings.Builder
	put := func(format string, values ...any) { fmt.Fprintf(&b, format, values...) }
	for i := range p.lines {
		if l := &p.lines[i]; l.name != "" {
			put(`<span class="key %s">%s</span>`, l.class(), html.EscapeString(l.name))
		}
	}
	put(`<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`, p.width, plotHeight, html.EscapeString(p.title))
	for _, s := range p.shaded {
		from, to := p.left(s.from), p.left(s.to)
		put(`<rect class="gap" x="%.1f" y="%d" width="%.1f" height="%d"/>`, from, drawnTop, math.Max(to-from, 1), drawnHeight)
	}
	right := p.width - marginRight
	for _, t := range p.y.ticks {
		y := p.top(t.at)
		put(`<line class="grid" x1="%d" y1="%.1f" x2="%d" y2="%.1f"/>`, marginLeft, y, right, y)
		put(`<text class="end" x="%d" y="%.1f">%s</text>`, marginLeft-6, y+4, t.text)
	}
	for _, t := range p.x.ticks {
		x := p.left(t.at)
		put(`<line class="grid" x1="%.1f" y1="%d" x2="%.1f" y2="%d"/>`, x, drawnTop, x, drawnBottom)
		put(`<text class="middle" x="%.1f" y="%d">%s</text>`, x, drawnBottom+16, t.text)
	}
	put(`<path class="axis" d="M%d %dV%dH%d"/>`, marginLeft, drawnTop, drawnBottom, right)
	put(`<text class="middle" x="%d" y="%d">%s</text>`, (marginLeft+right)/2, plotHeight-8, p.x.label)
	put(`<text class="middle" transform="translate(13 %d) rotate(-90)">%s</text>`, drawnTop+drawnHeight/2, p.y.label)
	for i := range p.lines {
		p.draw(&b, &p.lines[i])
	}
	put(`</svg>`)
	return hypertext.Raw(b.String()) // names are escaped above, and all other texts are ours
}

func (p *plot) draw(b *strings.Builder, l *line) {
	var path strings.Builder
	first := 0.0
	end := func() { // of a part without a break
		if path.Len() == 0 {
			return
		}
		if l.area {
			fmt.Fprintf(b, `<path class="area c%d" d="%sV%dH%.1fZ"/>`, l.colour, path.String(), drawnBottom, first)
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

func trim(s string) string { return strings.TrimRight(strings.TrimRight(s, "0"), ".") }
