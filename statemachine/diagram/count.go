package diagram

import "strconv"

// Count is how many instances stand at a node.
type Count struct {
	Instances int64
	About     bool // it is an estimate
	AtLeast   bool // there are more
}

// shown is the number that is shown: of an estimate it has two digits, and what is a bound is not rounded up.
func (c Count) shown() int64 {
	number, unit := c.Instances, int64(1)
	for (c.About || c.AtLeast) && number/unit >= 100 {
		unit *= 10
	}
	if !c.AtLeast {
		number += unit / 2
	}
	return number / unit * unit
}

// how says in the attribute data-how what the number is, whatever the language of the text.
func (c Count) how() string {
	switch {
	case c.AtLeast:
		return "over"
	case c.About:
		return "about"
	}
	return "exactly"
}

// count is a number as people read it.
func (w *phrases) count(c Count) string {
	digits := strconv.FormatInt(c.shown(), 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + w.group + digits[i:]
	}
	switch {
	case c.AtLeast:
		return w.over + digits
	case c.About:
		return w.about + digits
	}
	return digits
}

// counts writes how many instances stand at each node, at its upper right corner.
func (w *svgWriter) counts() {
	f := font{size: 110, bold: true}
	for i := range w.chart.Nodes {
		of, ok := w.picture.Counts[i]
		if !ok {
			continue
		}
		b, text := &w.boxes[i], w.words.count(of)
		width := f.width(text) + 12
		x, y := w.left+b.x+b.width-width/2-6, w.top+b.y-8
		w.f(`<g class="count" %s data-count="%d" data-how="%s"><rect x="%d" y="%d" width="%d" height="17" rx="8"/><text x="%d" y="%d" text-anchor="middle">%s</text></g>`+"\n",
			w.nodeData(i), of.shown(), of.how(), x, y, width, x+width/2, y+12, text)
	}
}
