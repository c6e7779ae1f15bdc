package diagram

import (
	"bytes"
	"fmt"
	"strings"

	"troupe/statemachine"
)

// DOT writes the picture in the language of Graphviz. Containers are clusters; the regions of a parallel node are
// clusters with dashed borders.
func (p *Picture) DOT() []byte {
	w := &dotWriter{newLineWriter(p)}
	w.line(0, "digraph %s {", dotText(string(p.Chart.ID)))
	title := string(p.Chart.ID)
	if p.Instance != nil {
		title += w.words.instance + p.Instance.ID
	}
	w.line(1, "graph [label=%s, labelloc=t, labeljust=l, compound=true, fontname=\"Helvetica\", fontsize=14, style=\"rounded\", color=\"#b9c3d3\"];", dotText(title))
	w.line(1, `node [shape=box, style="rounded,filled", fillcolor="#ffffff", color="#7b8798", fontname="Helvetica", fontsize=12, fontcolor="#1d2433"];`)
	w.line(1, `edge [color="#7b8798", fontname="Helvetica", fontsize=10, arrowsize=0.7];`)
	w.machines(w.node, w.transitions)
	w.line(0, "}")
	return w.Bytes()
}

type dotWriter struct{ lineWriter }

func (w *dotWriter) node(depth, i int) {
	n := &w.chart.Nodes[i]
	if len(n.Children) == 0 {
		w.line(depth, "n%d [%s];", i, w.leaf(i))
		return
	}
	w.line(depth, "subgraph cluster_%d {", i)
	style := ""
	if n.Parent >= 0 && w.chart.Nodes[n.Parent].Kind == statemachine.Parallel {
		style = `, style="rounded,dashed"`
	}
	if w.marks.visited[i] {
		style += `, color="#2563eb"`
	}
	w.line(depth+1, "graph [label=%s%s%s];", dotText(w.text(i)), style, w.tooltip(i))
	if n.Kind == statemachine.Compound && len(n.Initial) > 0 {
		w.line(depth+1, `i%d [shape=circle, label="", width=0.14, fillcolor="#7b8798"];`, i)
	}
	for _, c := range n.Children {
		w.node(depth+1, c)
	}
	w.line(depth, "}")
}

func (w *dotWriter) text(i int) string {
	n := &w.chart.Nodes[i]
	lines := []string{nodeText(n)}
	if of, ok := w.picture.Counts[i]; ok {
		lines = append(lines, w.words.count(of))
	}
	for _, of := range w.words.notes(n) {
		lines = append(lines, of.text)
	}
	return strings.Join(lines, "\n")
}

// tooltip has the id of a node that people see by another name.
func (w *dotWriter) tooltip(i int) string {
	if n := &w.chart.Nodes[i]; isRenamed(n) {
		return ", tooltip=" + dotText(string(n.ID))
	}
	return ""
}

func (w *dotWriter) leaf(i int) string {
	n := &w.chart.Nodes[i]
	text, more := w.text(i), ""
	switch n.Kind {
	case statemachine.Final:
		more = ", peripheries=2"
	case statemachine.ShallowHistory:
		text, more = "H", ", shape=circle"
	case statemachine.DeepHistory:
		text, more = "H*", ", shape=circle"
	}
	tone := tones[n.Tone]
	switch {
	case w.marks.now[i]:
		more += fmt.Sprintf(`, fillcolor="%s", color="%s", fontcolor="#ffffff"`, tone.strong, tone.dark)
	case w.marks.visited[i]:
		more += fmt.Sprintf(`, fillcolor="%s", color="#2563eb", penwidth=2`, tone.pale)
	case n.Tone != statemachine.Neutral && !n.Kind.IsHistory():
		more += fmt.Sprintf(`, fillcolor="%s", color="%s"`, tone.pale, tone.strong)
	}
	return "label=" + dotText(text) + more + w.tooltip(i)
}

func (w *dotWriter) transitions(i int) {
	n := &w.chart.Nodes[i]
	for _, to := range n.Initial {
		w.edge(fmt.Sprintf("i%d", i), -1, to, "", w.marks.start[i])
	}
	for _, to := range n.Default {
		w.edge(w.anchor(i), i, to, "", w.marks.start[i])
	}
	for k := range n.Transitions {
		for j, to := range n.Transitions[k].Targets {
			label := ""
			if text := w.words.transition(n, k); j == 0 && text != "" {
				label = "label=" + dotText(strings.Join(noteFont.wrap(clean(text), labelWidthMax, 3), "\n"))
			}
			w.edge(w.anchor(i), i, to, label, w.marks.taken[i][k])
		}
	}
}

// edge writes a line; from is the node that it leaves, -1 for a dot. A line to a cluster leads to a node in it, and is
// cut at its border.
func (w *dotWriter) edge(tail string, from, to int, label string, taken bool) {
	var attributes []string
	if label != "" {
		attributes = append(attributes, label)
	}
	if from >= 0 && len(w.chart.Nodes[from].Children) > 0 && !w.chart.Contains(from, to) {
		attributes = append(attributes, fmt.Sprintf("ltail=cluster_%d", from))
	}
	if len(w.chart.Nodes[to].Children) > 0 && (from < 0 || !w.chart.Contains(to, from)) {
		attributes = append(attributes, fmt.Sprintf("lhead=cluster_%d", to))
	}
	if taken {
		attributes = append(attributes, `color="#2563eb"`, "penwidth=2.2")
	}
	w.line(1, "%s -> %s [%s];", tail, w.anchor(to), strings.Join(attributes, ", "))
}

func (w *dotWriter) anchor(i int) string {
	for len(w.chart.Nodes[i].Children) > 0 {
		if len(w.chart.Nodes[i].Initial) > 0 {
			return fmt.Sprintf("i%d", i)
		}
		i = w.chart.Nodes[i].Children[0]
	}
	return fmt.Sprintf("n%d", i)
}

// dotText quotes a text; a line break in it centres what is before.
func dotText(text string) string {
	lines := strings.Split(text, "\n")
	for k, line := range lines {
		lines[k] = strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(clean(line))
	}
	return `"` + strings.Join(lines, `\n`) + `"`
}

type lineWriter struct {
	bytes.Buffer
	picture *Picture
	chart   *statemachine.Chart
	marks   *marks
	words   *phrases
}

func newLineWriter(p *Picture) lineWriter {
	return lineWriter{picture: p, chart: p.translated(), marks: marksOf(p), words: p.words()}
}

func (w *lineWriter) line(depth int, format string, args ...any) {
	w.WriteString(strings.Repeat("  ", depth))
	fmt.Fprintf(w, format, args...)
	w.WriteByte('\n')
}

func (w *lineWriter) machines(node func(depth, i int), transitions func(i int)) {
	for i := range w.chart.Nodes {
		if w.chart.Nodes[i].Parent < 0 {
			node(1, i)
		}
	}
	for i := range w.chart.Nodes {
		transitions(i)
	}
}
