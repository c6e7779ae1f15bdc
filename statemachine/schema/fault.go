package schema

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	faultkind "github.com/santhosh-tekuri/jsonschema/v6/kind"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

type fault struct {
	file   string   // the one that has it; "": the schema itself
	path   []string // of the innermost place that is wrong
	leads  string   // or the address that a reference leads to
	reason string
}

// Error is the reason, behind the path.
func (e *fault) Error() string {
	text := e.reason
	if len(e.path) > 0 {
		text = "at " + data.Shorten("/"+strings.Join(e.path, "/")) + ": " + text
	}
	if e.file != "" {
		text = "in the file " + data.Quote(data.Shorten(e.file)) + ": " + text
	}
	return text
}

var errOutside = errors.New("leads outside the folder")

// faultOf says a fault of the schema library in the words of this service.
func faultOf(err error) error {
	var invalid *jsonschema.SchemaValidationError
	var bad *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &bad) {
		file, _, _ := strings.Cut(invalid.URL, "#")
		bad = deepest(bad)
		return &fault{file: fileOf(file), path: bad.InstanceLocation, reason: reasonOf(bad.ErrorKind)}
	}
	var unread *jsonschema.LoadURLError
	var pointer *jsonschema.JSONPointerNotFoundError
	var anchor *jsonschema.AnchorNotFoundError
	var twice *jsonschema.DuplicateAnchorError
	switch {
	case errors.As(err, &unread) && errors.Is(unread.Err, errOutside):
		return &fault{leads: unread.URL, reason: "the reference " + data.Quote(data.Shorten(unread.URL)) + " leads outside the folder"}
	case errors.As(err, &unread):
		return &fault{leads: unread.URL, reason: "the file " + data.Quote(data.Shorten(fileOf(unread.URL))) + ": " + unread.Err.Error()}
	case errors.As(err, &pointer):
		return leadsNowhere(pointer.URL)
	case errors.As(err, &anchor):
		return leadsNowhere(anchor.Reference)
	case errors.As(err, &twice):
		ptrs := []string{twice.Ptr1, twice.Ptr2}
		slices.Sort(ptrs) // the library's order changes
		return &fault{file: fileOf(twice.URL), path: strings.Split(ptrs[1], "/")[1:], reason: "the anchor " + data.Quote(data.Shorten(twice.Anchor)) + " is there twice"}
	}
	return err
}

func leadsNowhere(address string) error {
	return &fault{leads: address, reason: "the reference " + data.Quote(data.Shorten(fileOf(address))) + " leads to nothing"}
}

func fileOf(address string) string {
	return strings.TrimPrefix(strings.TrimPrefix(address, baseURL), ownName)
}

// deepest returns the fault that lies deepest, of several always the same. Where one of several alternatives must hold, a value that is
// none of some says more than one of another type.
func deepest(bad *jsonschema.ValidationError) *jsonschema.ValidationError {
	if len(bad.Causes) == 0 {
		return bad
	}
	below := make([]*jsonschema.ValidationError, len(bad.Causes))
	for i, cause := range bad.Causes {
		below[i] = deepest(cause)
	}
	rank := func(of *jsonschema.ValidationError) int {
		if _, ok := of.ErrorKind.(*faultkind.Enum); ok {
			return 0
		}
		return 1
	}
	return slices.MinFunc(below, func(a, b *jsonschema.ValidationError) int { // the library's order changes
		return cmp.Or(cmp.Compare(len(b.InstanceLocation), len(a.InstanceLocation)), slices.Compare(a.InstanceLocation, b.InstanceLocation),
			cmp.Compare(rank(a), rank(b)), cmp.Compare(reasonOf(a.ErrorKind), reasonOf(b.ErrorKind)))
	})
}

// kindWords are the types of JSON as other faults of a file name them.
var kindWords = map[string]string{
	"object": document.Mapping.String(), "array": document.Sequence.String(), "string": document.String.String(), "number": document.Number.String(),
	"integer": "a whole number", "boolean": document.Bool.String(), "null": document.Null.String(),
}

func reasonOf(of jsonschema.ErrorKind) string {
	switch of := of.(type) {
	case *faultkind.Type:
		var want []string
		for _, kind := range of.Want {
			want = append(want, kindWords[kind])
		}
		slices.Sort(want)
		return "expected " + strings.Join(want, ", or ") + ", found " + kindWords[of.Got]
	case *faultkind.Enum:
		var want []string
		for _, word := range of.Want {
			want = append(want, fmt.Sprint(word))
		}
		reason := fmt.Sprintf("expected one of %s", strings.Join(want, ", "))
		if got, ok := of.Got.(string); ok {
			reason += ", found " + data.Quote(data.Shorten(got))
			if near := document.DidYouMean(got, want); near != "" {
				reason += ": " + near
			}
		}
		return reason
	case *faultkind.Minimum, *faultkind.ExclusiveMinimum:
		return "the number is too small"
	case *faultkind.MinItems:
		return "the list is empty"
	case *faultkind.UniqueItems:
		return "an element of the list is there twice"
	}
	return "JSON Schema does not take this"
}

// FaultAt is where a fault of Compile stands in the schema that n writes: the innermost place that is wrong, as far as n has
// it, else at the top. What stands in another file has the place of the reference to it.
func FaultAt(n *document.Node, err error) *document.Node {
	var bad *patternError
	if errors.As(err, &bad) {
		if at := n.Find(bad.text); at != nil {
			return at
		}
	}
	var of *fault
	if !errors.As(err, &of) {
		return n
	}
	leads := cmp.Or(of.leads, of.file)
	if len(of.path) > 1 && of.path[0] == "$defs" && n.Field("$defs").Field(of.path[1]) == nil {
		leads = of.path[1] // a file that was bundled
	}
	if leads != "" {
		if at := referenceTo(n, leads); at != nil {
			return at
		}
		return n
	}
	for _, name := range of.path {
		below := n.Field(name)
		if i, err := strconv.Atoi(name); err == nil && n.Kind == document.Sequence && i < len(n.Items) {
			below = n.Items[i]
		}
		if below == nil {
			break
		}
		n = below
	}
	return n
}

func referenceTo(n *document.Node, address string) *document.Node {
	if plain, err := url.PathUnescape(address); err == nil {
		address = plain
	}
	for _, f := range n.Fields {
		if key := f.Key.Text; (key == "$ref" || key == "$dynamicRef" || key == "$schema") && f.Value.Kind == document.String && f.Value.Text != "" {
			text := strings.TrimLeft(f.Value.Text, "./")
			// NB: a file that a schema refers to stands in its $defs when it is bundled.
			file, _, _ := strings.Cut(text, "#")
			if strings.HasSuffix(address, text) || strings.HasSuffix(address, strings.ReplaceAll(text, "#", "")) || file != "" && strings.HasSuffix(address, file) {
				return f.Value
			}
		}
		if at := referenceTo(f.Value, address); at != nil {
			return at
		}
	}
	for _, item := range n.Items {
		if at := referenceTo(item, address); at != nil {
			return at
		}
	}
	return nil
}
