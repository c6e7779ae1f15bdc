package template_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"troupe/actors/template/docx"
	"troupe/actors/template/param"
	"troupe/actors/template/templatetest"
	_ "troupe/internal/fixedseed"
)

func run(text string) string { return "<w:r><w:t>" + text + "</w:t></w:r>" }

// declares demands what a document declares; nothing with an error.
func declares(t *testing.T, rule string, file []byte, want []string, wantErr error) {
	t.Helper()
	got, err := parseDocument(file)
	if !errors.Is(err, wantErr) || (got == nil) != (wantErr != nil) || !slices.Equal(templatetest.Short(got), want) {
		t.Errorf("%s: got %q, %v; want %q, %v", rule, templatetest.Short(got), err, want, wantErr)
	}
}

// TestDocumentScript plays testdata/docx.
func TestDocumentScript(t *testing.T) {
	templatetest.Play(t, "testdata/docx", func(t *testing.T, _, body string) string {
		got, err := parseDocument(templatetest.Docx(body))
		return templatetest.Told(t, got, err)
	})
}

// TestDocumentEverySplit: wherever the runs are split, the parameter is found.
func TestDocumentEverySplit(t *testing.T) {
	const text = "${a#date#2020-01-01}"
	for i := range text {
		for j := i; j <= len(text); j++ {
			file := templatetest.Docx("<w:p>" + run(text[:i]) + run(text[i:j]) + run(text[j:]) + "</w:p>")
			declares(t, fmt.Sprintf("%q %q %q", text[:i], text[i:j], text[j:]), file, []string{"a#date#2020-01-01"}, nil)
		}
	}
}

// TestDocumentParts holds "in parts reached through relationships".
func TestDocumentParts(t *testing.T) {
	story := func(kind, text string) templatetest.Part {
		root := map[string]string{"header": "hdr", "footer": "ftr"}[kind]
		if root == "" {
			root = kind
		}
		return templatetest.Part{Kind: kind, Name: "word/" + kind + ".xml", XML: templatetest.Story(root, templatetest.Paragraph(text), false)}
	}
	body := templatetest.Body(templatetest.Paragraph("${body}"))
	tests := []struct {
		rule string
		pkg  templatetest.Package
		want []string
	}{
		{"all parts with text", templatetest.Package{Main: body, Others: []templatetest.Part{
			story("comments", "${comment}"), story("endnotes", "${endnote}"), story("footnotes", "${footnote}"), story("footer", "${footer}"), story("header", "${header}"),
		}}, []string{"body", "comment", "endnote", "footer", "footnote", "header"}},
		{"the body is first, then headers, footers, notes, comments", templatetest.Package{Main: templatetest.Body(templatetest.Paragraph("${a}")), Others: []templatetest.Part{
			story("comments", "${a#5}"), story("endnotes", "${a#4}${b#4}"), story("footer", "${a#2}"), story("header", "${a#1}"), story("footnotes", "${b#3}"),
		}}, []string{"a#1", "b#3"}},
		{"names do not matter", templatetest.Package{Name: "x/y z.xml", Main: body, Others: []templatetest.Part{
			{Kind: "header", Name: "x/footer1.bin", XML: templatetest.Story("hdr", templatetest.Paragraph("${header}"), false)},
		}}, []string{"body", "header"}},
		{"in the top folder", templatetest.Package{Name: "main.xml", Main: body, Others: []templatetest.Part{story("header", "${header}")}}, []string{"body", "header"}},
		{"absolute targets", templatetest.Package{Main: body, Others: []templatetest.Part{story("header", "${header}")}, Target: func(_, to string) string { return "/" + to }}, []string{"body", "header"}},
		{"targets in other letters", templatetest.Package{Main: body, Target: func(_, to string) string { return "/" + strings.ToUpper(to) }}, []string{"body"}},
		{"targets as URIs", templatetest.Package{Name: "word/a b.xml", Main: body, Target: func(_, to string) string { return "/" + strings.ReplaceAll(to, " ", "%20") + "#x" }}, []string{"body"}},
		{"strict documents", templatetest.Package{Strict: true, Main: templatetest.Story("document", templatetest.Paragraph("${body}"), true)}, []string{"body"}},
		{"a part that nothing leads to", templatetest.Package{Main: body, More: []templatetest.Entry{{Name: "word/header1.xml", Content: templatetest.Story("hdr", templatetest.Paragraph("${x}"), false)}}}, []string{"body"}},
		{"a part to which two lead", templatetest.Package{Main: body, Others: []templatetest.Part{story("header", "${header}")}, Target: func(from, to string) string { return "/" + to }}, []string{"body", "header"}},
		{"other kinds of parts", templatetest.Package{Main: body, Others: []templatetest.Part{
			{Kind: "glossaryDocument", Name: "word/g.xml", XML: templatetest.Story("glossaryDocument", templatetest.Paragraph("${x}"), false)},
			{Kind: "settings", Name: "word/s.xml", XML: "no XML"},
			{Kind: "chart", Name: "word/c.xml", XML: "<a>${x}</a>"},
			{Kind: "package", Name: "word/embeddings/x.docx", XML: string(templatetest.Docx(templatetest.Paragraph("${x}")))},
		}}, []string{"body"}},
		{"entries that cannot be parts", templatetest.Package{Main: body, More: []templatetest.Entry{
			{Name: "../../x"}, {Name: "/etc/passwd"}, {Name: `word\document.xml`}, {Name: "word/./document.xml"}, {Name: "a\x00b"}, {Name: "word/"}, {Name: "a//b"},
		}}, []string{"body"}},
	}
	for _, test := range tests {
		declares(t, test.rule, templatetest.Zip(test.pkg.Entries()...), test.want, nil)
	}
}

// TestDocumentRelationships holds what a relationship may lead to. The list of the main
// part is written out, for what a Package would not write.
func TestDocumentRelationships(t *testing.T) {
	const kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
	header := templatetest.Entry{Name: "word/h.xml", Content: templatetest.Story("hdr", templatetest.Paragraph("${header}"), false)}
	tests := []struct {
		rule, relation string
		want           []string
		err            error
	}{
		{"inside", `<Relationship Type="` + kinds + `header" Target="h.xml" TargetMode="Internal"/>`, []string{"body", "header"}, nil},
		{"outside is never fetched", `<Relationship Type="` + kinds + `header" Target="http://169.254.169.254/" TargetMode="External"/>`, []string{"body"}, nil},
		{"outside without saying so", `<Relationship Type="` + kinds + `header" Target="http://169.254.169.254/"/>`, nil, param.ErrNotTemplate},
		{"twice", strings.Repeat(`<Relationship Type="`+kinds+`header" Target="h.xml"/>`, 2), []string{"body", "header"}, nil},
		{"twice, spelled in two ways", `<Relationship Type="` + kinds + `header" Target="h.xml"/><Relationship Type="` + kinds + `header" Target="%68.xml"/>`, []string{"body", "header"}, nil},
		{"to itself", `<Relationship Type="` + kinds + `header" Target="document.xml"/>`, []string{"body"}, nil},
		{"to its own list", `<Relationship Type="` + kinds + `header" Target="_rels/document.xml.rels"/>`, nil, param.ErrNotTemplate},
		{"to nothing", `<Relationship Type="` + kinds + `header" Target="no.xml"/>`, nil, param.ErrNotTemplate},
		{"above the top", `<Relationship Type="` + kinds + `header" Target="../../../word/h.xml"/>`, []string{"body", "header"}, nil},
		{"without a target", `<Relationship Type="` + kinds + `header"/>`, []string{"body"}, nil},
		{"of an unknown kind", `<Relationship Type="urn:header" Target="h.xml"/>`, []string{"body"}, nil},
		{"in another namespace", `<x:Relationship xmlns:x="y" Type="` + kinds + `header" Target="h.xml"/>`, []string{"body"}, nil},
		{"not well-formed", `<Relationship`, nil, param.ErrNotTemplate},
	}
	for _, test := range tests {
		entries := templatetest.Package{Main: templatetest.Body(templatetest.Paragraph("${body}"))}.Entries()
		entries[3].Content = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` + test.relation + `</Relationships>`
		declares(t, test.rule, templatetest.Zip(append(entries, header)...), test.want, test.err)
	}
}

// TestDocumentReaderErrors: what the reader says is not taken for a fault of the file.
func TestDocumentReaderErrors(t *testing.T) {
	file := templatetest.Docx(templatetest.Paragraph("${a}"))
	broken := errors.New("the disk is gone")
	for at := range len(file) {
		_, err := docx.Parameters(brokenDocument{file, int64(at), broken}, int64(len(file)), param.Limits{})
		assert.False(t, err != nil && !errors.Is(err, broken), "unreadable from byte %d: got %v, want the reader's error", at, err)
	}
	for _, size := range []int64{-1, 0, 1, int64(len(file)) - 1, 1 << 20} {
		_, err := docx.Parameters(bytes.NewReader(file), size, param.Limits{})
		assert.ErrorIs(t, err, param.ErrNotTemplate, "size %d of %d", size, len(file))
	}
}

// brokenDocument cannot be read at one byte.
type brokenDocument struct {
	file []byte
	at   int64
	err  error
}

func (b brokenDocument) ReadAt(p []byte, at int64) (int, error) {
	if at <= b.at && b.at < at+int64(len(p)) {
		return 0, b.err
	}
	return bytes.NewReader(b.file).ReadAt(p, at)
}

// TestDocumentRoundTripControl: the random documents catch a reader that makes a mistake
// that readers of documents do make.
func TestDocumentRoundTripControl(t *testing.T) {
	text := regexp.MustCompile(`(?s)<(?:\w+:)?t(?: [^>]*)?>(.*?)</(?:\w+:)?t>`)
	caught := 0
	for seed := range uint64(50) {
		file, want := templatetest.Document(rand.New(rand.NewPCG(seed, 0)), []param.Param{{Name: "a", Type: "date"}, {Name: "b c", Default: "d-e"}})
		archive, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
		require.NoError(t, err)
		list := param.NewCollector(param.Limits{})
		for _, f := range archive.File {
			if !strings.HasSuffix(f.Name, ".xml") {
				continue
			}
			content, err := f.Open()
			require.NoError(t, err)
			var all bytes.Buffer
			_, _ = all.ReadFrom(content) // what cannot be read is a mistake, too
			s := param.NewScanner(list)
			for _, match := range text.FindAllSubmatch(all.Bytes(), -1) {
				_ = s.Write(match[1])
			}
			_ = s.End()
		}
		if !slices.Equal(list.Params(), want) {
			caught++
		}
	}
	assert.GreaterOrEqual(t, caught, 25, "only")
}

func parseDocument(file []byte) ([]param.Param, error) {
	return docx.Parameters(bytes.NewReader(file), int64(len(file)), param.Limits{})
}

// TestWhatGoesIntoDocumentsComesOut writes random parameters into random documents and
// expects exactly them.
func TestWhatGoesIntoDocumentsComesOut(t *testing.T) {
	templatetest.Repeat(t)
	rapid.Check(t, func(t *rapid.T) {
		params := rapid.SliceOfN(templatetest.Param(), 0, 8).Draw(t, "params")
		chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		file, want := templatetest.Document(chance, params)
		got, err := parseDocument(file)
		require.True(t, err == nil && slices.Equal(got, want), "got  %q, %v\nwant %q", got, err, want)
	})
}
