package template_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/actors/template/param"
	"troupe/actors/template/templatetest"
)

// TestParamScript plays testdata/param. A naive scanner says the same.
func TestParamScript(t *testing.T) {
	templatetest.Play(t, "testdata/param", func(t *testing.T, _, text string) string {
		got, err := templatetest.Scan(param.Limits{}, text)
		require.NoError(t, err)
		require.NotNil(t, got)
		if want := naive(text); !slices.Equal(got, want) {
			t.Errorf("the naive scanner on %q:\ngot  %q\nwant %q", text, want, got)
		}
		return fmt.Sprintf("%q", got)
	})
}

// naive finds the parameters of a text the slow and obvious way: every ${ is looked
// at for itself, with the text behind it.
func naive(text string) []param.Param {
	var params []param.Param
	for i := range text {
		if !strings.HasPrefix(text[i:], "${") {
			continue
		}
		if body, complete := naiveBody(text[i+2:]); complete {
			if p := naiveParam(body); p.Name != "" {
				params = append(params, p)
			}
		}
	}
	return templatetest.Distinct(params)
}

// naiveBody returns the text up to the } that closes what was opened before it.
func naiveBody(text string) (body string, complete bool) {
	depth := 1
	for i := 0; i < len(text); i++ {
		switch {
		case naiveEscape(text[i:]):
			i++
		case text[i] == '{':
			depth++
		case text[i] == '}':
			if depth--; depth == 0 {
				return text[:i], true
			}
		}
	}
	return "", false
}

func naiveEscape(text string) bool {
	return len(text) > 1 && text[0] == '\\' && strings.Contains(`#{}\`, text[1:2])
}

func naiveParam(body string) param.Param {
	parts := []string{""}
	for i := 0; i < len(body); i++ {
		length := 1
		switch {
		case naiveEscape(body[i:]):
			length = 2
		case strings.HasPrefix(body[i:], "${"):
			nested, _ := naiveBody(body[i+2:])
			length = len("${") + len(nested) + len("}")
		case body[i] == '#' && len(parts) < 3:
			parts = append(parts, "")
			continue
		}
		parts[len(parts)-1] += body[i : i+length]
		i += length - 1
	}
	parts = append(parts, "", "")
	plain := strings.NewReplacer(`\#`, `#`, `\{`, `{`, `\}`, `}`, `\\`, `\`)
	return param.Param{Name: plain.Replace(parts[0]), Type: plain.Replace(parts[1]), Default: plain.Replace(parts[2])}
}

// FuzzScanner compares the scanner with the naive one, the text cut into parts at
// random.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{
		"${a}", "${a#t#d}", "${a#lookup(x,${b})#c}", `${a\#\{\}\\##\}}`, "${a#{x#y}}", "$${a{${b", "${#}${##x}", strings.Repeat("${a", 20) + strings.Repeat("}", 20),
		`\${a\`, "${a#${b#${c#${d}}}}", "${\xff#\xfe}", "${a}\x00${b\x00}",
	} {
		f.Add(seed, uint64(0x8421))
	}
	f.Fuzz(func(t *testing.T, text string, cuts uint64) {
		if len(text) > 2000 {
			return // the naive one is quadratic
		}
		var parts []string
		for rest, i := text, 0; len(rest) > 0; i++ {
			n := min(len(rest), 1+int(cuts>>(i%60)&7))
			parts, rest = append(parts, rest[:n]), rest[n:]
		}
		want := naive(text)
		got, err := templatetest.Scan(param.Limits{Nesting: 1000}, parts...)
		assert.True(t, err == nil && slices.Equal(got, want), "%q:\ngot  %q, %v\nwant %q", text, got, err, want)
	})
}

// TestWhatGoesIntoTextComesOut writes random parameters between random text and expects
// exactly them.
func TestWhatGoesIntoTextComesOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		params := rapid.SliceOfN(templatetest.Param(), 0, 8).Draw(t, "params")
		var text strings.Builder
		for _, p := range params {
			text.WriteString(rapid.StringOfN(rapid.RuneFrom([]rune("ab#}\\$ \u00e9")), 0, 8, -1).Draw(t, "between"))
			text.WriteString(" " + p.Declaration())
		}
		var parts []string
		for rest := text.String(); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "part")
			parts, rest = append(parts, rest[:n]), rest[n:]
		}
		want := templatetest.Distinct(params)
		got, err := templatetest.Scan(param.Limits{}, parts...)
		require.True(t, err == nil && slices.Equal(got, want), "%q:\ngot  %q, %v\nwant %q", text.String(), got, err, want)
	})
}

func TestParamLimits(t *testing.T) {
	var many strings.Builder
	for i := range 20 {
		many.WriteString("${" + strings.Repeat("x", i+1) + "}")
	}
	tests := []struct {
		name, text string
		limits     param.Limits
		want       string // in the reason; empty: no error
	}{
		{"parameters", many.String(), param.Limits{Parameters: 19}, "more than 19 parameters"},
		{"parameters, just right", many.String(), param.Limits{Parameters: 20}, ""},
		{"declarations", strings.Repeat("${a}", 11), param.Limits{Declarations: 10}, "more than 10 declarations"},
		{"declarations, just right", strings.Repeat("${a}", 10), param.Limits{Declarations: 10}, ""},
		{"declaration", "${a##" + strings.Repeat("x", 5) + "}", param.Limits{DeclarationBytes: 10}, "more than 10 bytes in one declaration"},
		{"declaration, just right", "${a##" + strings.Repeat("x", 4) + "}", param.Limits{DeclarationBytes: 10}, ""},
		{"an unterminated declaration", "${a" + strings.Repeat("x", 10), param.Limits{DeclarationBytes: 10}, "more than 10 bytes in one declaration"},
		{"nesting", "${a${b${c}}}", param.Limits{Nesting: 2}, "more than 2 levels"},
		{"nesting, just right", "${a${b${c}}${d}}${e${f}}", param.Limits{Nesting: 3}, ""},
		{"nesting counts what is open", "${a ${b}${c}${d}${e}}", param.Limits{Nesting: 2}, ""},
		{"nesting starts again with the next text", "${a${b}", param.Limits{Nesting: 2}, ""},
		{"names", "${aaaa}${aaaa}${aaaa}", param.Limits{NameBytes: 11}, "more than 11 bytes of names"},
		{"names, just right", "${aaaa}${aaaa}${aaaa}", param.Limits{NameBytes: 12}, ""},
		{"result", "${a#bb#cc}${d}", param.Limits{ResultBytes: 5}, "more than 5 bytes of names, types"},
		{"result, just right", "${a#bb#cc}${d}", param.Limits{ResultBytes: 6}, ""},
		{"a million of $ and {", strings.Repeat("$", 1<<20) + strings.Repeat("{", 1000) + "a}", param.Limits{}, ""},
		{"ten million ${", strings.Repeat("${", 10_000_000), param.Limits{}, "more than 32 levels"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := templatetest.Scan(test.limits, test.text)
			refused := errors.Is(err, param.ErrTooLarge) && strings.Contains(err.Error(), test.want) && got == nil
			assert.True(t, refused == (test.want != "") && (err == nil || refused), "got %d parameters, %v; want %q", len(got), err, test.want)
		})
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"a":                        `"a"`,
		"a\n\u202eb":               `"a\n\u202eb"`,
		strings.Repeat("a", 100):   `"` + strings.Repeat("a", 62) + `"`,
		strings.Repeat("\xff", 70): `"` + strings.Repeat(`\xff`, 15) + `"`,
	} {
		assert.Equal(t, want, param.Quote(in), "Quote(%q)", in)
	}
}
