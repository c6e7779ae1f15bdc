package statemachine

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/internal/chart"
	"troupe/statemachine/internal/clause"
)

func TestTitleOfAnInstance(t *testing.T) {
	fixed := parseChart(t, "id: w\ntitle: {en: One, de: Eins}\nstateMachines: {m: {states: {a: {on: {b: {}}}}}}\n")
	got := fixed.Title(begin(t, fixed, nil)).For("de")
	assert.True(t, got == "Eins" && fixed.IsTitled(), "got %q", got)
	made := parseChart(t, `
id: w
title: {en: '${svcPublic.by}: ${svcPublic.n == 1 ? "1 day" : string(svcPublic.n) + " days"}', de: '${svcPublic.by}: ${svcPublic.n} Tage', fr: '${svcPublic.?c.orValue("")}'}
stateMachines: {m: {states: {a: {entry: [{assign: {svcPublic.by: '${user.name}', svcPublic.n: 3}}], task: {title: {en: 'Ask ${svcPublic.by}', de: '${svcPublic.by} fragen'}}, on: {b: {allow: {roles: [x]}}}}}}}
`)
	for caller, name := range map[*Caller]string{{ID: "ann", FullName: "Ann Lee"}: "Ann Lee", {ID: "ann"}: "ann"} {
		r, err := made.Create(Creation{ID: "1", Caller: caller, Now: testTime})
		require.NoError(t, err)
		got := []string{made.Title(&r.Instance).For("en-GB"), made.Title(&r.Instance).For("de"), made.Title(&r.Instance).For("fr"), View{Instance: &r.Instance, Of: made}.TaskText(&r.Instance.Tasks()[0]).Title.For("de")}
		want := []string{name + ": 3 days", name + ": 3 Tage", name + ": 3 days", name + " fragen"}
		assert.True(t, slices.Equal(got, want), "got %q, want %q", got, want)
	}
	none := parseChart(t, "id: w\nstateMachines: {m: {states: {a: {on: {b: {}}}}}}\n")
	in := begin(t, none, nil)
	assert.True(t, !none.IsTitled() && !(testing.AllocsPerRun(10, func() { none.Title(in) }) > 0), "a definition without a title makes something for one")
}

// TestATitleIsOneLine, whatever is in it.
func TestATitleIsOneLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringOf(rapid.SampledFrom([]rune(" \n\t\u0000\u202e\u2066\u2028\u0085äx")))).Draw(t, "text")
		got := chart.CutText(chart.OneLine(text), chart.MaxTitle)
		if strings.ContainsFunc(got, chart.IsHidden) || got != strings.TrimSpace(got) || strings.Contains(got, "  ") || utf8.RuneCountInString(got) > chart.MaxTitle {
			t.Fatalf("%q: got %q", text, got)
		}
		require.Equal(t, got, chart.CutText(chart.OneLine(got), chart.MaxTitle), text)
	})
}

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
