package reference

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"slices"
	"strings"

	h "troupe/gateway/hypertext"
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
		Description             h.Raw
		Groups                  []*groupView
		Faults                  []answerView
		Schemas                 []schemaView
		Credentials             []memberView
	}
	groupView struct {
		Name, ID    string
		Description h.Raw
		Operations  []operationView
	}
	operationView struct {
		ID, Method, Path, Summary string
		Description               h.Raw
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
		Description  h.Raw
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
		Type        h.Raw
		Notes       []string
		Description h.Raw
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
	var w h.Writer
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

// schema shows a schema. A reference is a link, with what stands beside it.
func (b *builder) schema(n *document.Node) schemaView {
	if n == nil {
		return schemaView{}
	}
	s := schemaView{Type: b.typeOf(n), Notes: notesOf(n), Description: prose(text(n, "description"))}
	if items := n.Field("items"); items != nil && items.Field("$ref") == nil {
		n = items // the members of what is in the list
	}
	required := n.Field("required")
	for _, member := range fields(n.Field("properties")) {
		s.Members = append(s.Members, memberView{
			Name:     member.Key.Text,
			Required: required != nil && slices.ContainsFunc(required.Items, func(r *document.Node) bool { return r.Text == member.Key.Text }),
			Schema:   b.schema(member.Value),
		})
	}
	return s
}

// typeOf says in a few words what a value is.
func (b *builder) typeOf(n *document.Node) h.Raw {
	switch {
	case n.Field("$ref") != nil:
		_, name := b.follow(n)
		return h.Raw(`<a href="#schema-` + html.EscapeString(name) + `">` + html.EscapeString(name) + `</a>`) // escaped
	case n.Field("const") != nil:
		return codeOf(n.Field("const").Text)
	case n.Field("enum") != nil:
		return joined(n.Field("enum").Items, func(v *document.Node) h.Raw { return codeOf(v.Text) })
	case n.Field("anyOf") != nil:
		return joined(n.Field("anyOf").Items, b.typeOf)
	case text(n, "type") == "array" && n.Field("items") != nil:
		return "array of " + b.typeOf(n.Field("items"))
	case n.Field("type") != nil && n.Field("type").Kind == document.Sequence:
		return joined(n.Field("type").Items, func(v *document.Node) h.Raw { return h.Raw(html.EscapeString(v.Text)) }) // escaped
	}
	return h.Raw(html.EscapeString(text(n, "type"))) // escaped
}

func codeOf(text string) h.Raw {
	return h.Raw("<code>" + html.EscapeString(text) + "</code>") // escaped
}

func joined(nodes []*document.Node, each func(*document.Node) h.Raw) h.Raw {
	var parts []string
	for _, n := range nodes {
		parts = append(parts, string(each(n)))
	}
	return h.Raw(strings.Join(parts, " or ")) // made of HTML
}

func notesOf(n *document.Node) (notes []string) {
	for _, keyword := range []struct{ name, words string }{
		{"format", "%"},
		{"minimum", "from %"},
		{"maximum", "to %"},
		{"minLength", "% or more characters"},
		{"maxLength", "% or fewer characters"},
		{"maxProperties", "% or fewer members"},
		{"pattern", "%"},
	} {
		if value := text(n, keyword.name); value != "" {
			notes = append(notes, strings.Replace(keyword.words, "%", value, 1))
		}
	}
	return notes
}

func (v *pageView) write(w *h.Writer) {
	w.Put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Interface – %s</title>
<link rel="icon" href="favicon.ico">
<style>%s</style>
</head>
<body>
<a class="skip" href="#top">To the description</a>
<nav aria-label="Operations">
<p class="brand">%s <span class="note">interface %s</span></p>
<p><a href="openapi.yaml">YAML</a> · <a href="openapi.json">JSON</a></p>
`, v.Title, h.Raw(style), v.Title, v.Version)
	for _, g := range v.Groups {
		w.Put("<p class=\"group\"><a href=\"#%s\">%s</a></p>\n<ul class=\"operations\">", g.ID, g.Name)
		for _, o := range g.Operations {
			w.Put("\n<li><a href=\"#%s\"><span class=\"method %s\">%s</span> %s</a></li>", o.ID, o.Method, o.Method, o.Summary)
		}
		w.Put("\n</ul>\n")
	}
	w.Put(`<p class="group"><a href="#credentials">Credentials</a></p>
<p class="group"><a href="#answers">Shared answers</a></p>
<p class="group"><a href="#schemas">Schemas</a></p>
</nav>
<main id="top" tabindex="-1">
<h1>%s: the interface</h1>
<p class="lead">%s</p>
%s
`, v.Title, v.Summary, v.Description)
	for _, g := range v.Groups {
		w.Put("<section aria-labelledby=\"%s\">\n<h2 id=\"%s\">%s</h2>\n%s\n", g.ID, g.ID, g.Name, g.Description)
		for _, o := range g.Operations {
			o.write(w)
		}
		w.Put("</section>\n")
	}
	w.Put("<section aria-labelledby=\"credentials\">\n<h2 id=\"credentials\">Credentials</h2>\n")
	members(w, v.Credentials)
	w.Put("</section>\n<section aria-labelledby=\"answers\">\n<h2 id=\"answers\">Shared answers</h2>\n<p>The same answers of many operations. An error has one of the words that are listed for it.</p>\n")
	for _, a := range v.Faults {
		w.Put("<article id=\"answer-%s\"><h3><a href=\"#answer-%s\">%s</a></h3>\n%s", a.Name, a.Name, a.Name, a.Description)
		a.write(w)
		w.Put("</article>\n")
	}
	w.Put("</section>\n<section aria-labelledby=\"schemas\">\n<h2 id=\"schemas\">Schemas</h2>\n")
	for _, s := range v.Schemas {
		w.Put("<article id=\"schema-%s\"><h3><a href=\"#schema-%s\">%s</a></h3>\n%s", s.Name, s.Name, s.Name, s.Description)
		if len(s.Members) > 0 {
			members(w, s.Members)
		} else {
			w.Put("<p>")
			s.writeType(w)
			w.Put("</p>")
		}
		w.Put("</article>\n")
	}
	w.Put("</section>\n</main>\n</body>\n</html>\n")
}

func (o *operationView) write(w *h.Writer) {
	w.Put(`<article id="%s" aria-labelledby="%s-name">
<h3 id="%s-name"><a href="#%s">%s</a></h3>
<p class="address"><span class="method %s">%s</span> <code>%s</code></p>
%s
<p class="facts"><span><b>Operation</b> <code>%s</code></span> <span><b>Credential</b> %s</span>`,
		o.ID, o.ID, o.ID, o.ID, o.Summary, o.Method, o.Method, o.Path, o.Description, o.ID, o.Credentials)
	if o.Privilege != "" {
		w.Put(" <span><b>Privilege</b> <code>%s</code></span>", o.Privilege)
	}
	w.Put("</p>\n")
	if len(o.Parameters) > 0 {
		w.Put("<h4>Parameters</h4>\n")
		members(w, o.Parameters)
	}
	if o.Body != nil {
		w.Put("<h4>Body</h4>\n")
		o.Body.write(w)
	}
	if len(o.Answers) > 0 {
		w.Put("<h4>Answers</h4>\n")
	}
	for _, a := range o.Answers {
		w.Put("<div class=\"answer\"><div class=\"status\"><code>%s</code> %s</div>\n", a.Status, a.Description)
		a.write(w)
		w.Put("</div>\n")
	}
	if len(o.Faults) > 0 {
		w.Put("<details class=\"faults\"><summary>%d refusals:", len(o.Faults))
		for _, a := range o.Faults {
			w.Put(" <code>%s</code>", a.Status)
		}
		w.Put("</summary>\n<dl class=\"members\">")
		for _, a := range o.Faults {
			w.Put("<div><dt><a href=\"#answer-%s\"><code>%s</code> %s</a></dt><dd>%s</dd></div>", a.Name, a.Status, a.Name, a.Description)
		}
		w.Put("</dl></details>\n")
	}
	w.Put("</article>\n")
}

func (a *answerView) write(w *h.Writer) {
	if len(a.Headers) > 0 {
		members(w, a.Headers)
	}
	for _, c := range a.Contents {
		c.write(w)
	}
}

func (c *contentView) write(w *h.Writer) {
	w.Put("<p class=\"content\"><code>%s</code> ", c.Type)
	c.Schema.writeType(w)
	w.Put("</p>\n")
	if len(c.Schema.Members) > 0 {
		members(w, c.Schema.Members)
	}
	for _, e := range c.Examples {
		w.Put("<details><summary>%s</summary><pre tabindex=\"0\">%s</pre></details>\n", e.Name, e.Text)
	}
}

func members(w *h.Writer, all []memberView) {
	w.Put("<dl class=\"members\">\n")
	for _, m := range all {
		w.Put("<div><dt><code>%s</code>", m.Name)
		if m.Place != "" {
			w.Put(" <span class=\"note\">%s</span>", m.Place)
		}
		if m.Required {
			w.Put(" <span class=\"required\">required</span>")
		}
		w.Put(" ")
		m.Schema.writeType(w)
		w.Put("</dt>\n<dd>%s", m.Schema.Description)
		if len(m.Schema.Members) > 0 {
			members(w, m.Schema.Members)
		}
		w.Put("</dd></div>\n")
	}
	w.Put("</dl>\n")
}

func (s *schemaView) writeType(w *h.Writer) {
	if s.Type != "" {
		w.Put("<span class=\"type\">%s</span>", s.Type)
	}
	for _, note := range s.Notes {
		w.Put(" <span class=\"note\">%s</span>", note)
	}
}
