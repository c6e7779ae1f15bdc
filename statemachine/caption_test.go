package statemachine

import (
	"testing"

	"github.com/stretchr/testify/assert"

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
		assert.Equal(t, test.want, words.For(test.languages...), test.languages)
	}
	assert.Equal(t, "Review", Plain("Review").For("de"))
	assert.Empty(t, Plain("").For("de"))
}

func TestIsLanguage(t *testing.T) {
	for text, want := range map[string]bool{
		"en": true, "pt-BR": true, "zh-Hant-TW": true, "de-1996": true, "": false, "e": false, "e1": false, "english-": false, "languages-x": false, "de_AT": false, "-de": false,
	} {
		assert.Equal(t, want, clause.IsLanguage(text), text)
	}
}
