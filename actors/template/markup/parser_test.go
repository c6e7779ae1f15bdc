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

	"troupe/actors/template/param"
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

// readers read a text in different ways.
func readers(text string) map[string]io.Reader {
	return map[string]io.Reader{
		"at once": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text)),
		"the end with the last bytes": iotest.DataErrReader(strings.NewReader(text)),
	}
}

func TestEvents(t *testing.T) {
	tests := []struct {
		rule, text string
		want       []string
	}{
		{"an element", "<a></a>", []string{"start a", "end"}},
		{"an empty element", "<a/>", []string{"start a", "end"}},
		{"blanks in tags", "<a\n b = '1'\t></a\n>", []string{`start a b="1"`, "end"}},
		{"both quotes", `<a b='"' c="'>"/>`, []string{`start a b="\"" c="'>"`, "end"}},
		{"names", "<\u00e9:_-.1 xml:\u6f22\u00b7=''/>", []string{"start \u00e9:_-.1 xml:\u6f22\u00b7=\"\"", "end"}},
		{"references", "<a b='&lt;&#x41;&#10;&amp;amp;'>&gt;&quot;&apos;&#36;&#x7B;&#000000065;&#x1F600;</a>", []string{`start a b="<A\n&amp;"`, `text ">\"'${A😀"`, "end"}},
		{"line ends", "<a>1\r\n2\r3\n4&#13;\r</a>", []string{"start a", `text "1\n2\n3\n4\r\n"`, "end"}},
		{"blanks in values", "<a b='1\r\n2\r3\n4\t5&#9;6'/>", []string{`start a b="1 2 3 4 5\t6"`, "end"}},
		{"CDATA", "<a>1<![CDATA[<&]]]]>2<![CDATA[]]></a>", []string{"start a", `text "1"`, "break", `text "<&]]"`, "break", `text "2"`, "break", "break", "end"}},
		{"CDATA with line ends", "<a><![CDATA[\r\n\r]]></a>", []string{"start a", "break", `text "\n\n"`, "break", "end"}},
		{"comments and instructions", "<?xml version='1.0'?><!-- <b> - -->\n<?p ?x?><a>1<!----><?p?></a><!-- -->\n", []string{"break", "break", "break", "start a", `text "1"`, "break", "break", "end", "break"}},
		{"white space in sections, comments and instructions", "<a><![CDATA[\t\n]]><!--\t\n-\t--><?p \t\n?\t?></a>", []string{"start a", "break", `text "\t\n"`, "break", "break", "break", "end"}},
		{"brackets", "<a>]] ]] > ]></a>", []string{"start a", `text "]] ]] > ]>"`, "end"}},
		{"a document type", "<!DOCTYPE a SYSTEM 'x[].dtd'><a/>", []string{"break", "start a", "end"}},
		{"a public document type", "<!DOCTYPE a PUBLIC \"p\" 'x' ><a/>", []string{"break", "start a", "end"}},
		{"a short document type", "<!DOCTYPE a><a/>", []string{"break", "start a", "end"}},
		{"nesting", "<a><b><c/></b><b/></a>", []string{"start a", "start b", "start c", "end", "end", "start b", "end", "end"}},
		{"U+2028 is no line end", "<a>\u2028\u0085\u007f</a>", []string{"start a", "text \"\u2028\u0085\u007f\"", "end"}},
		{"a declaration in full", "<?xml version = '1.1' encoding=\"UTF-8\" standalone='yes' ?><a/>", []string{"break", "start a", "end"}},
	}
	for _, test := range tests {
		t.Run(test.rule, func(t *testing.T) {
			for name, r := range readers(test.text) {
				want := slices.Clone(test.want)
				for i := range want {
					want[i] = strings.ReplaceAll(want[i], "\u0085\u007f", `\u0085\x7f`)
					want[i] = strings.ReplaceAll(want[i], "\u2028", `\u2028`)
				}
				got, err := events(r, param.Limits{})
				assert.True(t, err == nil && slices.Equal(got, want), "%s:\ngot  %q, %v\nwant %q", name, got, err, want)
			}
		})
	}
}

func TestNotWellFormed(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "there is no element"},
		{"  \n ", "there is no element"},
		{"<!-- -->", "there is no element"},
		{"x", "text outside the root"},
		{"<a/>x", "text outside the root"},
		{"&amp;<a/>", "text outside the root"},
		{"<a/><![CDATA[]]>", "text outside the root"},
		{"<a/><b/>", "a second root element"},
		{"<a>", `ends inside the element "a"`},
		{"<a></b>", `the end tag "b" closes nothing`},
		{"<a></a b>", `closes nothing`},
		{"</a>", `closes nothing`},
		{"<a></ a>", "closes nothing"},
		{"<", "ends inside a tag"},
		{"<a", "ends inside a tag"},
		{"<a b='", "ends inside a tag"},
		{"< a/>", "a tag without a name"},
		{"<1/>", "a tag without a name"},
		{"<>", "a tag without a name"},
		{"<a b>", "an attribute without a value"},
		{"<a b=1>", "without quotes"},
		{"<a b=''c=''/>", "not a name and attributes"},
		{"<a b='' b=\"\"/>", `the attribute "b" stands twice`},
		{"<a a='' b='' c='' d='' e='' f='' g='' h='' i='' a=''/>", `the attribute "a" stands twice`},
		{"<a / >", "not a name and attributes"},
		{"<a b='<'/>", "a < inside an attribute"},
		{"<a <b/>", "a < inside a tag"},
		{"<a b='&x;'/>", `the reference "&x;" is not one of`},
		{"<a>&nbsp;</a>", `the reference "&nbsp;" is not one of`},
		{"<a>&</a>", "not a reference"},
		{"<a b='&'/>", "not a reference"},
		{"<a>&amp", "ends inside a reference"},
		{"<a>&#0;</a>", "is not one of"},
		{"<a>&#xD800;</a>", "is not one of"},
		{"<a>&#x110000;</a>", "is not one of"},
		{"<a>&#99999999999999999999;</a>", "is not one of"},
		{"<a>&#;&#x;</a>", "is not one of"},
		{"<a>&#+1;</a>", "is not one of"},
		{"<a>&#X41;</a>", "is not one of"},
		{"<a>\x00</a>", "a character that must not be"},
		{"<a>\x1f</a>", "a character that must not be"},
		{"<a b='\x01'/>", "a character that must not be"},
		{"<a><!--\x01--></a>", "a character that must not be"},
		{"<a><?p \x01?></a>", "a character that must not be"},
		{"<a><![CDATA[\x01]]></a>", "a character that must not be"},
		{"<a>\ufffe</a>", "a character that must not be"},
		{"<a b='\uffff'/>", "a character that must not be"},
		{"<a>\xff</a>", "bytes that are not UTF-8"},
		{"<a>\xed\xa0\x80</a>", "bytes that are not UTF-8"},
		{"<a>\xc0\x80</a>", "bytes that are not UTF-8"},
		{"<a b='\xe9'/>", "bytes that are not UTF-8"},
		{"<a>\xe2\x82", "bytes that are not UTF-8"},
		{"<a>]]></a>", "]]> outside a CDATA section"},
		{"<a><![CDATA[", "ends inside a CDATA section"},
		{"<a><![CDATA[]]", "ends inside a CDATA section"},
		{"<a><!-- -- --></a>", "-- inside a comment"},
		{"<a><!-- --->", "-- inside a comment"},
		{"<a><!-- ", "ends inside a comment"},
		{"<a><!--> --></a>", ""},
		{"<a><!x></a>", "a <! that is neither"},
		{"<a><!DOCTYPE a></a>", "not before the root"},
		{"<!DOCTYPE a><!DOCTYPE a><a/>", "not before the root"},
		{"<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>", "internal subset"},
		{"<!DOCTYPE a SYSTEM 'b' []><a/>", "internal subset"},
		{"<!DOCTYPE><a/>", "a document type without a name"},
		{"<!DOCTYPE a b><a/>", "neither SYSTEM nor PUBLIC"},
		{"<!DOCTYPE a SYSTEM><a/>", "without its identifier"},
		{"<!DOCTYPE a SYSTEM ><a/>", "without its identifier"},
		{"<!DOCTYPE a PUBLIC 'x'><a/>", "without its identifier"},
		{"<!DOCTYPE a PUBLIC 'x''y'><a/>", "without its identifier"},
		{"<!DOCTYPE a SYSTEM 'x' y><a/>", "a document type that does not end"},
		{"<!DOCTYPE a", "ends inside the document type"},
		{"<? x?><a/>", "no name"},
		{"<?x+?><a/>", "no blank after the name"},
		{"<?x ", "ends inside a processing instruction"},
		{"<?xm", "ends inside a processing instruction"},
		{" <?xml version='1.0'?><a/>", "not at the start"},
		{"<a><?XML ?></a>", "not at the start"},
		{"<?xml?><a/>", "has no version"},
		{"<?xml encoding='utf-8'?><a/>", "has no version"},
		{"<?xml version='2.0'?><a/>", "none of XML 1"},
		{"<?xml version='1.0' x='y'?><a/>", "none of XML 1"},
		{"<?xml version='1.0' standalone='no' encoding='utf-8'?><a/>", "none of XML 1"},
		{"<?xml version='1.0'", "ends inside the XML declaration"},
		{"<?xml version='1.0' " + strings.Repeat(" ", 2000), "an XML declaration of more than 500 bytes"},
		{"<?xml version='1.0'" + strings.Repeat(" ", 500) + "?><a/>", "an XML declaration of more than 500 bytes"},
	}
	for _, test := range tests {
		for name, r := range readers(test.text) {
			_, err := events(r, param.Limits{})
			if test.want == "" && err == nil {
				continue
			}
			assert.True(t, errors.Is(err, param.ErrNotTemplate) && strings.Contains(err.Error(), test.want), "%q, %s:\ngot  %v\nwant %s", test.text, name, err, test.want)
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

// pieces returns the same of this package.
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
