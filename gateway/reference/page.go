package reference

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"troupe/gateway/hypertext"
	"troupe/statemachine/document"
)

//go:embed page.css
var style string

// Policy is the Content-Security-Policy of the page: its own style, one icon from the
// server that sent it, and nothing else.
var Policy = "default-src 'none'; style-src '" + hashOf(style) + "'; img-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

func hashOf(style string) string {
	sum := sha256.Sum256([]byte(style))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// What the page shows.
type (
	pageView struct {
		Title, Version, Summary string
		Description             hypertext.Raw
		Groups                  []*groupView
		Faults                  []answerView
		Schemas                 []schemaView
		Credentials             []memberView
	}
	groupView struct {
		Name, ID    string
		Description hypertext.Raw
		Operations  []operationView
	}
	operationView struct {
		ID, Method, Path, Summary string
		Description               hypertext.Raw
		Credentials, Privilege    string
		Parameters                []memberView
		Body                      *contentView
		Answers                   []answerView
		// Faults are the statuses whose answers are shared by many operations.
		Faults []answerView
	}
	// answerView is an answer; of a shared one Name is set.
	answerView struct {
		Status, Name string
		Description  hypertext.Raw
		Headers      []memberView
		Contents     []contentView
	}
	contentView struct {
		Type     string // the media type
		Schema   schemaView
		Examples []exampleView
	}
	exampleView struct{ Name, Text string }
	schemaView  struct {
		Name        string
		Type        hypertext.Raw
		Notes       []string
		Description hypertext.Raw
		Members     []memberView
	}
	// memberView is a member of an object, a parameter or a header.
	memberView struct {
		Name, Place string
		Required    bool
		Schema      schemaView
	}
)

// Page returns the page. An error means that the description is broken.
func (d *Document) Page() ([]byte, error) {
	b := builder{Document: d}
	view := b.page()
	if b.err != nil {
		return nil, fmt.Errorf("show the description: %w", b.err)
	}
	var w hypertext.Writer
	view.write(&w)
	return []byte(w.Raw()), nil
}

// builder makes the view. It keeps the first error.
type builder struct {
	*Document
	err error
}

func (b *builder) follow(n *document.Node) (target *document.Node, name string) {
	target, name, err := b.resolve(n)
	if err != nil && b.err == nil {
		b.err = err
	}
	return target, name
}

func (b *builder) page() *pageView {
	info, components := b.root.Field("info"), b.root.Field("components")
	view := &pageView{
		Title: text(info, "title"), Version: text(info, "version"), Summary: text(info, "summary"), Description: prose(text(info, "description")),
	}
	for _, tag := range items(b.root.Field("tags")) {
		name := text(tag, "name")
		id := "group-" + strings.ToLower(strings.ReplaceAll(name, " ", "-"))
		view.Groups = append(view.Groups, &groupView{Name: name, ID: id, Description: prose(text(tag, "description"))})
	}
	for _, path := range fields(b.root.Field("paths")) {
		for _, method := range path.Value.Fields {
			if text(method.Value, "operationId") == "" {
				continue // what its operations share
			}
			tag := method.Value.Field("tags").Items[0].Text
			i := slices.IndexFunc(view.Groups, func(g *groupView) bool { return g.Name == tag })
			view.Groups[i].Operations = append(view.Groups[i].Operations, b.operation(path, method))
		}
	}
	for _, answer := range fields(components.Field("responses")) {
		a := b.answer("", answer.Value)
		a.Name = answer.Key.Text
		view.Faults = append(view.Faults, a)
	}
	for _, schema := range fields(components.Field("schemas")) {
		s := b.schema(schema.Value)
		s.Name = schema.Key.Text
		view.Schemas = append(view.Schemas, s)
	}
	for _, scheme := range fields(components.Field("securitySchemes")) {
		place := text(scheme.Value, "in") + " " + text(scheme.Value, "name")
		view.Credentials = append(view.Credentials, memberView{Name: scheme.Key.Text, Place: place, Schema: schemaView{Description: prose(text(scheme.Value, "description"))}})
	}
	return view
}

func (b *builder) operation(path, method document.Field) operationView {
	n := method.Value
	o := operationView{
		ID: text(n, "operationId"), Method: strings.ToUpper(method.Key.Text), Path: path.Key.Text, Summary: text(n, "summary"),
		Description: prose(text(n, "description")), Credentials: b.credentials(n), Privilege: text(n, "x-privilege"),
	}
	for _, p := range slices.Concat(items(path.Value.Field("parameters")), items(n.Field("parameters"))) {
		p, _ = b.follow(p)
		o.Parameters = append(o.Parameters, b.member(text(p, "name"), text(p, "in"), p))
	}
	for _, content := range fields(n.Field("requestBody").Field("content")) {
		c := b.content(content)
		o.Body = &c
	}
	for _, response := range fields(n.Field("responses")) {
		answer, name := b.follow(response.Value)
		a := b.answer(response.Key.Text, answer)
		if a.Name = name; name != "" && response.Key.Text[0] > '3' {
			o.Faults = append(o.Faults, a)
			continue
		}
		o.Answers = append(o.Answers, a)
	}
	return o
}

// credentials says what an operation takes.
func (b *builder) credentials(operation *document.Node) string {
	requirements := operation.Field("security")
	if requirements == nil {
		requirements = b.root.Field("security")
	}
	var names []string
	for _, requirement := range items(requirements) {
		for _, scheme := range requirement.Fields {
			names = append(names, scheme.Key.Text)
		}
	}
	switch {
	case len(names) == 0:
		return "none"
	case len(names) == 1:
		return "a session"
	}
	return "a session or an API token"
}

func (b *builder) answer(status string, n *document.Node) answerView {
	a := answerView{Status: status, Description: prose(text(n, "description"))}
	for _, header := range fields(n.Field("headers")) {
		target, _ := b.follow(header.Value)
		a.Headers = append(a.Headers, b.member(header.Key.Text, "", target))
	}
	for _, content := range fields(n.Field("content")) {
		a.Contents = append(a.Contents, b.content(content))
	}
	return a
}

// member is a parameter or a header, whose schema may have a description beside it.
func (b *builder) member(name, place string, n *document.Node) memberView {
	m := memberView{Name: name, Place: place, Required: text(n, "required") == "true", Schema: b.schema(n.Field("schema"))}
	if own := text(n, "description"); own != "" {
		m.Schema.Description = prose(own)
	}
	return m
}

func (b *builder) content(f document.Field) contentView {
	c := contentView{Type: f.Key.Text, Schema: b.schema(f.Value.Field("schema"))}
	for _, example := range fields(f.Value.Field("examples")) {
		target, _ := b.follow(example.Value)
		name := text(target, "summary")
		if name == "" {
			name = "Example"
		}
		c.Examples = append(c.Examples, exampleView{name, b.indented(target.Field("value"))})
	}
	return c
}

// indented writes an example: a text as it is, all else as JSON.
func (b *builder) indented(n *document.Node) string {
	if n != nil && n.Kind == document.String {
		return n.Text
	}
	value, err := n.Data()
	var out bytes.Buffer
	if err == nil {
		err = json.Indent(&out, value, "", "  ")
	}
	if err != nil && b.err == nil {
		b.err = err
	}
	return out.String()
}
