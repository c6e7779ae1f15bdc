package statemachine

import (
	"testing"

	"troupe/statemachine/internal/clause"
)

func TestTextFor(t *testing.T) {
	words := Text{{Language: "en", Text: "Review"}, {Language: "de", Text: "Prüfung"}, {Language: "pt-BR", Text: "Revisão"}}
	for _, test := range []struct {
		languages []string
		want      string
	}{
		{nil, "Review"},
		{[]string{"fr"}, "Review"},
		{[]string{"fr", "de"}, "Prüfung"},
		{[]string{"DE-at"}, "Prüfung"},
		{[]string{"pt"}, "Revisão"},
		{[]string{"pt-PT", "de"}, "Revisão"},
		{[]string{"", "de"}, "Prüfung"},
	} {
		if got := words.For(test.languages...); got != test.want {
			t.Errorf("%v: got %q, want %q", test.languages, got, test.want)
		}
	}
	if got := Plain("Review").For("de"); got != "Review" {
		t.Errorf("got %q", got)
	}
	if got := Plain("").For("de"); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestIsLanguage(t *testing.T) {
	for text, want := range map[string]bool{
		"en": true, "pt-BR": true, "zh-Hant-TW": true, "de-1996": true, "": false, "e": false, "e1": false, "english-": false, "languages-x": false, "de_AT": false, "-de": false,
	} {
		if got := clause.IsLanguage(text); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}
