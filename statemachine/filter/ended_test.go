package filter

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"troupe/statemachine/cputest"
	"troupe/statemachine/data"
)

// TestAMatchCanBeEnded: where it went on, each of these took some twenty seconds.
func TestAMatchCanBeEnded(t *testing.T) {
	long := strings.Repeat("x", 4<<20)
	many := `["` + strings.Repeat(strings.Repeat("x", 1000)+`","`, 4000) + `"]`
	for _, c := range []struct{ name, filter, public string }{
		{"one text", `{"svcPublic.a":{"$regex":"(x?){250}y"}}`, `{"a":"` + long + `"}`},
		{"one text with an escape", `{"svcPublic.a":{"$regex":"(x?){250}y"}}`, `{"a":"\n` + long + `"}`},
		{"one that must not be", `{"svcPublic.a":{"$not":{"$regex":"(x?){250}y"}}}`, `{"a":"` + long + `"}`},
		{"one that would be found", `{"svcPublic.a":{"$regex":"(x?){250}y"}}`, `{"a":"` + long + `y"}`},
		{"many short texts", `{"svcPublic.a":{"$regex":"(x?){250}y"}}`, `{"a":` + many + `}`},
		{"none of many", `{"$nor":[{"svcPublic.a":{"$elemMatch":{"$regex":"(x?){250}y"}}},{"svcPublic.a":7}]}`, `{"a":` + many + `}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := mustParse(t, c.filter)
			asked := 0
			d := Document{Public: mustClean(t, c.public), Ended: func() bool { asked++; return asked == 3 }}
			watched := cputest.Watch()
			assert.False(t, f.Match(d), "what was left matches, want that to be no match")
			assert.Equal(t, 3, asked, "asked")
			assert.LessOrEqual(t, watched(), 5*time.Second, "took")
		})
	}
}

// TestALongTextIsReadLikeAShortOne: rune by rune nothing is found that would not be found otherwise, and the other way round.
func TestALongTextIsReadLikeAShortOne(t *testing.T) {
	fill := strings.Repeat("ü-x ", 4_000)
	for _, pattern := range []string{
		"^ü", "^x", "y$", "x y$", "\\by\\b", "\\bü", "needle", "(?i)NEEDLE", "x{3}", "needle y$", "^.*y$", "[^ -~ü]", "(x|ü)+y", "\\Ay", "y\\z", "^$", "",
	} {
		for _, text := range []string{fill, fill + "y", "y" + fill, fill + "needle" + fill, fill + "needle y", fill + "\\u00e4" + fill, fill + "\\n"} {
			// The second expression only makes it long.
			f := mustParse(t, `{"svcPublic.a":{"$regex":`+string(data.AppendString(nil, pattern+"|[q]{200}Q"))+`}}`)
			d := Document{Public: mustClean(t, `{"a":"`+text+`"}`)}
			want, asked := f.Match(d), 0
			d.Ended = func() bool { asked++; return false }
			if got := f.Match(d); got != want {
				t.Errorf("%q in %.20q…%.20q: %v, want %v", pattern, text, text[len(text)-20:], got, want)
			}
			assert.NotZero(t, asked, "%q: not asked whether it has ended", pattern)
		}
	}
}
