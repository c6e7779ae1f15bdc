package diagram

import (
	"bytes"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/statemachine"
)

// everyWord has whatever a picture has words of its own for. What the definition names itself are single letters.
const everyWord = `
id: w
name: W
jobs: {j: }
events: {e: {label: {en: "E!", de: "Ä!"}}}
stateMachines:
  m:
    states:
      a:
        invoke: {workflow: v, onDone: b, onError: c}
        on: {e: [{guard: svcPublic.k, target: b}, {target: c}]}
        after: {P1D: b, P2DT3H: b, PT1H: c, PT2M: c, PT1M1S: c, PT1.5S: d, PT20S: d, "${svcPublic.t}": d}
      b: {on: {e: {}}, invoke: {job: j, onDone: c, onError: c}}
      c: {initial: f, states: {f: {type: final}}, onDone: d}
      d: {type: final}
`

var shownTexts = regexp.MustCompile(`<(?:title|desc|text)[^>]*>([^<]+)<`)

func textsOf(t *testing.T, languages ...string) []string {
	t.Helper()
	parser, err := statemachine.NewParser(statemachine.ParserOptions{})
	require.NoError(t, err)
	parsed, err := parser.Parse(statemachine.Source{File: "w.yaml", Text: []byte(everyWord)})
	require.NoError(t, err)
	d := parsed.Definition
	p := &Picture{Chart: d.Chart(), Languages: languages, Instance: &Instance{ID: "1"}, Counts: map[int]Count{1: {Instances: 1234}, 2: {1234, true, false}, 3: {1234, true, true}}}
	// NB: a definition may not have such a circle, but a sketch of a faulty one does.
	p.Chart.Nodes[1].Transitions = append(p.Chart.Nodes[1].Transitions, statemachine.ChartTransition{Trigger: statemachine.Always})
	p.Instance.At = []statemachine.Position{{Machine: "m", Node: "a"}}
	var texts []string
	nodes, transitions := statemachine.NewCoverage(d).Reached()
	transitions[1] = append(transitions[1], false)
	reached := &Picture{Chart: p.Chart, Languages: languages, Reached: &Reached{nodes, transitions}}
	for _, found := range shownTexts.FindAllSubmatch(append(p.SVG(), reached.SVG()...), -1) {
		texts = append(texts, string(bytes.TrimSpace(found[1])))
	}
	return texts
}

func (w *phrases) each(f func(name, text string)) {
	of := reflect.ValueOf(w).Elem()
	for i := range of.NumField() {
		if field := of.Field(i); field.Kind() == reflect.String {
			f(of.Type().Field(i).Name, field.String())
		}
	}
	for _, unit := range w.units {
		f("one "+unit.of.String(), unit.one)
		f("many "+unit.of.String(), unit.many)
	}
}

// TestAPictureHasOneLanguage: a picture has all its words, and those of the reader's language alone.
func TestAPictureHasOneLanguage(t *testing.T) {
	wordsIn := func(text string) []string {
		return strings.FieldsFunc(strings.ReplaceAll(text, "%s", " "), func(r rune) bool { return strings.ContainsRune(" ,.:;[]()", r) })
	}
	for _, of := range []struct {
		language   string
		own, other *phrases
	}{{"en-GB", english, german}, {"de-AT", german, english}} {
		shown := strings.Join(textsOf(t, of.language), "\n")
		words := wordsIn(strings.ReplaceAll(shown, "\n", " "))
		own := map[string]bool{}
		of.own.each(func(name, text string) {
			assert.NotEmpty(t, text, "%s has no words for %s", of.language, name)
			for _, word := range wordsIn(text) {
				own[word] = true
				assert.Contains(t, words, word, "%v %v %v", of.language, name, shown)
			}
		})
		of.other.each(func(name, text string) {
			for _, word := range wordsIn(text) {
				assert.False(t, !own[word] && slices.Contains(words, word), "%s: %q (%s) is of the other language, in\n%s", of.language, word, name, shown)
			}
		})
		for _, word := range words { // what is of neither was never translated
			assert.False(t, !own[word] && len(word) > 2 && regexp.MustCompile(`^\pL+$`).MatchString(word) && word != "svcPublic", "%v %v %v", of.language, word, shown)
		}
	}
}

func TestTheLanguageOfAPicture(t *testing.T) {
	for want, languages := range map[*phrases][][]string{
		english: {nil, {"fr"}, {"en-US", "de"}, {"fr", "en", "de"}, {"den"}},
		german:  {{"de"}, {"DE-ch"}, {"fr", "de-DE", "en"}},
	} {
		for _, of := range languages {
			assert.Same(t, want, (&Picture{Languages: of}).words(), "%q: got the words", of)
		}
	}
}

func TestDurations(t *testing.T) {
	for of, want := range map[time.Duration][2]string{
		48 * time.Hour: {"2 days", "2 Tagen"}, 24 * time.Hour: {"1 day", "1 Tag"}, 90 * time.Minute: {"1 hour 30 minutes", "1 Stunde 30 Minuten"},
		250 * time.Millisecond: {"250 ms", "250 ms"}, 0: {"0 ms", "0 ms"}, 25*time.Hour + time.Minute + time.Second: {"1 day 1 hour", "1 Tag 1 Stunde"},
		30 * time.Second: {"30 seconds", "30 Sekunden"}, 1500 * time.Millisecond: {"1.5 seconds", "1,5 Sekunden"},
	} {
		got := [2]string{english.duration(of), german.duration(of)}
		assert.Equal(t, want, got, of)
	}
}

// TestWrap: lines keep their bounds, and what was not cut is the whole text.
func TestWrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := clean(rapid.String().Draw(t, "text"))
		width, lines := rapid.IntRange(30, 200).Draw(t, "width"), rapid.IntRange(1, 3).Draw(t, "lines")
		got := noteFont.wrap(text, width, lines)
		require.True(t, len(got) != 0 && len(got) <= lines, "%q: got %d lines, want 1 to %d", text, len(got), lines)
		for _, line := range got {
			assert.LessOrEqual(t, noteFont.width(line), width, "%q: the line %q", text, line)
		}
		joined := strings.Join(got, "")
		assert.False(t, !strings.HasSuffix(joined, "…") && strings.ReplaceAll(joined, " ", "") != strings.Join(strings.Fields(text), ""), "%q: got %q", text, got)
	})
}
