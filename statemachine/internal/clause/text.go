package clause

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/internal/chart"
)

// Caption reads a text that may have ${…} anywhere, or a map of languages with such texts; nil when n is nil.
func (b *Reader) Caption(n *document.Node) *chart.Caption {
	if n == nil {
		return nil
	}
	c, hasExpression := &chart.Caption{}, false
	add := func(language string, n *document.Node) {
		p := b.captionProse(n)
		if language != "" {
			b.texts().visible(n, p.Constant())
		}
		c.Made = append(c.Made, chart.MadeText{Language: language, Prose: p})
		hasExpression = hasExpression || slices.ContainsFunc(p.Parts, func(p chart.ProsePart) bool { return p.Program != nil })
	}
	if n.Kind == document.Mapping {
		b.texts().eachLanguage(n, add)
	} else {
		add("", n)
	}
	if hasExpression {
		return c
	}
	for _, m := range c.Made {
		if text := m.Prose.Constant(); text != "" {
			c.Fixed = append(c.Fixed, chart.Translation{Language: m.Language, Text: text})
		}
	}
	c.Made = nil
	return c
}

func (b *Reader) captionProse(n *document.Node) *chart.Prose {
	p := b.Prose(n)
	for _, part := range p.Parts {
		if part.Program == nil {
			continue
		}
		for _, variable := range []string{"svcPrivate", "event", "user", "now"} {
			if part.Program.Reads(variable) {
				b.Add(n, "a text for people may not read %s: %s", variable, chart.NotInTexts[variable])
			}
		}
	}
	if n.Kind == document.String && strings.TrimSpace(n.Text) == "" {
		b.Add(n, "the text is empty")
	}
	return p
}

func (b *Reader) texts() textReader {
	return textReader{&b.Collector, &b.Doubts, b.Stored}
}

// textReader reads texts for people. stored: what was accepted once has no new faults.
type textReader struct {
	*document.Collector
	warnings *document.Collector
	stored   bool
}

// ReadText reads a text without expressions, or a map of languages, and adds what is wrong to faults, and what looks like a slip to warnings.
// stored says that it was accepted once; nil has no text.
func ReadText(faults, warnings *document.Collector, n *document.Node, stored bool) chart.Text {
	return textReader{faults, warnings, stored}.words(n)
}

// words reads a text without expressions, or a map of languages; nil when n is nil.
func (r textReader) words(n *document.Node) chart.Text {
	if n == nil {
		return nil
	}
	if n.Kind != document.Mapping {
		return chart.Plain(r.word(n))
	}
	var t chart.Text
	r.eachLanguage(n, func(language string, n *document.Node) {
		t = append(t, chart.Translation{Language: language, Text: r.word(n)})
	})
	return t
}

func (r textReader) eachLanguage(n *document.Node, f func(language string, text *document.Node)) {
	if len(n.Fields) == 0 || len(n.Fields) > chart.MaxLanguages {
		r.Add(n, "must have one to %d languages", chart.MaxLanguages)
		return
	}
	seen := map[string]bool{}
	for _, field := range n.Fields {
		tag := strings.ToLower(field.Key.Text) // RFC 5646, 2.1.1: the case says nothing
		if seen[tag] && !r.stored {
			r.Add(field.Key, "the language %q stands twice", tag)
		}
		seen[tag] = true
		if !IsLanguage(field.Key.Text) {
			r.Add(field.Key, "%q is not a language", data.Shorten(field.Key.Text)).Suggestion = `write a tag such as "en" or "pt-BR"`
			continue
		}
		r.warnOfLanguage(field.Key)
		f(field.Key.Text, field.Value)
	}
}

func (r textReader) word(n *document.Node) string {
	text := r.Text(n)
	if strings.Contains(text, "${") {
		r.Add(n, "this text cannot have an expression")
	}
	if n.Kind == document.String && strings.TrimSpace(text) == "" {
		r.Add(n, "the text is empty")
	}
	r.visible(n, text)
	return text
}

// visible holds that a text has no characters that people cannot see and that change how they see others.
func (r textReader) visible(n *document.Node, text string) {
	if i := strings.IndexFunc(text, func(c rune) bool { return chart.IsHidden(c) && !unicode.IsSpace(c) }); i >= 0 && !r.stored {
		hidden, _ := utf8.DecodeRuneInString(text[i:])
		r.Add(n, "the text has %U, a character that cannot be seen", hidden).Suggestion = "leave it out"
	}
}

// IsLanguage reports whether text has the shape of a language tag (RFC 5646, section 2.1).
func IsLanguage(text string) bool {
	parts := strings.Split(text, "-")
	for i, part := range parts {
		if len(part) < 1 || len(part) > 8 || i == 0 && len(part) < 2 {
			return false
		}
		for _, c := range []byte(part) {
			letter := c|0x20 >= 'a' && c|0x20 <= 'z'
			if !letter && (i == 0 || c < '0' || c > '9') {
				return false
			}
		}
	}
	return true
}
