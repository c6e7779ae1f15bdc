package formportal

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"troupe/actors/form"
	"troupe/statemachine"
	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/schema"
)

// Template is one file of forms/ or checklists/ (cmd/troupe/HOME.md, "Forms", and cmd/troupe/HOME.md, "Checklists").
type Template struct {
	Kind        form.Kind
	ID          string
	Name        statemachine.Text // the id when the file has none
	Description statemachine.Text // may be no text
	Enabled     bool              // false: offered to nobody

	// Roles are those that are offered the template, in the order of the file; at least one unless the template is
	// disabled.
	Roles []string
	// Workflows are those that a form is bound to, in the order of the file. None: a form can be plain.
	Workflows   []string
	AnyWorkflow bool   // the file does not say which workflows, so that a form may be bound to any that declares Submit
	Submit      string // the event that the submit button sends when the form is bound to a workflow; may be empty
	// Schema is a form's JSON Schema 2020-12, with what it refers to in other files put into its $defs, so that it can
	// be read alone.
	Schema data.Value
	// UI are layout hints, an object; absent when the file has none. UIFor has them for a reader.
	UI data.Value
	// Items are what a checklist asks, in the order of the file; at least one. A form has none.
	Items []Item
	// Digest stands for Schema, or for the ids of Items and which are required: a draft that was written for another
	// one may not fit.
	Digest   form.Digest
	Modified time.Time       // when the file was last changed, to the millisecond
	Warnings document.Faults // what the author should look at although it is allowed

	schema *schema.Schema // what Check asks; never nil
	texts  data.Value     // Schema with the texts in all languages; absent when each is in one
}

// Item is one line of a checklist.
type Item struct {
	ID       string
	Label    statemachine.Text // the id when the file has none
	Help     statemachine.Text // may be no text
	Required bool              // must be ticked before the checklist can be submitted
}

// Check checks what was filled in: a form's data against its schema, and for a checklist {"itemId": true or false} with
// every required item true.
func (t *Template) Check(v data.Value) error { return t.schema.Check(v) }

// Strays returns the places of what was filled in that do not fit the template any more, as schema.Schema.Unreachable
// does.
func (t *Template) Strays(v data.Value) []schema.Unreachable { return t.schema.Unreachable(v) }

// RoleOf returns the role through which a caller sees the template: the first role of the template that the caller has.
func (t *Template) RoleOf(callerRoles []string) (string, bool) {
	for _, role := range t.Roles {
		if slices.Contains(callerRoles, role) {
			return role, true
		}
	}
	return "", false
}

// BoundTo reports whether a form may be bound to the workflow. declares reports whether the workflow declares an event.
func (t *Template) BoundTo(workflow string, declares func(event string) bool) bool {
	if t.AnyWorkflow {
		return declares(t.Submit)
	}
	return slices.Contains(t.Workflows, workflow)
}

// checklistSchema has one boolean for each item, true where it is required, and nothing else.
func checklistSchema(items []Item) data.Value {
	properties, required := map[string]any{}, []string{}
	for _, item := range items {
		properties[item.ID] = map[string]any{"type": "boolean"}
		if item.Required {
			properties[item.ID] = map[string]any{"type": "boolean", "const": true}
			required = append(required, item.ID)
		}
	}
	schema, _ := json.Marshal(map[string]any{"type": "object", "additionalProperties": false, "properties": properties, "required": required})
	return schema
}

func trimComma(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == ',' {
		return b[:n-1]
	}
	return b
}

const (
	// maxSchemaFiles and maxSchemaBytes bound a schema with what it refers to: it is sent to every page that shows the
	// form.
	maxSchemaFiles = 64
	maxSchemaBytes = 1 << 20
)

// bundle puts the files that a schema refers to into its $defs, under their names, and lets the references point there.
// So a page can read the schema alone, and checks with it exactly what the service checks. A nil read has no files.
func bundle(doc data.Value, read func(name string) ([]byte, error)) (data.Value, error) {
	b := &bundler{read: read, seen: map[string]bool{}, size: len(doc)}
	top := b.schema(nil, doc, "")
	for len(b.queue) > 0 && b.err == nil {
		name := b.queue[0]
		b.queue = b.queue[1:]
		file := b.file(name)
		b.files = append(b.files, b.schema(append(data.AppendString(nil, name), ':'), file, name))
		if b.size += len(file); b.size > maxSchemaBytes {
			b.fail("with the files that it refers to it has more than %d bytes", maxSchemaBytes)
		}
	}
	if b.err != nil {
		return nil, b.err
	}
	if len(b.files) > 0 {
		if top = b.withDefinitions(top); b.err != nil {
			return nil, b.err
		}
	}
	return data.Clean(top)
}

// The first error of a bundler stays.
type bundler struct {
	read  func(name string) ([]byte, error)
	seen  map[string]bool // names of files that were referred to
	queue []string        // those that are not in files yet
	files [][]byte        // members of $defs
	size  int
	err   error
}

func (b *bundler) fail(reason string, args ...any) {
	if b.err == nil {
		b.err = fmt.Errorf(reason, args...)
	}
}

func (b *bundler) file(name string) data.Value {
	if b.read == nil {
		b.fail("file %s is not there", data.Quote(name))
		return nil
	}
	text, err := b.read(name)
	if err != nil {
		b.fail("file %s: %w", data.Quote(name), err)
		return nil
	}
	v, err := data.Clean(append([]byte(nil), text...)) // Clean takes what it is given
	if err != nil {
		b.fail("file %s: %w", data.Quote(name), err)
	}
	return v
}

// values are keywords whose value is data and no schema.
var values = map[string]bool{"const": true, "enum": true, "default": true, "examples": true}

// named are keywords whose value is a mapping of names to schemas.
var named = map[string]bool{
	"properties": true, "patternProperties": true, "$defs": true, "definitions": true, "dependentSchemas": true,
}

// schema appends a schema that stands in the given file, "" for the template's own, with its references moved.
func (b *bundler) schema(dst []byte, v data.Value, file string) []byte {
	switch v.Kind() {
	case data.Array: // a list of schemas
		dst = append(dst, '[')
		for _, element := range v.Elements() {
			dst = append(b.schema(dst, element, file), ',')
		}
		return append(trimComma(dst), ']')
	case data.Object:
	default:
		return append(dst, v...)
	}
	dst = append(dst, '{')
	for key, value := range v.Members() {
		if file != "" && (key == "$id" || key == "$schema") {
			continue // it would be the base of references that point elsewhere now
		}
		dst = append(data.AppendString(dst, key), ':')
		switch {
		case values[key]:
			dst = append(dst, value...)
		case key == "$ref" && value.Kind() == data.String:
			dst = data.AppendString(dst, b.reference(value.Text(), file))
		case named[key] && value.Kind() == data.Object:
			dst = append(dst, '{')
			for name, schema := range value.Members() {
				dst = append(data.AppendString(dst, name), ':')
				dst = append(b.schema(dst, schema, file), ',')
			}
			dst = append(trimComma(dst), '}')
		default:
			dst = b.schema(dst, value, file)
		}
		dst = append(dst, ',')
	}
	return append(trimComma(dst), '}')
}

func (b *bundler) reference(ref, file string) string {
	u, err := url.Parse(ref)
	if err != nil || u.Scheme != "" || u.Host != "" || strings.HasPrefix(u.Path, "/") || file == "" && u.Path == "" {
		return ref
	}
	name := file
	if u.Path != "" {
		name = path.Join(path.Dir(file), u.Path)
	}
	if name == "." || name == ".." || strings.HasPrefix(name, "../") {
		b.fail("%s is not a file beside the template", data.Quote(ref))
		return ref
	}
	if !b.seen[name] {
		b.seen[name] = true
		b.queue = append(b.queue, name)
		if len(b.seen) > maxSchemaFiles {
			b.fail("it refers to more than %d files", maxSchemaFiles)
		}
	}
	if u.Fragment != "" && !strings.HasPrefix(u.Fragment, "/") {
		return "#" + u.EscapedFragment() // an anchor
	}
	escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	return "#/$defs/" + url.PathEscape(escaped) + u.EscapedFragment()
}

func (b *bundler) withDefinitions(top data.Value) []byte {
	definitions, has := top.Lookup("$defs")
	if has && definitions.Kind() != data.Object {
		b.fail("$defs must be an object")
		return nil
	}
	for name := range definitions.Members() {
		if b.seen[name] {
			b.fail("$defs has a member %s, which is the name of a file that it refers to", data.Quote(name))
		}
	}
	dst := []byte{'{'}
	for key, value := range top.Members() {
		if key != "$defs" {
			dst = append(append(append(data.AppendString(dst, key), ':'), value...), ',')
		}
	}
	dst = append(dst, `"$defs":{`...)
	for name, value := range definitions.Members() {
		dst = append(append(append(data.AppendString(dst, name), ':'), value...), ',')
	}
	for _, member := range b.files {
		dst = append(append(dst, member...), ',')
	}
	return append(trimComma(dst), "}}"...)
}

// Tests hold the schemas against ParseTemplate, both ways.
var (
	//go:embed form.schema.json
	formFileSchema string
	//go:embed checklist.schema.json
	checklistFileSchema string
)

// FileSchema returns the JSON Schema 2020-12 of template files of a kind, for editors and other
// tools. Whatever it refuses, ParseTemplate refuses.
func FileSchema(kind form.Kind) string {
	if kind == form.KindChecklist {
		return checklistFileSchema
	}
	return formFileSchema
}
