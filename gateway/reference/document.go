package reference

import (
	"fmt"
	"strings"

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

// JSON returns the description as JSON, its members in their order. The bytes are
// the caller's.
func (d *Document) JSON() ([]byte, error) {
	value, err := d.root.Data()
	if err != nil {
		return nil, fmt.Errorf("write the description: %w", err)
	}
	return append([]byte(nil), value...), nil
}

// resolve follows the reference of a node, if it is one, and returns the name that
// it has among the components.
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

// text returns the text of a member, "" when there is none.
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
