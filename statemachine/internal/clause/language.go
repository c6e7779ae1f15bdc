package clause

import (
	"fmt"

	"golang.org/x/text/language"

	"troupe/statemachine/data"
	"troupe/statemachine/document"
)

// warnOfLanguage tells a tag that has the right shape and that no reader asks for: one of no language, or the longer tag of one that has a
// shorter one. It is not a fault, since there are new languages.
func (r textReader) warnOfLanguage(key *document.Node) {
	if r.stored {
		return
	}
	tag, err := language.Raw.Parse(key.Text)
	if err != nil {
		r.warnings.Add(key, "%s is not the tag of a known language", data.Quote(data.Shorten(key.Text))).Suggestion = `write one such as "en" or "pt-BR"`
		return
	}
	const short = 2
	if base, _ := tag.Base(); len(base.String()) == short && len(key.Text) > short && key.Text[short] != '-' && key.Text[short] != '_' {
		r.warnings.Add(key, "readers ask for the language by its shorter tag, and not for %s", data.Quote(data.Shorten(key.Text))).
			Suggestion = fmt.Sprintf("did you mean %q?", tag.String())
	}
}
