package chart

import (
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/expr"
)

// Text is a text for people: one for every reader, or one for each of some languages, in the order of the file
// (statemachine/DEFINITION.md, "Texts for people"). The zero value is not a text.
type Text []Translation

// Translation is a text in a language. Language is a tag of BCP 47, such as "de" or "pt-BR"; "" stands for every reader.
type Translation struct{ Language, Text string }

// Plain is a text for every reader; that of "" is not a text.
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

// Caption is a Text that is made from an instance's data: exactly one of its fields is set. Built once, then read only.
type Caption struct {
	Fixed Text
	Made  []MadeText
}

// MadeText is a text with expressions, for the readers of a language; "" stands for every reader.
type MadeText struct {
	Language string
	Prose    *Prose
}

// Eval returns the text in a scope, as lines of at most so many characters. One that fails in a language fails in all: readers
// see the same.
func (c *Caption) Eval(s *expr.Scope, most int) (Text, error) {
	if c == nil {
		return nil, nil
	}
	if c.Made == nil {
		return c.Fixed, nil
	}
	var t Text
	for _, m := range c.Made {
		text, err := m.Prose.Text(s)
		if err != nil {
			return nil, err
		}
		if text = CutText(OneLine(text), most); text != "" {
			t = append(t, Translation{m.Language, text})
		}
	}
	return t, nil
}

// NotInTexts are the variables that a text for people may not read, with the reason: it is the same for all readers, and shows
// nothing private.
var NotInTexts = map[string]string{
	"svcPrivate": "it is for the server alone",
	"event":      "the text is made again whenever the data change",
	"user":       "the text is the same for all readers",
	"now":        "the text is made when the data change, not when it is read",
}

// Constant is the text without its expressions.
func (p *Prose) Constant() (text string) {
	for _, part := range p.Parts {
		text += part.Literal
	}
	return text
}

// MaxLanguages bounds the texts of one element.
const MaxLanguages = 64

// Prose is a text for people: parts, of which those with a program are expressions.
type Prose struct {
	Parts []ProsePart
}

// ProsePart is a literal, or an expression.
type ProsePart struct {
	Literal string
	Program *expr.Program
}

// Text makes the text in a scope.
func (p *Prose) Text(s *expr.Scope) (string, error) {
	if p == nil {
		return "", nil
	}
	var b strings.Builder
	for _, part := range p.Parts {
		if part.Program == nil {
			b.WriteString(part.Literal)
			continue
		}
		v, err := part.Program.Value(s)
		if err != nil {
			return "", err
		}
		if v.Kind() == data.String {
			b.WriteString(v.Text())
		} else {
			b.WriteString(string(v))
		}
		if b.Len() > MaxTemplateBytes {
			return "", ErrTemplateTooLarge
		}
	}
	s.Budget.ChargeBytes(b.Len())
	return b.String(), nil
}

// SplitText cuts a text for people into literals and the expressions in ${…}. A ${ whose } is missing is literal.
func SplitText(text string) (parts []string, isExpression []bool) {
	for text != "" {
		start := strings.Index(text, "${")
		end := -1
		if start >= 0 {
			end = expressionEnd(text[start+2:])
		}
		if end < 0 {
			return append(parts, text), append(isExpression, false)
		}
		if start > 0 {
			parts, isExpression = append(parts, text[:start]), append(isExpression, false)
		}
		parts, isExpression = append(parts, text[start+2:start+2+end]), append(isExpression, true)
		text = text[start+2+end+1:]
	}
	return parts, isExpression
}

// expressionEnd is where the } stands that ends an expression: behind those of its maps, and not in its texts. -1: it is missing.
func expressionEnd(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '{':
			depth++
		case '}':
			if depth == 0 {
				return i
			}
			depth--
		case '"', '\'':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		}
	}
	return -1
}

// Expression returns the text inside "${…}", when s is wholly one.
func Expression(s string) (string, bool) {
	if strings.HasPrefix(s, "${") && strings.HasSuffix(s, "}") {
		return s[2 : len(s)-1], true
	}
	return "", false
}
