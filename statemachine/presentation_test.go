package statemachine

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine/data"
	"troupe/statemachine/internal/chart"
)

const presentedChart = `
id: order
title: 'Order of ${svcPublic.customer} in ${instance.states[0].nodeId}'
columns: [svcPublic.customer, {path: svcPublic.items.0.price, label: {en: Price, de: Preis}}]
events:
  send: {label: {en: Send, de: Senden}, done: {en: sent it, de: hat gesendet}, style: primary}
  plain: {}
stateMachines:
  main:
    tone: waiting
    states:
      draft: {on: {send: checked, plain: checked, other: failed}}
      checked:
        label: {en: Being checked, de: In Prüfung}
        tone: good
        initial: first
        states:
          first: {label: First look, on: {send: second}}
          second: {tone: neutral, on: {send: ended}}
          ended: {type: final}
        onDone: deliver
      deliver:
        type: parallel
        states:
          paper: {initial: printing, states: {printing: {label: Printing, on: {send: printed}}, printed: {type: final}}}
          parcel: {label: The parcel, on: {send: {}}}
      failed: {type: final, tags: [failed]}
`

func TestHowPeopleSeeNodes(t *testing.T) {
	d := parseChart(t, presentedChart)
	for at, want := range map[Position]string{
		{Machine: "main", Node: "draft"}:     "draft waiting",
		{Machine: "main", Node: "first"}:     "First look good",
		{Machine: "main", Node: "second"}:    "second neutral",
		{Machine: "main", Node: "ended"}:     "ended neutral",
		{Machine: "main", Node: "checked"}:   "Being checked good",
		{Machine: "main", Node: "deliver"}:   "deliver waiting",
		{Machine: "paper", Node: "printing"}: "Printing waiting",
		{Machine: "parcel", Node: "parcel"}:  "The parcel waiting",
		{Machine: "main", Node: "failed"}:    "failed bad",
		{Machine: "main", Node: "gone"}:      "gone neutral",
		{Machine: "gone", Node: "draft"}:     "draft neutral",
	} {
		got := d.LabelOf(at)
		assert.Equal(t, want, got.Label.For()+" "+got.Tone.String(), "%v: got %q %v", at, got.Label.For(), got.Tone)
	}
	assert.Equal(t, "In Prüfung", d.LabelOf(Position{Machine: "main", Node: "checked"}).Label.For("de"), "in German")
	assert.Equal(t, "Being checked", d.LabelOfTarget(Position{Machine: "paper", Node: "printing"}, "checked").Label.For("en"))
}

func TestHowPeopleSeeEvents(t *testing.T) {
	d := parseChart(t, presentedChart)
	for name, want := range map[EventName]string{
		"send": "Senden|hat gesendet|primary", "plain": "plain||default", "other": "other||default", "gone": "gone||default",
	} {
		e := d.EventLabel(name)
		got := e.Label.For("de") + "|" + e.Done.For("de") + "|" + e.Style.String()
		assert.Equal(t, want, got, name)
	}
}

// TestWhereInstancesCanStand: they are the positions of statemachine/DEFINITION.md, "Positions".
func TestWhereInstancesCanStand(t *testing.T) {
	var got []string
	for _, s := range parseChart(t, presentedChart).LeafNodes() {
		got = append(got, string(s.Machine)+"."+string(s.Node))
	}
	const want = "main.draft main.first main.second main.ended main.deliver paper.printing paper.printed parcel.parcel main.failed"
	assert.Equal(t, want, strings.Join(got, " "))
	got = nil
	for _, s := range parseChart(t, presentedChart).CompoundNodes() {
		got = append(got, string(s.Machine)+"."+string(s.Node)+" "+s.Label.For("de"))
	}
	assert.Equal(t, "main.main main, main.checked In Prüfung, paper.paper paper", strings.Join(got, ", "), "the others")
	d := parseChart(t, "id: w\nstateMachines: {p: {type: parallel, states: {q: {type: parallel, states: {r: {on: {a: {}}}, s: {on: {a: {}}}}}, u: {on: {a: {}}}}}}\n")
	in := begin(t, d, nil)
	standing := map[Position]bool{}
	for _, s := range d.LeafNodes() {
		standing[s.Position] = true
	}
	for _, p := range d.Positions(in) {
		assert.True(t, standing[p], "%v is a position, and none that instances can have", p)
	}
	assert.Len(t, standing, len(d.Positions(in)))
}

func TestTitleOfAnInstance(t *testing.T) {
	d := parseChart(t, presentedChart)
	for public, want := range map[string]string{
		`{"customer":"Ann"}`: "Order of Ann in draft",
		`{"customer":7}`:     "Order of 7 in draft",
		`{}`:                 "", // it fails
		`{"customer":"\u0007 A \u202e\n\t<b>B</b> "}`:     "Order of A <b>B</b> in draft",
		`{"customer":"` + strings.Repeat("x", 500) + `"}`: "Order of " + strings.Repeat("x", 190) + "…",
	} {
		r, err := d.Create(Creation{ID: "1", Caller: &Caller{ID: "ann"}, Public: data.Value(public), Now: testTime})
		require.NoError(t, err)
		assert.Equal(t, want, d.Title(&r.Instance).For("de"), public)
	}
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

func TestColumnsOfAnInstance(t *testing.T) {
	d := parseChart(t, presentedChart)
	for public, want := range map[string]string{
		`{"customer":"Ann","items":[{"price":5.50}]}`: `customer="Ann" Preis=5.50`,
		`{"customer":null,"items":[]}`:                `customer=null Preis=`,
		`{"customer":{"a":1},"items":"x"}`:            `customer={"a":1} Preis=`,
		`{"items":{"0":{"price":1}}}`:                 `customer= Preis=1`,
	} {
		var got []string
		for i := range d.Columns {
			c := &d.Columns[i]
			got = append(got, c.Label.For("de")+"="+string(c.Value(data.Value(public))))
		}
		assert.Equal(t, want, strings.Join(got, " "), public)
	}
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
