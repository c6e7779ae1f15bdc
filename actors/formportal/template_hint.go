package formportal

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

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
