package statemachine

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/expr"
)

// Text is a text for people: one for every reader, or one for each of some languages, in the order of the file
// (statemachine/DEFINITION.md, "Texts for people"). The zero value is no text.
type Text []Translation

// Translation is a text in a language. Language is a tag of BCP 47, such as "de" or "pt-BR"; "" stands for every reader.
type Translation struct{ Language, Text string }

// Plain is a text for every reader; that of "" is no text.
func Plain(text string) Text {
	if text == "" {
		return nil
	}
	return Text{{Text: text}}
}

// All are the texts without their languages.
func (t Text) All() (texts []string) {
	for _, tr := range t {
		texts = append(texts, tr.Text)
	}
	return texts
}

// For returns the text in the first of the reader's languages that there is a text in, else the first text. A tag also
// finds what is written for its language alone ("de-AT" finds "de"), and, after all of these, a variant of it ("de" finds "de-CH").
func (t Text) For(languages ...string) string {
	for _, wanted := range languages {
		for tag := wanted; tag != ""; tag = parentTag(tag) {
			for _, tr := range t {
				if strings.EqualFold(tr.Language, tag) {
					return tr.Text
				}
			}
		}
		base, _, _ := strings.Cut(wanted, "-")
		for _, tr := range t {
			if of, _, _ := strings.Cut(tr.Language, "-"); base != "" && strings.EqualFold(of, base) {
				return tr.Text
			}
		}
	}
	if len(t) == 0 {
		return ""
	}
	return t[0].Text
}

// parentTag is the tag without its last part; "" for a tag of one part (RFC 4647, section 3.4).
func parentTag(tag string) string {
	if i := strings.LastIndexByte(tag, '-'); i > 0 {
		return tag[:i]
	}
	return ""
}

// caption is a Text that is made from an instance's data: exactly one of its fields is set. Built once, then read only.
type caption struct {
	fixed Text
	made  []madeText
}

// madeText is a text with expressions, for the readers of a language; "" stands for every reader.
type madeText struct {
	language string
	prose    *prose
}

// eval returns the text in a scope, as lines of at most so many characters. One that fails in a language fails in all: readers
// see the same.
func (c *caption) eval(s *expr.Scope, most int) (Text, error) {
	if c == nil {
		return nil, nil
	}
	if c.made == nil {
		return c.fixed, nil
	}
	var t Text
	for _, m := range c.made {
		text, err := m.prose.text(s)
		if err != nil {
			return nil, err
		}
		if text = cutText(oneLine(text), most); text != "" {
			t = append(t, Translation{m.language, text})
		}
	}
	return t, nil
}

// captionVariables are what a text for people may not read: it is the same for all readers, and shows nothing private.
var captionVariables = map[string]string{
	"svcPrivate": "it is for the server alone",
	"event":      "the text is made anew whenever the data change",
	"user":       "the text is the same for all readers",
	"now":        "the text is made when the data change, not when it is read",
}

// caption reads a text that may have ${…} anywhere, or a map of languages with such texts; nil when n is nil.
func (b *builder) caption(n *document.Node) *caption {
	if n == nil {
		return nil
	}
	c, hasExpression := &caption{}, false
	add := func(language string, n *document.Node) {
		p := b.captionProse(n)
		if language != "" {
			b.texts().visible(n, p.constant())
		}
		c.made = append(c.made, madeText{language, p})
		hasExpression = hasExpression || slices.ContainsFunc(p.parts, func(p prosePart) bool { return p.program != nil })
	}
	if n.Kind == document.Mapping {
		b.texts().eachLanguage(n, add)
	} else {
		add("", n)
	}
	if hasExpression {
		return c
	}
	for _, m := range c.made {
		if text := m.prose.constant(); text != "" {
			c.fixed = append(c.fixed, Translation{m.language, text})
		}
	}
	c.made = nil
	return c
}

// captionProse reads one text of a caption.
func (b *builder) captionProse(n *document.Node) *prose {
	p := b.prose(n)
	for _, part := range p.parts {
		if part.program == nil {
			continue
		}
		for _, variable := range []string{"svcPrivate", "event", "user", "now"} {
			if part.program.Reads(variable) {
				b.Add(n, "a text for people may not read %s: %s", variable, captionVariables[variable])
			}
		}
	}
	if n.Kind == document.String && strings.TrimSpace(n.Text) == "" {
		b.Add(n, "the text is empty")
	}
	return p
}

// constant is the text without its expressions.
func (p *prose) constant() (text string) {
	for _, part := range p.parts {
		text += part.literal
	}
	return text
}

// maxLanguages bounds the texts of one element.
const maxLanguages = 64

// texts reads texts for people into the definition's faults.
func (b *builder) texts() textReader {
	return textReader{&b.Collector, &b.doubts, b.parser.options.Stored}
}

// textReader reads texts for people. stored: what was accepted once has no new faults.
type textReader struct {
	*document.Collector
	warnings *document.Collector
	stored   bool
}

// ReadText reads a text without expressions, or a map of languages, and adds what is wrong to faults, and what looks like a slip to warnings.
// stored says that it was accepted once; nil has no text.
func ReadText(faults, warnings *document.Collector, n *document.Node, stored bool) Text {
	return textReader{faults, warnings, stored}.words(n)
}

// words reads a text without expressions, or a map of languages; nil when n is nil.
func (r textReader) words(n *document.Node) Text {
	if n == nil {
		return nil
	}
	if n.Kind != document.Mapping {
		return Plain(r.word(n))
	}
	var t Text
	r.eachLanguage(n, func(language string, n *document.Node) { t = append(t, Translation{language, r.word(n)}) })
	return t
}

// eachLanguage calls f with each text of a map of languages.
func (r textReader) eachLanguage(n *document.Node, f func(language string, text *document.Node)) {
	if len(n.Fields) == 0 || len(n.Fields) > maxLanguages {
		r.Add(n, "must have one to %d languages", maxLanguages)
		return
	}
	seen := map[string]bool{}
	for _, field := range n.Fields {
		tag := strings.ToLower(field.Key.Text) // RFC 5646, 2.1.1: the case says nothing
		if seen[tag] && !r.stored {
			r.Add(field.Key, "the language %q stands twice", tag)
		}
		seen[tag] = true
		if !isLanguage(field.Key.Text) {
			r.Add(field.Key, "%q is not a language", data.Shorten(field.Key.Text)).Suggestion = `write a tag such as "en" or "pt-BR"`
			continue
		}
		r.warnOfLanguage(field.Key)
		f(field.Key.Text, field.Value)
	}
}

// word reads one text that has no expression.
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
	if i := strings.IndexFunc(text, func(c rune) bool { return isHidden(c) && !unicode.IsSpace(c) }); i >= 0 && !r.stored {
		hidden, _ := utf8.DecodeRuneInString(text[i:])
		r.Add(n, "the text has %U, a character that cannot be seen", hidden).Suggestion = "leave it out"
	}
}

// isLanguage reports whether text has the shape of a language tag (RFC 5646, section 2.1).
func isLanguage(text string) bool {
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
