package schema

import (
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// schemaKeywords are those of JSON Schema 2020-12, and those of drafts before that it still reads.
var schemaKeywords = strings.Fields(`$schema $vocabulary $id $anchor $dynamicAnchor $ref $dynamicRef $defs $comment definitions
	allOf anyOf oneOf not if then else dependentSchemas dependentRequired dependencies prefixItems items additionalItems contains properties
	patternProperties additionalProperties propertyNames unevaluatedItems unevaluatedProperties type enum const multipleOf maximum
	exclusiveMaximum minimum exclusiveMinimum maxLength minLength pattern maxItems minItems uniqueItems maxContains minContains maxProperties
	minProperties required title description default deprecated readOnly writeOnly examples format contentEncoding contentMediaType contentSchema`)

// Keywords whose values have schemas: one, or a list of them, and those that have one under each name.
var (
	keywordsOfSchemas = strings.Fields(`allOf anyOf oneOf not if then else prefixItems items additionalItems contains additionalProperties propertyNames
	unevaluatedItems unevaluatedProperties contentSchema`)
	keywordsOfNames = strings.Fields("$defs definitions dependentSchemas dependencies properties patternProperties")
)

// WarnOfKeywords tells keywords of the schema that n writes which nothing knows, and which are near one that is known: JSON Schema takes
// every keyword and does nothing with those. What begins with x- or ui: is meant for others. Schemas of other files are not looked at.
func WarnOfKeywords(w *document.Collector, n *document.Node) {
	for _, item := range n.Items {
		WarnOfKeywords(w, item)
	}
	for _, f := range n.Fields {
		key := f.Key.Text
		switch {
		case slices.Contains(keywordsOfSchemas, key):
			WarnOfKeywords(w, f.Value)
		case slices.Contains(keywordsOfNames, key):
			for _, member := range f.Value.Fields {
				if member.Value.Kind == document.Mapping { // NB: dependencies may be lists of names
					WarnOfKeywords(w, member.Value)
				}
			}
		case slices.Contains(schemaKeywords, key), strings.HasPrefix(key, "x-"), strings.HasPrefix(key, "ui:"):
		default:
			if near := document.DidYouMean(key, schemaKeywords); near != "" {
				w.Add(f.Key, "JSON Schema has no keyword %s: it does nothing", data.Quote(data.Shorten(key))).Suggestion = near
			}
		}
	}
}
