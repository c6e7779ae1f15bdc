// Package reference turns the description of the interface, gateway/openapi.yaml, into what people and programs read:
// JSON, and a page that needs no script and no other server.
//
//	openapi.yaml ──Parse──► Document ──┬── JSON ──► /openapi.json
//	                                   └── Page ──► /docs
//
// The page knows the parts of OpenAPI 3.1 that the document uses, and Page refuses a reference that leads nowhere. Texts
// are paragraphs, lists, `code` and **strong**; all of them are escaped. A Document may be shared.
package reference

import (
	"fmt"
	"html"
	"regexp"
	"strings"

	"troupe/gateway/hypertext"
	"troupe/statemachine/document"
)

// Document is a description of an interface.
type Document struct{ root *document.Node }

// Parse reads a description, YAML or JSON.
func Parse(source []byte) (*Document, error) {
	root, err := document.Parse("openapi.yaml", source)
	if err != nil {
		return nil, fmt.Errorf("parse the description: %w", err)
	}
	return &Document{root}, nil
}

// JSON returns the description as JSON, its members in their order. The bytes are the caller's.
func (d *Document) JSON() ([]byte, error) {
	value, err := d.root.Data()
	if err != nil {
		return nil, fmt.Errorf("write the description: %w", err)
	}
	return append([]byte(nil), value...), nil
}

// resolve follows the reference of a node, if it is one, and returns the name that it has among the components.
func (d *Document) resolve(n *document.Node) (target *document.Node, name string, err error) {
	reference := n.Field("$ref")
	if reference == nil {
		return n, "", nil
	}
	path, found := strings.CutPrefix(reference.Text, "#/components/")
	kind, name, whole := strings.Cut(path, "/")
	if target = d.root.Field("components").Field(kind).Field(name); !found || !whole || target == nil {
		return nil, "", fmt.Errorf("line %d: the reference %q leads nowhere", reference.Line, reference.Text)
	}
	return target, name, nil
}

func text(n *document.Node, name string) string {
	if field := n.Field(name); field != nil {
		return field.Text
	}
	return ""
}

func fields(n *document.Node) []document.Field {
	if n == nil {
		return nil
	}
	return n.Fields
}

func items(n *document.Node) []*document.Node {
	if n == nil {
		return nil
	}
	return n.Items
}

var (
	code   = regexp.MustCompile("`([^`]+)`")
	strong = regexp.MustCompile(`\*\*([^*]+)\*\*`)
)

// prose returns a text of the description as HTML: paragraphs and lists, a blank
// line between them, with `code` and **strong** in them.
func prose(text string) hypertext.Raw {
	var b strings.Builder
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		switch {
		case block == "":
		case strings.HasPrefix(block, "- "):
			b.WriteString("<ul>")
			for item := range strings.SplitSeq(block[len("- "):], "\n- ") {
				b.WriteString("<li>" + inline(item) + "</li>")
			}
			b.WriteString("</ul>\n")
		default:
			b.WriteString("<p>" + inline(block) + "</p>\n")
		}
	}
	return hypertext.Raw(b.String()) // inline has escaped it
}

func inline(text string) string {
	text = html.EscapeString(strings.TrimSpace(text))
	// NB: what stands between backticks is cut out first, so that its stars stay.
	var b strings.Builder
	for text != "" {
		at := code.FindStringSubmatchIndex(text)
		if at == nil {
			break
		}
		b.WriteString(strong.ReplaceAllString(text[:at[0]], "<strong>$1</strong>") + "<code>" + text[at[2]:at[3]] + "</code>")
		text = text[at[1]:]
	}
	return b.String() + strong.ReplaceAllString(text, "<strong>$1</strong>")
}
