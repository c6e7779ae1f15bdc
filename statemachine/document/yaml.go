package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
	"go.yaml.in/yaml/v4/plugin/loaderlimits"

	"troupe/statemachine/data"
)

// parseYAML builds the tree of a YAML text. The library reads the grammar; what a scalar means is decided here, because
// the library follows YAML 1.1 in places: it reads 010 as eight, 2026-11-21 as a time and 1e400 as a text.
func parseYAML(c *Collector, src []byte, ended func() error) *Node {
	if !checkUTF8(c, src) {
		return nil
	}
	root, err := composeYAML(&asking{bytes.NewReader(src), ended})
	if err != nil {
		addYAMLError(c, root, err)
		return nil
	}
	if root == nil {
		return &Node{Kind: Null, Line: 1, Column: 1}
	}
	b := yamlBuilder{builder: builder{faults: c}, open: make(map[*yaml.Node]bool)}
	return b.value(root, 0)
}

var errDocuments = errors.New("several documents in one file")

// composeYAML returns the only document of a text, and nil when there is none.
// With errDocuments it returns the second one.
func composeYAML(src io.Reader) (root *yaml.Node, err error) {
	// NB: the library panics on a broken invariant of its own. A file must not end the process.
	defer func() {
		if x := recover(); x != nil {
			err = fmt.Errorf("the YAML reader gave up: %.200v", x)
		}
	}()
	// NB: the library checks aliases only while it decodes into Go values; for nodes the budget of the builder does.
	limits := loaderlimits.New(loaderlimits.DepthValue(data.MaxDepth), loaderlimits.AliasNone())
	loader, err := yaml.NewLoader(src, yaml.WithPlugin(limits))
	if err != nil {
		return nil, err
	}
	// A second document is looked for, but not a third.
	var documents [2]yaml.Node
	for n := range documents {
		if err := loader.Load(&documents[n]); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
	}
	if documents[1].Kind != 0 {
		return &documents[1], errDocuments
	}
	if documents[0].Kind == 0 || len(documents[0].Content) == 0 {
		return nil, nil
	}
	return documents[0].Content[0], nil
}

type asking struct {
	text  *bytes.Reader
	ended func() error
}

func (a *asking) Read(p []byte) (int, error) {
	if err := a.ended(); err != nil {
		return 0, err
	}
	return a.text.Read(p[:min(len(p), 4<<10)])
}

// advice is what to do about the messages of the library that people meet most.
var advice = []struct{ message, suggestion string }{
	{"mapping values are not allowed", `quote a text that contains ": "`},
	{"cannot start any token", "indent with blanks, not tabs; quote a text that begins with @ or `"},
	{"could not find expected ':'", "check the indentation, and that the key has a colon and a blank behind it"},
	{"did not find expected key", "check the indentation, and quote a text that begins with a special character"},
	{"did not find expected ',' or", "close the bracket"},
	{"incompatible YAML document", "leave the %YAML line out; files are read as YAML 1.2"},
	{"invalid Unicode character escape", "write the character itself"},
}

func addYAMLError(c *Collector, second *yaml.Node, err error) {
	if errors.Is(err, errDocuments) {
		c.at(second.Line, second.Column, "%v", err).Suggestion = "keep what is behind the --- in a file of its own"
		return
	}
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		c.at(0, 0, "%v", err)
		return
	}
	reason := load.Message
	if strings.HasPrefix(reason, "unknown anchor") { // it repeats the name in full
		reason = "the alias has no anchor in front of it"
	}
	if load.ContextMsg != "" {
		reason = load.ContextMsg + ": " + reason
	}
	fault := c.at(max(load.Mark.Line, 1), max(load.Mark.Column, 1), "%.300s", reason)
	for _, a := range advice {
		if strings.Contains(reason, a.message) {
			fault.Suggestion = a.suggestion
		}
	}
}

type yamlBuilder struct {
	builder
	// open holds the nodes that are being built: an alias of one of them would
	// have no end.
	open map[*yaml.Node]bool
}

// value returns the node of y, which is inside depth others.
func (b *yamlBuilder) value(y *yaml.Node, depth int) *Node {
	line, column := y.Line, y.Column
	if y.Kind == yaml.AliasNode {
		y = y.Alias
		if b.open[y] {
			b.faults.at(line, column, "an alias inside what it stands for")
			b.stopped = true
			return nil
		}
	}
	n := b.node(Null, line, column)
	if n == nil {
		return nil
	}
	b.checkTag(n, y)
	if y.Kind == yaml.ScalarNode {
		b.scalar(n, y)
		return n
	}
	if depth == data.MaxDepth {
		b.faults.Add(n, "nested deeper than %d", data.MaxDepth)
		b.stopped = true
		return nil
	}
	// NB: an anchor stands for its node from its beginning on, so an alias inside
	// finds it.
	b.open[y] = true
	defer delete(b.open, y)
	if y.Kind == yaml.MappingNode {
		n.Kind = Mapping
		b.fields(n, y, depth)
		return n
	}
	n.Kind = Sequence
	for _, item := range y.Content {
		child := b.value(item, depth+1)
		if b.stopped {
			return nil
		}
		n.Items = append(n.Items, child)
	}
	return n
}

func (b *yamlBuilder) checkTag(n *Node, y *yaml.Node) bool {
	tagged := y.Style&yaml.TaggedStyle != 0 || y.Tag == "!"
	if !tagged || y.Kind == yaml.ScalarNode && y.Tag == "!!str" {
		return true
	}
	b.faults.Add(n, "tags like %s are not used here", data.Quote(y.Tag)).Suggestion = "leave the tag out"
	return false
}

// scalar sets kind and text of n. Only a scalar without quotes, in one of the
// plain styles, can be anything but a string.
func (b *yamlBuilder) scalar(n *Node, y *yaml.Node) {
	const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle
	n.Text = y.Value
	if y.Style&(quoted|yaml.TaggedStyle) != 0 {
		n.Kind = String
		return
	}
	kind, fault := readPlain(y.Value)
	n.Kind = kind
	if fault.Reason != "" {
		b.faults.Add(n, "%s", fault.Reason).Suggestion = fault.Suggestion
	}
}

// fields adds the members of the mapping y. A member whose key has a fault is
// left out, and its value is read all the same, for the faults in it.
func (b *yamlBuilder) fields(n *Node, y *yaml.Node, depth int) {
	first := make(map[string]*Node, len(y.Content)/2)
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, ok := b.key(y.Content[i])
		value := b.value(y.Content[i+1], depth+1)
		if b.stopped {
			return
		}
		if ok {
			b.add(n, first, key, value)
		}
	}
}

// wholeNumber is a number that as a key is its digits.
var wholeNumber = regexp.MustCompile(`^-?(0|[1-9]\d*)$`)

// key returns the node of a key, and false after it has reported a fault.
func (b *yamlBuilder) key(y *yaml.Node) (*Node, bool) {
	n := &Node{Line: y.Line, Column: y.Column}
	if y.Kind != yaml.ScalarNode {
		b.faults.Add(n, "a key must be a text").Suggestion = "quote a text that begins with a special character"
		return nil, false
	}
	if n = b.node(Null, y.Line, y.Column); n == nil {
		return nil, false
	}
	if y.Tag == "!!merge" || y.Value == "<<" && y.Style == 0 {
		b.faults.Add(n, "merge keys are not supported").Suggestion = "write the members out, or quote the key"
		return nil, false
	}
	if !b.checkTag(n, y) {
		return nil, false
	}
	// A plain number may be a fault by itself; then one message is enough.
	before := b.faults.Count()
	b.scalar(n, y)
	if n.Kind == Number && wholeNumber.MatchString(n.Text) { // after: {250: x}
		n.Kind = String
	}
	if n.Kind != String && b.faults.Count() == before {
		b.faults.Add(n, "a key must be a text, and %s is %s", data.Quote(n.Text), n.Kind).Suggestion = "quote it"
	}
	return n, n.Kind == String
}
