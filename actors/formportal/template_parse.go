package formportal

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"troupe/actors/form"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/schema"
)

// TemplateText is a template's file with what it refers to.
type TemplateText struct {
	Kind     form.Kind
	File     string // the name that faults show, and its extension says YAML or JSON
	Text     []byte
	Read     func(name string) ([]byte, error) // Read returns a file beside the template, named relative to it; nil: there are none
	Modified time.Time                         // when the file was last changed
}

// Known is what a template may refer to.
type Known struct {
	HasRole func(id string) bool // HasRole reports whether there is such a role; nil: all are there
	// Workflow returns a workflow's definition. Nil: nothing is known of any.
	Workflow         func(id string) (*statemachine.Definition, bool)
	Roles, Workflows []string // Roles and Workflows are the existing names, for suggestions
}

// reservedID is not a template's: the address of its page would be one of the form runtime's own, form-runtime/api/….
const reservedID = "api"

// ParseTemplate reads and checks one file. The error is document.Faults with all faults; the template is nil then, or
// has Warnings only.
func ParseTemplate(src TemplateText, known Known) (*Template, error) {
	tree, err := document.Parse(src.File, src.Text)
	if err != nil {
		return nil, err
	}
	p := &templateParser{
		Collector: document.Collector{File: src.File},
		warnings:  document.Collector{File: src.File},
		known:     known,
		read:      src.Read,
		t:         &Template{Kind: src.Kind, Enabled: true, Modified: src.Modified.Truncate(time.Millisecond).UTC()},
	}
	p.template(tree)
	if p.t.Warnings = append(p.warnings.Faults(), p.warningsBeside...); len(p.t.Warnings) == 0 {
		p.t.Warnings = nil
	}
	faults := append(p.Faults(), p.beside...)
	switch {
	case len(faults) > 0 && p.t.Warnings != nil:
		return &Template{Warnings: p.t.Warnings}, faults
	case len(faults) > 0:
		return nil, faults
	}
	p.t.Digest = form.DigestOf(p.t.schema.Text())
	return p.t, nil
}

var (
	templateKeys  = []string{"$schema", "id", "name", "description", "enabled", "access", "workflows", "schema", "ui", "submit", "items"}
	formKeys      = []string{"workflows", "schema", "submit"} // not of checklists
	checklistKeys = []string{"items"}                         // not of forms
	accessKeys    = []string{"roles"}
	itemKeys      = []string{"id", "label", "help", "required"}
)

const (
	// maxNameChars bounds the display name of a template, which is kept with each form, and the label of an item.
	maxNameChars = 200
	maxTextChars = 2000 // maxTextChars bounds its description, which lists have, and the help of an item
	maxItems     = 1000 // maxItems bounds the items of a checklist
)

type templateParser struct {
	document.Collector
	warnings document.Collector
	known    Known
	read     func(name string) ([]byte, error)
	t        *Template

	beside, warningsBeside document.Faults // of files that the schema refers to
}

func (p *templateParser) suggest(n *document.Node, word string, among []string, reason string, args ...any) {
	p.Add(n, reason, args...).Suggestion = document.DidYouMean(word, among)
}

func (p *templateParser) template(n *document.Node) {
	p.Known(n, templateKeys...)
	if n.Kind != document.Mapping {
		return
	}
	t := p.t
	t.ID = p.id(n, "the template")
	if t.ID == reservedID {
		p.Add(n.Field("id"), "the id %q is taken: addresses of the form runtime begin with it", reservedID).Suggestion = "choose another id"
	}
	t.Name, t.Description = p.atMost(n, "name", maxNameChars), p.atMost(n, "description", maxTextChars)
	if t.Name == nil {
		t.Name = statemachine.Plain(t.ID)
	}
	if enabled := n.Field("enabled"); enabled != nil {
		t.Enabled = p.Bool(enabled)
	}
	p.access(n)
	if ui := n.Field("ui"); ui != nil {
		t.UI = p.object(ui)
		p.checkHints(ui, hintTexts)
	}
	if t.Kind == form.KindChecklist {
		p.refuse(n, "a checklist", formKeys...)
		p.items(n)
		return
	}
	p.refuse(n, "a form", checklistKeys...)
	t.Workflows = p.names(n.Field("workflows"), "workflow", p.hasWorkflow, p.known.Workflows)
	if workflows := n.Field("workflows"); workflows == nil {
		t.AnyWorkflow = true
	} else {
		p.creatable(workflows)
	}
	p.formSchema(n)
	p.fillable(n)
	p.submit(n)
}

func (p *templateParser) atMost(n *document.Node, key string, most int) statemachine.Text {
	t := p.text(n.Field(key))
	for _, text := range t.All() {
		if utf8.RuneCountInString(text) > most {
			p.Add(n.Field(key), "the %s has more than %d characters", key, most)
		}
	}
	return t
}

// refuse adds a fault for each key that belongs to the other kind.
func (p *templateParser) refuse(n *document.Node, what string, keys ...string) {
	for _, f := range n.Fields {
		if slices.Contains(keys, f.Key.Text) {
			p.Add(f.Key, "%s cannot have %q", what, f.Key.Text)
		}
	}
}

// id reads the id of the template or of an item, which become a part of a path and of a key; "" after a fault.
func (p *templateParser) id(n *document.Node, what string) string {
	field := n.Field("id")
	if field == nil {
		p.Add(n, "%s has no id", what)
		return ""
	}
	id := p.Text(field)
	if field.Kind != document.String { // a fault already
		return ""
	}
	if !statemachine.IsIdentifier(id) {
		p.Add(field, "%s is not an identifier", data.Quote(id)).
			Suggestion = "1 to 128 of A-Z a-z 0-9 . _ ~ -, starting with a letter or digit"
		return ""
	}
	return id
}

// A template that nobody is offered is a fault unless the template is switched off.
func (p *templateParser) access(n *document.Node) {
	access := n.Field("access")
	if access == nil {
		access = n
	} else {
		p.Known(access, accessKeys...)
		roles := access.Field("roles")
		p.t.Roles = p.names(roles, "role", p.known.HasRole, p.known.Roles)
		if access.Kind != document.Mapping || roles != nil && !isEmptyList(roles) {
			return // whatever is wrong has its fault
		}
	}
	if p.t.Enabled {
		p.Add(access, "no role may use the template").Suggestion = "name some: access: {roles: [...]}, or switch it off: enabled: false"
	}
}

func isEmptyList(n *document.Node) bool { return n.Kind == document.Sequence && len(n.Items) == 0 }

// names reads a list of distinct names. has reports whether there is such a name; a nil has takes all.
func (p *templateParser) names(n *document.Node, what string, has func(string) bool, among []string) []string {
	if n == nil {
		return nil
	}
	items := n.Items
	if n.Kind != document.Sequence {
		if items = []*document.Node{n}; n.Kind != document.String {
			p.Texts(n) // has the fault
			return nil
		}
	}
	var names []string
	for _, item := range items {
		name := p.Text(item)
		switch {
		case item.Kind != document.String: // a fault already
		case slices.Contains(names, name):
			p.Add(item, "%s %s is there twice", what, data.Quote(name))
		case has != nil && !has(name):
			p.suggest(item, name, among, "unknown %s %s", what, data.Quote(name))
		default:
			names = append(names, name)
		}
	}
	return names
}

func (p *templateParser) hasWorkflow(id string) bool {
	if p.known.Workflow == nil {
		return true
	}
	_, ok := p.known.Workflow(id)
	return ok
}

func (p *templateParser) object(n *document.Node) data.Value {
	if n.Kind != document.Mapping {
		p.Add(n, "expected %s, found %s", document.Mapping, n.Kind)
		return nil
	}
	v, err := n.Data()
	if err != nil {
		p.Add(n, "%v", err)
		return nil
	}
	return v
}

// The top of a schema says that it is of an object, since that is what a form is sent as and what a page is made from.
func (p *templateParser) formSchema(n *document.Node) {
	field := n.Field("schema")
	if field == nil {
		p.Add(n, "the form has no schema").Suggestion = "say what is filled in: schema: {type: object, properties: {...}}"
		return
	}
	doc := p.object(field)
	if doc == nil {
		return
	}
	if kind, _ := doc.Lookup("type"); !kind.TextIs("object") {
		at := field
		if kind := field.Field("type"); kind != nil {
			at = kind
		}
		p.Add(at, "JSON Schema: the type of a form's data must be object").Suggestion = "type: object"
		return
	}
	p.checkSchema(p.own(), field)
	schema.WarnOfKeywords(&p.warnings, field)
	var read func(string) ([]byte, error)
	if p.read != nil {
		read = p.readChecked
	}
	texts, err := bundle(doc, read)
	if err == nil {
		plain, several := plainSchema(texts)
		if p.t.Schema = texts; several {
			p.t.Schema, p.t.texts = plain, texts
		}
		p.t.schema, err = schema.Compile(p.t.Schema, nil)
	}
	if err != nil {
		p.Add(schema.FaultAt(field, err), "JSON Schema: %v", err)
		return
	}
}

func (p *templateParser) items(n *document.Node) {
	field := n.Field("items")
	if field == nil || isEmptyList(field) {
		if field == nil {
			field = n
		}
		p.Add(field, "the checklist has no items").Suggestion = "items: [{id: ..., label: ...}]"
		return
	}
	if field.Kind != document.Sequence {
		p.Add(field, "expected %s, found %s", document.Sequence, field.Kind)
		return
	}
	if len(field.Items) > maxItems {
		p.Add(field, "the checklist has more than %d items", maxItems)
		return
	}
	seen := map[string]bool{}
	for _, item := range field.Items {
		p.Known(item, itemKeys...)
		if item.Kind != document.Mapping {
			continue
		}
		i := Item{
			ID: p.id(item, "the item"), Label: p.atMost(item, "label", maxNameChars),
			Help: p.atMost(item, "help", maxTextChars), Required: p.Bool(item.Field("required")),
		}
		if i.ID != "" && seen[i.ID] {
			p.Add(item.Field("id"), "item %q is there twice", i.ID)
		}
		seen[i.ID] = true
		if i.Label == nil {
			i.Label = statemachine.Plain(i.ID)
		}
		p.t.Items = append(p.t.Items, i)
	}
	schema, err := schema.Compile(checklistSchema(p.t.Items), nil)
	if err != nil {
		p.Add(field, "JSON Schema: %v", err)
	}
	p.t.schema = schema
}

// hintTexts are hints that are texts for people, and optionTexts those of ui:options. Of enumNames each element is one.
var (
	hintTexts   = []string{"ui:title", "ui:description", "ui:help", "ui:placeholder", "ui:enumNames"}
	optionTexts = []string{"title", "description", "help", "placeholder", "enumNames"}
)

// hintKinds are hints that the page reads itself, and what they must be.
var hintKinds = map[string]document.Kind{
	"ui:order": document.Sequence, "ui:widget": document.String, "ui:options": document.Mapping, "ui:currency": document.String, "ui:sums": document.Sequence,
}

// otherHints are those that the page's library knows, react-jsonschema-form 6, and other renderers of its kind.
var otherHints = strings.Fields(`ui:accept ui:addable ui:allowClearTextInputs ui:autocapitalize ui:autocomplete ui:autofocus ui:classNames
	ui:col ui:columns ui:condition ui:copyable ui:definitions ui:disabled ui:duplicateKeySuffixSeparator ui:emptyValue
	ui:enableMarkdownInDescription ui:enableMarkdownInHelp ui:enableOptionalDataFieldForType ui:enumDisabled ui:enumOrder ui:field
	ui:fieldReplacesAnyOrOneOf ui:filePreview ui:format ui:globalOptions ui:hideClearButton ui:hideError ui:hideNowButton ui:inline
	ui:inputType ui:label ui:layoutGrid ui:optionsSchemaSelector ui:orderable ui:readonly ui:removable ui:rootFieldId ui:row ui:rows ui:style
	ui:submitButtonOptions ui:useFallbackUiForUnsupportedType ui:yearsRange`)

var (
	allHints     = slices.Concat(slices.Sorted(maps.Keys(hintKinds)), hintTexts, otherHints)
	namesOfHints = strings.Fields(strings.ReplaceAll(strings.Join(allHints, " "), "ui:", ""))
)

func warnOfHint(w *document.Collector, key *document.Node) {
	const prefix = "ui:"
	hint := key.Text
	if !strings.HasPrefix(hint, prefix) || slices.Contains(allHints, hint) || strings.HasSuffix(hint, "Template") || strings.HasSuffix(hint, "Field") {
		return
	}
	f := w.Add(key, "the page knows no hint %s: it does nothing", data.Quote(hint))
	if near := document.Closest(strings.TrimPrefix(hint, prefix), namesOfHints); near != "" {
		f.Suggestion = fmt.Sprintf("did you mean %q?", prefix+near)
	}
}

// checkHints finds faults in the texts of hints, and hints that nothing knows or that are not what the page takes.
func (p *templateParser) checkHints(n *document.Node, texts []string) {
	for _, item := range n.Items {
		p.checkHints(item, hintTexts)
	}
	for _, f := range n.Fields {
		key, v := f.Key.Text, f.Value
		warnOfHint(&p.warnings, f.Key)
		if want, ok := hintKinds[key]; ok && v.Kind != want {
			p.notWhat(f.Key, v, want)
		}
		switch {
		case slices.Contains(texts, key):
			p.hintText(f.Key, v)
		case key == "ui:options":
			p.checkHints(v, optionTexts)
		default:
			p.checkHints(v, hintTexts)
		}
	}
}

func (p *templateParser) hintText(key, v *document.Node) {
	all, want := []*document.Node{v}, document.String
	if strings.HasSuffix(key.Text, "enumNames") {
		if want = document.Sequence; v.Kind == want {
			all, want = v.Items, document.String
		}
	}
	for _, text := range all {
		switch text.Kind {
		case document.Mapping:
			p.languages(p.own(), text)
		case want:
		default:
			p.notWhat(key, text, want)
		}
	}
}

func (p *templateParser) notWhat(key, v *document.Node, want document.Kind) {
	f := p.warnings.Add(v, "the hint %s: expected %s, found %s", data.Quote(key.Text), want, v.Kind)
	if want == document.String && (v.Kind == document.Number || v.Kind == document.Bool) {
		f.Suggestion = "quote it"
	}
}
