package scxml

import (
	"errors"
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
	"troupe/statemachine/expr"
)

// In a document with the data model cel, expressions are CEL already. Its variables are members of svcPublic here, so their names change
// and nothing else does. A document that Export has written speaks of svcPublic itself, and keeps every byte.

// isForeignCEL reports whether names have to change.
func (i *importer) isForeignCEL() bool {
	_, exported := i.root.own("semantics")
	return i.isCEL && !exported
}

// celNames are what expressions of CEL can name besides the data: the variables of a definition, and types.
var celNames = []string{
	"_event", "event", "svcPublic", "svcPrivate", "user", "instance", "parent", "now",
	"bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint", "google", "optional_type",
}

// celNamed are the variables of SCXML that a definition says otherwise.
func (i *importer) celNamed(name string) string {
	switch name {
	case "_sessionid":
		return "instance.id"
	case "_name":
		if i.title == "" {
			return "null"
		}
		return string(data.AppendString(nil, i.title))
	}
	return ""
}

// renamed returns an expression of CEL as a definition has it. What names something that nobody declares is a fault.
func (i *importer) renamed(e *element, src string) string {
	if !i.isForeignCEL() {
		return src
	}
	var unknown []string
	out, err := expr.Rename(src, func(name string) string {
		to := i.variable(name)
		if to == "" {
			to = i.celNamed(name)
		}
		if to == "" && !slices.Contains(celNames, name) && !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
		return to
	})
	if err != nil {
		reason := err.Error()
		if fault := (*expr.CompileError)(nil); errors.As(err, &fault) {
			reason = fault.Reason
		}
		i.Add(e.at(), "%q is no expression of CEL: %s", shorten(src), reason)
		return src
	}
	for _, name := range unknown {
		i.Add(e.at(), "%q reads %q, which no data has as its id", shorten(src), name).Suggestion = document.DidYouMean(name, i.data)
	}
	return out
}

// celPlace is where an assignment goes: a variable, or a member of one.
func (i *importer) celPlace(e *element, location string) string {
	if !i.isForeignCEL() {
		return location
	}
	name := location[:max(0, strings.IndexAny(location+".", ".["))]
	to := location
	switch {
	case name == "svcPublic" || name == "svcPrivate":
	case slices.Contains(i.data, name):
		to = "svcPublic." + location
	default:
		i.Add(e.at(), "nothing can be assigned to %q: no data has the id %q", shorten(location), shorten(name)).Suggestion = document.DidYouMean(name, i.data)
		return location
	}
	if _, err := data.ParsePath(to); err != nil || strings.ContainsAny(to, `[]"`) {
		i.Add(e.at(), "the location %q cannot be expressed", shorten(location))
	}
	return to
}
