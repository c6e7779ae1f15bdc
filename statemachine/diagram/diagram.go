package diagram

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"troupe/statemachine"
)

// Picture is what is drawn. Its methods may be called by any number of goroutines.
type Picture struct {
	Chart *statemachine.Chart
	// Instance is marked; nil: none is.
	Instance *Instance
	// Reached is marked, as where an instance has been; nil: nothing is. It stands in a picture without an Instance.
	Reached *Reached
	// Languages are those of the reader, the preferred one first: labels are in the first that they are written in.
	Languages []string
	// Counts are how many instances stand at nodes, by the index of the node; nil: they are not shown.
	Counts map[int]Count
}

// Reached says of the nodes and transitions of a chart, by index, which were entered and taken.
type Reached struct {
	Nodes       []bool
	Transitions [][]bool
}

func (p *Picture) isMarked() bool { return p.Instance != nil || p.Reached != nil }

func (p *Picture) translated() *statemachine.Chart {
	c := *p.Chart
	c.Nodes = slices.Clone(c.Nodes)
	for i := range c.Nodes {
		n := &c.Nodes[i]
		n.Label = statemachine.Plain(n.Label.For(p.Languages...))
		n.Transitions = slices.Clone(n.Transitions)
		for k := range n.Transitions {
			n.Transitions[k].Label = statemachine.Plain(n.Transitions[k].Label.For(p.Languages...))
		}
	}
	return &c
}

// Instance is an instance of the chart's workflow and version.
type Instance struct {
	ID string
	// At is where it stands.
	At []statemachine.Position

	steps []Step
	seen  map[string]bool
}

// Step is an entry of the history.
type Step struct {
	// Event is empty for the creation.
	Event      statemachine.EventName
	Start, End []statemachine.Position
}

// Steps is how many entries were added that say something new. Each costs a search through the chart when the picture is drawn.
func (in *Instance) Steps() int { return len(in.steps) }

// Add adds an entry of the instance's history, in any order. What is like one before tells nothing new and takes no
// room, so a history of any length may be added.
func (in *Instance) Add(s Step) {
	key := fmt.Sprintf("%q %q %q", s.Event, s.Start, s.End)
	if in.seen[key] {
		return
	}
	if in.seen == nil {
		in.seen = map[string]bool{}
	}
	in.seen[key] = true
	in.steps = append(in.steps, s)
}

// phrases are what a picture says itself, in one language. The texts of the definition are not among them.
type phrases struct {
	after                         string // before a duration
	done, childDone, childFailed  string
	jobDone, jobFailed            string
	otherwise, always, runs, job  string
	now, been, reached            string // of the legend
	about, over                   string // before a number
	version, instance, everywhere string // below the heading
	chart, stands                 string // formats of the description
	units                         [4]unit
	point, group                  string // of numbers
}

// unit is one of a duration, behind "after".
type unit struct {
	of        time.Duration
	one, many string
}

var english = &phrases{
	after: "after ", done: "done", childDone: "child done", childFailed: "child failed", jobDone: "job done", jobFailed: "job failed", otherwise: "else", always: "always", runs: "runs ", job: "job ",
	now: "where it is now", been: "where it has been", reached: "reached", about: "about ", over: "over ",
	version: " version ", instance: ", instance ", everywhere: ", with the instances of all versions",
	chart: "Statechart of %s with the state machines %s.", stands: " The instance %s stands at %s.",
	units: [...]unit{{24 * time.Hour, "day", "days"}, {time.Hour, "hour", "hours"}, {time.Minute, "minute", "minutes"}, {time.Second, "second", "seconds"}},
	point: ".", group: ",",
}

var german = &phrases{
	after: "nach ", done: "fertig", childDone: "Kind fertig", childFailed: "Kind gescheitert", jobDone: "Auftrag erledigt", jobFailed: "Auftrag gescheitert", otherwise: "sonst", always: "immer", runs: "führt aus: ", job: "Auftrag ",
	now: "steht jetzt hier", been: "war schon hier", reached: "erreicht", about: "etwa ", over: "über ",
	version: " Version ", instance: ", Instanz ", everywhere: ", mit den Instanzen aller Versionen",
	chart: "Zustandsdiagramm von %s mit den Zustandsmaschinen %s.", stands: " Die Instanz %s steht bei %s.",
	units: [...]unit{{24 * time.Hour, "Tag", "Tagen"}, {time.Hour, "Stunde", "Stunden"}, {time.Minute, "Minute", "Minuten"}, {time.Second, "Sekunde", "Sekunden"}},
	point: ",", group: ".",
}

// words are the phrases of the first of the reader's languages that we have, else English.
func (p *Picture) words() *phrases {
	for _, tag := range p.Languages {
		switch language, _, _ := strings.Cut(strings.ToLower(tag), "-"); language {
		case "en":
			return english
		case "de":
			return german
		}
	}
	return english
}

// duration says one with its two largest units, as it is written after: "2 days", "1 hour 30 minutes".
func (w *phrases) duration(d time.Duration) string {
	if seconds := w.units[3]; d >= time.Second && d < time.Minute && d%time.Second != 0 {
		return strings.Replace(strconv.FormatFloat(d.Seconds(), 'f', -1, 64), ".", w.point, 1) + " " + seconds.many
	}
	var parts []string
	for _, unit := range w.units {
		n := int64(d / unit.of)
		if n == 0 || len(parts) == 2 {
			continue
		}
		name := unit.many
		if n == 1 {
			name = unit.one
		}
		parts = append(parts, strconv.FormatInt(n, 10)+" "+name)
		d %= unit.of
	}
	if len(parts) == 0 {
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	}
	return strings.Join(parts, " ")
}

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
