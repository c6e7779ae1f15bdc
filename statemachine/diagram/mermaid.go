package diagram

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"troupe/statemachine"
)

// Mermaid writes the picture as a state diagram of Mermaid (stateDiagram-v2). Nodes have numbers as names and their
// ids as texts, so that no id can be taken for a part of the language. Mermaid knows no history nodes and no
// transitions between a state and what is in it: these are a state "H" and a note.
func (p *Picture) Mermaid() []byte {
	w := &mermaidWriter{newLineWriter(p)}
	w.line(0, "---")
	w.line(0, "title: %s", strconv.Quote(mermaidTitle(p)))
	w.line(0, "---")
	w.line(0, "stateDiagram-v2")
	w.machines(w.node, w.transitions)
	w.notes()
	w.classes()
	return w.Bytes()
}

func mermaidTitle(p *Picture) string {
	title := p.Chart.Name
	if title == "" {
		title = string(p.Chart.ID)
	}
	if p.Instance != nil {
		title += p.words().instance + p.Instance.ID
	}
	return strings.NewReplacer("<", "‹", ">", "›", "\\", "/").Replace(clean(title))
}

type mermaidWriter struct{ lineWriter }

func (w *mermaidWriter) node(depth, i int) {
	n := &w.chart.Nodes[i]
	text := mermaidText(w.text(i))
	switch n.Kind {
	case statemachine.ShallowHistory:
		text = "H"
	case statemachine.DeepHistory:
		text = "H*"
	}
	if len(n.Children) == 0 {
		w.line(depth, `state "%s" as n%d`, text, i)
		if n.Kind == statemachine.Final {
			w.line(depth, "n%d --> [*]", i)
		}
		return
	}
	w.line(depth, `state "%s" as n%d {`, text, i)
	for k, c := range n.Children {
		if n.Kind == statemachine.Parallel && k > 0 {
			w.line(depth+1, "--")
		}
		w.node(depth+1, c)
	}
	for _, to := range n.Initial {
		w.line(depth+1, "[*] --> n%d", to)
	}
	w.line(depth, "}")
}

// text is how people see a node, with its id where that is another, and how many instances stand there.
func (w *mermaidWriter) text(i int) string {
	n := &w.chart.Nodes[i]
	text := nodeText(n)
	if isRenamed(n) {
		text += " (" + string(n.ID) + ")"
	}
	if of, ok := w.picture.Counts[i]; ok {
		text += ": " + w.words.count(of)
	}
	return text
}

// hasNoArrow reports whether Mermaid draws no arrow between two nodes: one is in the other, or both are one with
// others in it.
func (w *mermaidWriter) hasNoArrow(from, to int) bool {
	if from == to {
		return len(w.chart.Nodes[from].Children) > 0
	}
	return w.chart.Contains(from, to) || w.chart.Contains(to, from)
}

func (w *mermaidWriter) transitions(i int) {
	n := &w.chart.Nodes[i]
	for _, to := range n.Default {
		w.line(1, "n%d --> n%d", i, to)
	}
	for k := range n.Transitions {
		for j, to := range n.Transitions[k].Targets {
			text := mermaidText(w.words.transition(n, k))
			if j > 0 {
				text = "" // the other targets of one transition
			}
			if text != "" {
				text = " : " + text
			}
			if !w.hasNoArrow(i, to) {
				w.line(1, "n%d --> n%d%s", i, to, text)
			}
		}
	}
}

func (w *mermaidWriter) notes() {
	for i := range w.chart.Nodes {
		n := &w.chart.Nodes[i]
		var lines []string
		for _, of := range w.words.notes(n) {
			lines = append(lines, of.text)
		}
		for k := range n.Transitions {
			for _, to := range n.Transitions[k].Targets {
				if w.hasNoArrow(i, to) {
					lines = append(lines, strings.TrimLeft(w.words.transition(n, k)+" → "+nodeText(&w.chart.Nodes[to]), " "))
				}
			}
		}
		if len(lines) == 0 {
			continue
		}
		w.line(1, "note right of n%d", i)
		for _, text := range lines {
			w.line(2, "%s", mermaidText(text))
		}
		w.line(1, "end note")
	}
}

// classes mark where an instance is and where it has been, and tones elsewhere. Mermaid gives no style to single arrows of a state diagram.
func (w *mermaidWriter) classes() {
	if w.picture.isMarked() {
		w.line(1, "classDef now fill:#2563eb,stroke:#1e40af,color:#ffffff")
		w.line(1, "classDef visited fill:#eaf1ff,stroke:#2563eb,stroke-width:2px,color:#1d2433")
	}
	defined := map[statemachine.Tone]bool{}
	for i := range w.chart.Nodes {
		n := &w.chart.Nodes[i]
		switch {
		case len(n.Children) > 0:
		case w.marks.now[i]:
			w.line(1, "class n%d now", i)
		case w.marks.visited[i]:
			w.line(1, "class n%d visited", i)
		case n.Tone != statemachine.Neutral && !n.Kind.IsHistory():
			if tone := tones[n.Tone]; !defined[n.Tone] {
				defined[n.Tone] = true
				w.line(1, "classDef %s fill:%s,stroke:%s,color:#1d2433", n.Tone, tone.pale, tone.strong)
			}
			w.line(1, "class n%d %s", i, n.Tone)
		}
	}
}

var noteEnd = regexp.MustCompile(`(?i)(end) (note)`)

// mermaidText writes the characters that mean something to Mermaid or to a page as their numbers.
func mermaidText(text string) string {
	var b strings.Builder
	for _, r := range clean(text) {
		if strings.ContainsRune("\"#;:<>&%$`\\", r) {
			fmt.Fprintf(&b, "#%d;", r)
			continue
		}
		b.WriteRune(r)
	}
	return noteEnd.ReplaceAllString(b.String(), "$1#32;$2")
}
