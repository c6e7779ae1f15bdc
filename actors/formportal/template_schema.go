package formportal

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strings"

	"troupe/statemachine/data"
)

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

// Its first error stays.
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
