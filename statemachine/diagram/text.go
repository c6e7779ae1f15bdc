package diagram

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"troupe/statemachine"
)

// glyphs has the widths of the printable characters of ASCII in a common sans-serif (Helvetica and what has its
// measures), in thousandths of the size, from the blank on.
var glyphs = [...]int{
	278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, // blank to /
	556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556, // 0 to ?
	1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778, // @ to O
	667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, // P to _
	333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, // ` to o
	556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584, // p to ~
}

// reserve is added to estimated widths, in hundredths: a reader's own sans-serif may be wider.
const reserve = 6

type font struct {
	size int  // in tenths of a pixel
	bold bool // a tenth wider
}

func (f font) width(text string) int {
	sum := 0
	for _, r := range text {
		sum += glyphWidth(r)
	}
	if f.bold {
		sum += sum / 14
	}
	return (sum*f.size*(100+reserve) + 999_999) / 1_000_000
}

func glyphWidth(r rune) int {
	switch {
	case r >= ' ' && int(r-' ') < len(glyphs):
		return glyphs[r-' ']
	case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Cf, r):
		return 0
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || r >= 0xFF00 && r < 0xFFF0 || r >= 0x1F000:
		return 1000
	}
	return 620
}

func (f font) height() int { return (f.size*13 + 50) / 100 }

// wrap breaks a text into at most that many lines of at most that width: at blanks, in a word that is longer than a
// line behind signs, and where nothing else helps anywhere. What does not fit is cut, with an ellipsis. The text must
// be valid UTF-8.
func (f font) wrap(text string, width, lines int) []string {
	out := []string{""}
	words := strings.Fields(text)
	for i, word := range words {
		blank := " "
		for _, part := range f.breakable(word, width) {
			last := len(out) - 1
			if out[last] == "" {
				blank = ""
			}
			if longer := out[last] + blank + part; f.width(longer) <= width {
				out[last] = longer
			} else if len(out) == lines {
				rest := strings.Join(append([]string{longer}, words[i+1:]...), " ")
				out[last] = f.cut(rest+"…", width)
				return out
			} else {
				out = append(out, part)
			}
			blank = ""
		}
	}
	return out
}

// breakable splits a word that is longer than a line behind its signs, and the parts that still are anywhere.
func (f font) breakable(word string, width int) (parts []string) {
	if f.width(word) <= width {
		return []string{word}
	}
	for begin := 0; begin < len(word); {
		end := begin + f.fitting(word[begin:], width)
		if sign := strings.LastIndexAny(word[begin:end], ".,_-/:&|"); sign > 0 && end < len(word) {
			end = begin + sign + 1
		}
		parts = append(parts, word[begin:end])
		begin = end
	}
	return parts
}

// fitting is how many bytes of a text fit into a width, one character at least.
func (f font) fitting(text string, width int) int {
	fits := 0
	for i, r := range text {
		end := i + utf8.RuneLen(r)
		if fits > 0 && f.width(text[:end]) > width {
			break
		}
		fits = end
	}
	return fits
}

func (f font) cut(text string, width int) string {
	if f.width(text) <= width {
		return text
	}
	return strings.TrimRight(text[:f.fitting(text, width-f.width("…"))], " …") + "…"
}

// trigger says what a transition waits for, in the words of a reader; empty for an eventless one.
func (w *phrases) trigger(t *statemachine.ChartTransition) string {
	switch t.Trigger {
	case statemachine.Always:
		return ""
	case statemachine.AfterDelay:
		if t.Wait == 0 && t.Delay != "0" {
			return w.after + t.Delay
		}
		return w.after + w.duration(t.Wait)
	case statemachine.OnDone:
		return w.done
	case statemachine.InvokeDone:
		return w.childDone
	case statemachine.InvokeError:
		return w.childFailed
	case statemachine.JobDone:
		return w.jobDone
	case statemachine.JobError:
		return w.jobFailed
	}
	if text := t.Label.For(); text != "" {
		return text
	}
	return t.Event
}

func nodeText(n *statemachine.ChartNode) string {
	if text := n.Label.For(); text != "" {
		return text
	}
	return string(n.ID)
}

func isRenamed(n *statemachine.ChartNode) bool { return nodeText(n) != string(n.ID) }

// guard is the condition of a transition; that of one without a condition behind others of the same trigger is
// called "else".
func (w *phrases) guard(n *statemachine.ChartNode, k int) string {
	t := &n.Transitions[k]
	if t.Guard != "" {
		return strings.Join(strings.Fields(t.Guard), " ")
	}
	for i := range k {
		if before := &n.Transitions[i]; before.Guard != "" && before.Trigger == t.Trigger && before.Event == t.Event {
			return w.otherwise
		}
	}
	return ""
}

// full is transition with the name of an event that has another label.
func (w *phrases) full(n *statemachine.ChartNode, k int) string {
	text, t := w.transition(n, k), &n.Transitions[k]
	if t.Trigger == statemachine.OnEvent && w.trigger(t) != t.Event {
		text += " (" + t.Event + ")"
	}
	return text
}

// transition is the whole label of a transition: "event [guard]".
func (w *phrases) transition(n *statemachine.ChartNode, k int) string {
	text := w.trigger(&n.Transitions[k])
	if guard := w.guard(n, k); guard != "" {
		text = strings.TrimLeft(text+" ["+guard+"]", " ")
	}
	return text
}

// notes are what a node does that is drawn inside it: the children and jobs that it has, and the reactions that do not leave it.
func (w *phrases) notes(n *statemachine.ChartNode) (notes []note) {
	for _, workflow := range n.Invokes {
		text := w.runs + workflow
		notes = append(notes, note{text: text, full: text, transition: -1})
	}
	for _, job := range n.Jobs {
		text := w.job + job
		notes = append(notes, note{text: text, full: text, transition: -1})
	}
	for k := range n.Transitions {
		if len(n.Transitions[k].Targets) == 0 {
			text, full := w.transition(n, k), w.full(n, k)
			if text == "" {
				text, full = w.always, w.always
			}
			notes = append(notes, note{text: text, full: full, transition: k})
		}
	}
	return notes
}

type note struct {
	text       string
	full       string // with what a tooltip says besides
	transition int    // of the node; -1: an invoke
}
