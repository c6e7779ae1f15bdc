package markup

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/template/param"
	"troupe/actors/template/templatetest"
)

// events returns what is in a text, one line an event. Text that belongs together
// is put together.
func events(r io.Reader, limits param.Limits) (lines []string, err error) {
	text, err := Decode(r)
	if err != nil {
		return nil, err
	}
	p := NewParser(limits.WithDefaults())
	p.Reset(text)
	content := ""
	for {
		event, err := p.Next()
		if err == nil && event == Text {
			content += string(p.Text())
			continue
		}
		if content != "" {
			lines = append(lines, fmt.Sprintf("text %q", content))
			content = ""
		}
		switch {
		case err == io.EOF: //nolint:errorlint // Next returns it bare
			return lines, nil
		case err != nil:
			return nil, err
		case event == Start:
			line := "start " + string(p.Name())
			for _, a := range p.Attributes() {
				line += fmt.Sprintf(" %s=%q", a.Name, a.Value)
			}
			lines = append(lines, line)
		case event == End:
			lines = append(lines, "end")
		case event == Break:
			lines = append(lines, "break")
		}
	}
}

func readers(text string) map[string]io.Reader {
	return map[string]io.Reader{
		"at once": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text)),
		"the end with the last bytes": iotest.DataErrReader(strings.NewReader(text)),
	}
}

// TestScript plays testdata/script: the events of a text, one after the other, or what is wrong with it. However it is read, they are the same.
func TestScript(t *testing.T) {
	templatetest.Play(t, "testdata/script", func(t *testing.T, _, text string) (out string) {
		for name, r := range readers(text) {
			got, err := events(r, param.Limits{})
			answer := strings.Join(got, ", ")
			if err != nil {
				require.ErrorIs(t, err, param.ErrNotTemplate)
				answer = err.Error()
			}
			assert.True(t, out == "" || out == answer, "%s: got %s, and otherwise %s", name, answer, out)
			out = answer
		}
		return out
	})
}

func TestADeclarationHasALength(t *testing.T) {
	for _, text := range []string{"<?xml version='1.0' " + strings.Repeat(" ", 2000), "<?xml version='1.0'" + strings.Repeat(" ", 500) + "?><a/>"} {
		for _, r := range readers(text) {
			_, err := events(r, param.Limits{})
			require.ErrorIs(t, err, param.ErrNotTemplate)
			assert.ErrorContains(t, err, "an XML declaration of more than 500 bytes")
		}
	}
}

func TestFaultsHaveLines(t *testing.T) {
	text := "<a>" + strings.Repeat(strings.Repeat("x", 99)+"\n", 5000) + "<b></a>"
	_, err := events(strings.NewReader(text), param.Limits{})
	assert.True(t, err != nil && strings.Contains(err.Error(), "line 5001: "), "got %v, want line 5001", err)
}

// TestLimits: encoding/xml has no limits of this kind (persistence/PROMISES.md,
// "F16").
func TestLimits(t *testing.T) {
	tests := []struct {
		name, text string
		limits     param.Limits
		want       string
	}{
		{"depth", "<a><b><c/></b></a>", param.Limits{Depth: 2}, "more than 2 elements inside each other"},
		{"depth, just right", "<a><b><c/></b></a>", param.Limits{Depth: 3}, ""},
		{"tag", "<a b='123'/>", param.Limits{TagBytes: 11}, "more than 11 bytes in one tag"},
		{"tag, just right", "<a b='123'/>", param.Limits{TagBytes: 12}, ""},
		{"a tag without an end", "<a b='" + strings.Repeat("x", 1<<20), param.Limits{TagBytes: 100_000}, "more than 100000 bytes in one tag"},
		{"attributes", "<a b='' c=''/>", param.Limits{Attributes: 1}, "more than 1 attributes of one element"},
		{"attributes, just right", "<a b='' c=''/>", param.Limits{Attributes: 2}, ""},
		{"nodes", "<a b=''><c d=''/></a>", param.Limits{Nodes: 3}, "more than 3 elements and attributes"},
		{"nodes, just right", "<a b=''><c d=''/></a>", param.Limits{Nodes: 4}, ""},
		{"a name", "<" + strings.Repeat("a", 1025) + "/>", param.Limits{}, "more than 1 KiB in a name"},
		{"a name, just right", "<" + strings.Repeat("a", 1024) + "/>", param.Limits{}, ""},
		{"a name of an attribute", "<a " + strings.Repeat("a", 1025) + "=''/>", param.Limits{}, "more than 1 KiB in a name"},
		{"a target", "<?" + strings.Repeat("a", 100_000) + " ?><a/>", param.Limits{}, "more than 1 KiB in a name"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := events(strings.NewReader(test.text), test.limits)
			refused := errors.Is(err, param.ErrTooLarge) && strings.Contains(err.Error(), test.want)
			assert.True(t, refused == (test.want != "") && (err == nil || refused), "got %v, want %q", err, test.want)
		})
	}
}

// TestNodesAreCountedOverAllTexts: a document has many parts and one limit.
func TestNodesAreCountedOverAllTexts(t *testing.T) {
	p := NewParser(param.Limits{Nodes: 3}.WithDefaults())
	for i, want := range []error{nil, nil, nil, param.ErrTooLarge} {
		p.Reset(strings.NewReader("<a></a>"))
		var err error
		for err == nil {
			_, err = p.Next()
		}
		if want == nil && err != io.EOF || want != nil && !errors.Is(err, want) { //nolint:errorlint // Next returns it bare
			t.Errorf("text %d: got %v, want %v", i, err, want)
		}
	}
}

// TestMemoryOfManyTagsAndLongText: neither the number of tags nor the length of a
// text node, a comment or a section decides how often memory is allocated.
func TestMemoryOfManyTagsAndLongText(t *testing.T) {
	const allocationsMax = 10 // the reader below, and what grows once
	for name, text := range map[string]string{
		"tags":      "<a>" + strings.Repeat("<b c='d' e='&lt;'>f</b><g/>", 1000) + "</a>",
		"a text":    "<a>" + strings.Repeat("x", 1<<20) + "</a>",
		"a comment": "<a><!--" + strings.Repeat("x", 1<<20) + "--></a>",
		"a section": "<a><![CDATA[" + strings.Repeat("x", 1<<20) + "]]></a>",
	} {
		p := NewParser(param.Limits{Nodes: 1 << 30}.WithDefaults())
		got := testing.AllocsPerRun(3, func() {
			p.Reset(strings.NewReader(text))
			var err error
			for err == nil {
				_, err = p.Next()
			}
			if err != io.EOF { //nolint:errorlint // Next returns it bare
				t.Fatal(name, err)
			}
		})
		assert.True(t, !(got > allocationsMax) && cap(p.buffer.text) <= bufferBytes, "%v %v %v %v %v", name, got, cap(p.buffer.text), allocationsMax, bufferBytes)
	}
}

// TestReaderErrors: what the reader says is not taken for a fault of the text.
func TestReaderErrors(t *testing.T) {
	broken := errors.New("the disk is gone")
	text := "<?xml version='1.0'?><!DOCTYPE a><a b='c'>x\u00e9&amp;<![CDATA[y]]><!-- z --><?p q?></a> "
	for n := range len(text) {
		r := io.MultiReader(strings.NewReader(text[:n]), iotest.ErrReader(broken))
		if _, err := events(r, param.Limits{}); !errors.Is(err, broken) {
			t.Errorf("after %q: got %v, want the reader's error", text[:n], err)
		}
	}
}

// oracle is encoding/xml: it returns the text nodes and values of attributes.
func oracle(text []byte) (pieces []string, err error) {
	d := xml.NewDecoder(bytes.NewReader(text))
	depth := 0
	for {
		token, err := d.Token()
		if err == io.EOF { //nolint:errorlint // Token returns it bare
			return pieces, nil
		}
		if err != nil {
			return nil, err
		}
		switch token := token.(type) {
		case xml.StartElement:
			depth++
			for _, a := range token.Attr {
				pieces = append(pieces, blanks.Replace(a.Value))
			}
		case xml.EndElement:
			depth--
		case xml.CharData:
			if depth > 0 && len(token) > 0 {
				pieces = append(pieces, blanks.Replace(string(token)))
			}
		}
	}
}

// blanks makes equal what encoding/xml does not normalise in values.
var blanks = strings.NewReplacer("\r", " ", "\n", " ", "\t", " ")

func pieces(text []byte) (pieces []string, err error) {
	p := NewParser(param.Limits{}.WithDefaults())
	p.Reset(bytes.NewReader(text))
	together := false
	for {
		event, err := p.Next()
		switch {
		case err == io.EOF: //nolint:errorlint // Next returns it bare
			return pieces, nil
		case err != nil:
			return nil, err
		}
		if event == Text {
			if !together {
				pieces = append(pieces, "")
			}
			pieces[len(pieces)-1] += blanks.Replace(string(p.Text()))
		}
		together = event == Text
		if event == Start {
			for _, a := range p.Attributes() {
				pieces = append(pieces, blanks.Replace(string(a.Value)))
			}
		}
	}
}

// stricter are the reasons for which this package refuses what encoding/xml takes:
// it is right about them, or they are limits of ours (actors/template/DESIGN.md,
// "Our own parser of XML (markup)").
var stricter = []string{
	"text outside the root", "a second root", "there is no element", "stands twice", "not a name and attributes", "internal subset", "document type",
	"not before the root", "<! that is neither", "not at the start", "has no version", "none of XML 1", "no blank after the name", "inside a comment",
	"over a limit", "must not be in XML", "not UTF-8", `the reference "&#`,
	"ends inside the XML declaration", "ends inside a processing instruction",
}

// looser are the reasons for which encoding/xml refuses what this package takes:
// names of the fifth edition of XML, other versions, encodings that Decode is
// for, prefixes.
var looser = []string{"invalid XML name", "unsupported version", "encoding \"", "expected element name after", "expected attribute name", "unexpected EOF in CDATA", "space", "xml: unsupported"}

// FuzzParser compares the parser with encoding/xml.
func FuzzParser(f *testing.F) {
	for _, seed := range []string{
		"<a/>", "<a b='c'>d&amp;e<![CDATA[f]]></a>", "<?xml version='1.0'?><!DOCTYPE a SYSTEM 'b'><a><!-- c --><?d e?></a>", "<a>\r\n]]&#13;</a>",
		"<\u00e9 b=\"&#x1F600;\t\"></\u00e9>", "<a:b xmlns:a='c'><d xmlns='e'/></a:b>", "<a b='1' b='2'/>", "<a>]]></a>", "<a><b></a></b>", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
		"<a>&#xD800;</a>", "<a b='&#xDFFF;'/>",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 10_000 || bytes.HasPrefix(text, []byte("<?xml")) {
			return // encoding/xml does not look at what is in a declaration
		}
		want, wantErr := oracle(text)
		got, err := pieces(text)
		contains := func(err error) func(string) bool {
			return func(reason string) bool { return strings.Contains(err.Error(), reason) }
		}
		switch {
		case err == nil && wantErr == nil:
			assert.True(t, slices.Equal(got, want), "%q:\ngot  %q\nwant %q", text, got, want)
		case err != nil && wantErr == nil && !slices.ContainsFunc(stricter, contains(err)):
			t.Errorf("%q: got %v, encoding/xml takes it", text, err)
		case err == nil && wantErr != nil && !slices.ContainsFunc(looser, contains(wantErr)):
			t.Errorf("%q: taken, encoding/xml says %v", text, wantErr)
		}
	})
}

func BenchmarkParser(b *testing.B) {
	text := []byte("<a>" + strings.Repeat("<w:p w:rsidR=\"00A77427\"><w:r><w:t xml:space=\"preserve\">Some text of a paragraph </w:t></w:r></w:p>\n", 10_000) + "</a>")
	b.Run("ours", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		p := NewParser(param.Limits{Nodes: 1 << 40}.WithDefaults())
		for b.Loop() {
			p.Reset(bytes.NewReader(text))
			for {
				if _, err := p.Next(); err != nil {
					break
				}
			}
		}
	})
	b.Run("encoding/xml", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			d := xml.NewDecoder(bytes.NewReader(text))
			for {
				if _, err := d.Token(); err != nil {
					break
				}
			}
		}
	})
}
