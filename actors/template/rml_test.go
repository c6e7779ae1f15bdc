package template_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"pgregory.net/rapid"

	"troupe/actors/template/param"
	"troupe/actors/template/rml"
	"troupe/actors/template/templatetest"
)

func parseReport(text string) ([]param.Param, error) {
	return rml.Parameters(strings.NewReader(text), int64(len(text)), param.Limits{})
}

// TestReportScript plays testdata/rml.
func TestReportScript(t *testing.T) {
	templatetest.Play(t, "testdata/rml", func(t *testing.T, _, text string) string {
		got, err := parseReport(text)
		return templatetest.Told(t, got, err)
	})
}

func TestReportLongTexts(t *testing.T) {
	name := strings.Repeat("\u00e9", 1000)
	for text, want := range map[string]string{
		"<a>" + strings.Repeat("x", 64<<10-8) + "${a#t}</a>": "a#t", // over the end of what is read at once
		"<a>${" + name + "}</a>":                             name,
	} {
		got, err := parseReport(text)
		assert.True(t, err == nil && slices.Equal(templatetest.Short(got), []string{want}), "got %q, %v", got, err)
	}
}

// TestReportRefused holds "Not well-formed: 422"; package markup has all the reasons.
func TestReportRefused(t *testing.T) {
	for text, want := range map[string]error{
		"":                            param.ErrNotTemplate,
		"x":                           param.ErrNotTemplate,
		"<a>${a}":                     param.ErrNotTemplate,
		"<a>${a}</a><b/>":             param.ErrNotTemplate,
		"<a>${a}</a>x":                param.ErrNotTemplate,
		"<!DOCTYPE a []><a>${a}</a>":  param.ErrNotTemplate,
		"<a>&nbsp;</a>":               param.ErrNotTemplate,
		"PK\x03\x04":                  param.ErrNotTemplate,
		"\xd0\xcf\x11\xe0":            param.ErrNotTemplate,
		strings.Repeat(" ", 20<<20+1): param.ErrTooLarge,
		strings.Repeat("<a>", 257):    param.ErrTooLarge,
	} {
		got, err := parseReport(text)
		assert.True(t, errors.Is(err, want) && got == nil, "%.40q: got %v, %v; want %v", text, got, err, want)
	}
}

func TestReportReaderErrors(t *testing.T) {
	broken := errors.New("the disk is gone")
	_, err := rml.Parameters(brokenReport{broken}, 100, param.Limits{})
	assert.ErrorIs(t, err, broken)
	_, err = rml.Parameters(strings.NewReader("<a/>"), -1, param.Limits{})
	assert.ErrorIs(t, err, param.ErrNotTemplate, "a negative size")
	_, err = rml.Parameters(strings.NewReader("<a>x</a>"), 1000, param.Limits{})
	assert.NoError(t, err, "a file that is shorter")
}

type brokenReport struct{ err error }

func (b brokenReport) ReadAt([]byte, int64) (int, error) { return 0, b.err }

// TestWhatGoesIntoReportsComesOut writes random parameters into random XML, in a random
// encoding, and expects exactly them.
func TestWhatGoesIntoReportsComesOut(t *testing.T) {
	templatetest.Repeat(t)
	rapid.Check(t, func(t *rapid.T) {
		w := writer{t: t}
		name := rapid.SampledFrom([]string{"", "utf-8", "UTF-16", "windows-1252", "ISO-8859-1"}).Draw(t, "encoding")
		w.charset = name
		w.element(0)
		text, params := w.text.String(), templatetest.Distinct(w.params)
		got, err := parseReport(encode(t, name, text))
		require.True(t, err == nil && slices.Equal(got, params), "%q:\ngot  %q, %v\nwant %q", text, got, err, params)
	})
}

func encode(t *rapid.T, name, text string) string {
	e, declaration := encoding.Encoding(encoding.Nop), `<?xml version="1.0" encoding="`+name+`"?>`
	switch name {
	case "":
		declaration = ""
	case "UTF-16":
		e = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	case "windows-1252":
		e = charmap.Windows1252
	case "ISO-8859-1":
		e = charmap.ISO8859_1
	}
	out, err := e.NewEncoder().String(declaration + text)
	require.NoError(t, err)
	return out
}

// writer writes a random element, and notes which parameters it declares.
type writer struct {
	t       *rapid.T
	charset string
	text    strings.Builder
	params  []param.Param
}

func (w *writer) element(depth int) {
	name := rapid.SampledFrom([]string{"a", "ns:b", "_c-1"}).Draw(w.t, "element")
	w.text.WriteString("<" + name)
	for _, attribute := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"x", "y", "n:z"}), 0, 2, rapid.ID).Draw(w.t, "attributes") {
		quote := rapid.SampledFrom([]string{`"`, `'`}).Draw(w.t, "quote")
		w.text.WriteString(" " + attribute + "=" + quote + w.escape(w.piece(), true) + quote)
	}
	w.text.WriteString(">")
	for range rapid.IntRange(0, 4).Draw(w.t, "children") {
		switch kind := rapid.IntRange(0, 4).Draw(w.t, "kind"); {
		case kind == 0 && depth < 4:
			w.element(depth + 1)
		case kind == 1 && w.charset != "windows-1252" && w.charset != "ISO-8859-1":
			text := w.piece()
			if strings.Contains(text, "]]>") {
				w.text.WriteString(w.escape(text, false))
			} else {
				w.text.WriteString("<![CDATA[" + text + "]]>")
			}
		case kind == 2:
			w.text.WriteString("<!-- ${comment} --><?p ${instruction}?>")
		default:
			w.text.WriteString(w.escape(w.piece(), false))
		}
	}
	w.text.WriteString("</" + name + ">")
}

// piece is text with parameters, which are noted.
func (w *writer) piece() string {
	text := templatetest.Filler().Draw(w.t, "before")
	for _, p := range rapid.SliceOfN(templatetest.Param(), 0, 2).Draw(w.t, "params") {
		w.params = append(w.params, p)
		text += p.Declaration() + templatetest.Filler().Draw(w.t, "after")
	}
	return text
}

// escape writes a text for XML: what must be escaped is, and now and then what
// need not be.
func (w *writer) escape(text string, value bool) string {
	out := ""
	for _, r := range text {
		narrow := w.charset == "windows-1252" || w.charset == "ISO-8859-1"
		escape := strings.ContainsRune("<&>", r) || value && strings.ContainsRune("\"'\t\n", r) || narrow && r > 0x7f && r != '\u00e9'
		if escape || rapid.IntRange(0, 9).Draw(w.t, "escape") == 0 {
			out += templatetest.Reference(func(n int) int { return rapid.IntRange(0, n-1).Draw(w.t, "form") }, r)
		} else {
			out += string(r)
		}
	}
	return out
}

// naiveReport is the obvious way: encoding/xml, each piece scanned for itself.
func naiveReport(text []byte) ([]param.Param, error) {
	var all []param.Param
	d := xml.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.Token()
		if err == io.EOF { //nolint:errorlint // Token returns it bare
			return templatetest.Distinct(all), nil
		}
		if err != nil {
			return nil, err
		}
		var pieces []string
		switch token := token.(type) {
		case xml.StartElement:
			for _, a := range token.Attr {
				pieces = append(pieces, a.Value)
			}
		case xml.CharData:
			pieces = append(pieces, string(token))
		}
		for _, piece := range pieces {
			params, err := templatetest.Scan(param.Limits{}, piece)
			if err != nil {
				return nil, err
			}
			all = append(all, params...)
		}
	}
}

// FuzzReport: whatever the bytes are, there is an answer of a known kind; and
// where both can read it, it is that of encoding/xml.
func FuzzReport(f *testing.F) {
	for _, seed := range []string{
		"<a>${a#t#d}</a>", "<a b='${a}'>${b<!-- -->}</a>", "<?xml version='1.0' encoding='ISO-8859-1'?><a>${\xe9}</a>", "\xff\xfe<\x00a\x00/\x00>\x00",
		"<!DOCTYPE a SYSTEM 'b'><a>&#36;{a}</a>", "<a><![CDATA[${a#]]>${b}</a>", "<a>${a\r\n}</a>",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := rml.Parameters(bytes.NewReader(text), int64(len(text)), param.Limits{})
		if err != nil {
			assert.False(t, !errors.Is(err, param.ErrNotTemplate) && !errors.Is(err, param.ErrTooLarge), "%q: got %v, want one of the kinds", text, err)
			return
		}
		if bytes.ContainsAny(text, "\t\r\n") {
			return // encoding/xml does not normalise values
		}
		want, err := naiveReport(text)
		assert.False(t, err == nil && !slices.Equal(got, want), "%q:\ngot  %q\nwant %q", text, got, want)
	})
}
