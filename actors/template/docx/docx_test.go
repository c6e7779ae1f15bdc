package docx

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

	"troupe/actors/template/param"
	"troupe/actors/template/templatetest"
)

// run is a run with a text.
func run(text string) string { return "<w:r><w:t>" + text + "</w:t></w:r>" }

// declares demands what a document declares; nothing with an error.
func declares(t *testing.T, rule string, file []byte, want []string, wantErr error) {
	t.Helper()
	got, err := parse(file)
	if !errors.Is(err, wantErr) || (got == nil) != (wantErr != nil) || !slices.Equal(templatetest.Short(got), want) {
		t.Errorf("%s: got %q, %v; want %q, %v", rule, templatetest.Short(got), err, want, wantErr)
	}
}

// TestText holds gateway/INTERFACE.md, "Places in a document template", and each
// row of actors/template/DESIGN.md,
// "Where they stand in a document template (docx)".
func TestText(t *testing.T) {
	box := func(text string) string { return "<w:txbxContent>" + templatetest.Paragraph(text) + "</w:txbxContent>" }
	alternatives := func(content string) string {
		return "<w:p><w:r><mc:AlternateContent>" + content + "</mc:AlternateContent></w:r></w:p>"
	}
	tests := []struct {
		rule, body string
		want       []string
	}{
		{"no text", "", nil},
		{"one run", templatetest.Paragraph("Dear ${a#t#d},"), []string{"a#t#d"}},
		{"runs are joined", "<w:p>" + run("$") + run("{") + run("a") + run("#") + run("t}") + "</w:p>", []string{"a#t"}},
		{"two texts in a run", "<w:p><w:r><w:t>${</w:t><w:t>a}</w:t></w:r></w:p>", []string{"a"}},
		{"two parameters share a run", "<w:p>" + run("${a") + run("#t} and ${b") + run("##}") + "</w:p>", []string{"a#t", "b"}},
		{"across marks", "<w:p>" + run("${a") + `<w:proofErr w:type="spellStart"/><w:bookmarkStart w:name="x"/><w:bookmarkEnd/>` + run("b}") + "</w:p>", []string{"ab"}},
		{"across page breaks of the last layout", "<w:p>" + run("${a") + "<w:r><w:lastRenderedPageBreak/><w:t>b}</w:t></w:r></w:p>", []string{"ab"}},
		{"across formatting", "<w:p>" + run("${a") + "<w:r><w:rPr><w:b/></w:rPr><w:t>b}</w:t></w:r></w:p>", []string{"ab"}},
		{"blanks are kept", "<w:p>" + run(" ${ a # t # d } ") + "</w:p>", []string{" a # t # d "}},
		{"a tab is a tab", "<w:p><w:r><w:t>${a#</w:t><w:tab/><w:t>#</w:t><w:ptab/><w:t>}</w:t></w:r></w:p>", []string{"a#\t#\t"}},
		{"a break is a line end", "<w:p><w:r><w:t>${a##x</w:t><w:br/><w:t>y</w:t><w:cr/><w:t>z}</w:t></w:r></w:p>", []string{"a##x\ny\nz"}},
		{"a hyphen that keeps together is a hyphen", "<w:p><w:r><w:t>${a</w:t><w:noBreakHyphen/><w:t>b}</w:t></w:r></w:p>", []string{"a-b"}},
		{"a soft hyphen is nothing", "<w:p><w:r><w:t>${a</w:t><w:softHyphen/><w:t>b}</w:t></w:r></w:p>", []string{"ab"}},
		{"tab stops are no tabs", "<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr>" + run("${a}") + "</w:p>", []string{"a"}},
		{"in hyperlinks, tags, controls", "<w:p>" + run("${") + "<w:hyperlink>" + run("a") + "</w:hyperlink><w:smartTag>" + run("b") + "</w:smartTag><w:sdt><w:sdtContent>" + run("c}") + "</w:sdtContent></w:sdt></w:p>", []string{"abc"}},
		{"inserted and moved text", "<w:p><w:ins>" + run("${a") + "</w:ins><w:moveTo>" + run("b}") + "</w:moveTo></w:p>", []string{"ab"}},
		{"deleted text is not", "<w:p>" + run("${a") + "<w:del><w:r><w:delText>${x}</w:delText><w:t>y</w:t><w:tab/></w:r></w:del>" + run("}") + "</w:p>", []string{"a"}},
		{"text that was moved away is not", "<w:p>" + run("${a") + "<w:moveFrom>" + run("${x}") + "</w:moveFrom>" + run("}") + "</w:p>", []string{"a"}},
		{"the mark of a deleted paragraph deletes no text", "<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr>" + run("${a}") + "</w:p>", []string{"a"}},
		{"field codes are not", "<w:p><w:r><w:instrText>${x}</w:instrText></w:r><w:r><w:delInstrText>${y}</w:delInstrText></w:r>" + run("${a}") + "</w:p>", []string{"a"}},
		{"simple fields: their result", `<w:p><w:fldSimple w:instr="${x}">` + run("${a}") + "</w:fldSimple></w:p>", []string{"a"}},
		{"hidden text is text", "<w:p><w:r><w:rPr><w:vanish/></w:rPr><w:t>${a}</w:t></w:r></w:p>", []string{"a"}},
		{"equations", "<w:p><m:oMath><m:r><m:t>${a</m:t></m:r></m:oMath>" + run("}") + "</w:p>", []string{"a"}},
		{"not across paragraphs", templatetest.Paragraph("${a") + templatetest.Paragraph("}"), nil},
		{"not across cells", "<w:tbl><w:tr><w:tc>" + templatetest.Paragraph("${a") + "</w:tc><w:tc>" + templatetest.Paragraph("} ${b}") + "</w:tc></w:tr></w:tbl>", []string{"b"}},
		{"tables in tables", "<w:tbl><w:tr><w:tc><w:tbl><w:tr><w:tc>" + templatetest.Paragraph("${a}") + "</w:tc></w:tr></w:tbl></w:tc></w:tr></w:tbl>", []string{"a"}},
		{"not across a comment of XML inside a text, which is nothing", "<w:p><w:r><w:t>${a<!-- ${x} --><?p ${y}?>b}</w:t></w:r></w:p>", []string{"ab"}},
		{"CDATA is text", "<w:p><w:r><w:t><![CDATA[${a}]]></w:t></w:r></w:p>", []string{"a"}},
		{"references", "<w:p>" + run("&#36;&#x7B;a##&amp;&lt;}") + "</w:p>", []string{"a##&<"}},
		{"text boxes: once, not the fallback", alternatives(`<mc:Choice Requires="wps">` + box("${a} ${b#t1}") + "</mc:Choice><mc:Fallback>" + box("${a#x} ${b#t2} ${c}") + "</mc:Fallback>"), []string{"a", "b#t1"}},
		{"text boxes: the first choice", alternatives(`<mc:Choice Requires="x">` + box("${a}") + `</mc:Choice><mc:Choice Requires="y">` + box("${b}") + "</mc:Choice>"), []string{"a"}},
		{"text boxes: the fallback when there is no choice", alternatives("<mc:Fallback>" + box("${a}") + "</mc:Fallback>"), []string{"a"}},
		{"text boxes of old documents", "<w:p><w:r><w:pict><v:shape><v:textbox>" + box("${a}") + "</v:textbox></v:shape></w:pict></w:r></w:p>", []string{"a"}},
		{"text boxes: their paragraphs are their own", "<w:p>" + run("${a") + "<w:r><w:pict>" + box("${b} }") + "</w:pict></w:r>" + run("#t}") + "</w:p>", []string{"a#t", "b"}},
		{"text boxes in text boxes", alternatives("<mc:Choice><w:txbxContent>" + alternatives("<mc:Choice>"+box("${a}")+"</mc:Choice><mc:Fallback>"+box("${x}")+"</mc:Fallback>") + templatetest.Paragraph("${b}") + "</w:txbxContent></mc:Choice><mc:Fallback>" + box("${y}") + "</mc:Fallback>"), []string{"a", "b"}},
		{"alternatives one after the other", alternatives("<mc:Choice>"+box("${a}")+"</mc:Choice><mc:Fallback/>") + alternatives("<mc:Choice>"+box("${b}")+"</mc:Choice>"), []string{"a", "b"}},
		{"alternative text and names are not", `<w:p><w:r><w:drawing><wp:docPr name="${x}" descr="${y}" title="${z}"/><a:t>${u}</a:t></w:drawing></w:r>` + run("${a}") + "</w:p>", []string{"a"}},
		{"text outside paragraphs is none", "<w:t>${x}</w:t>" + templatetest.Paragraph("${a}"), []string{"a"}},
		{"elements of other namespaces are others", `<w:p><t xmlns="x">${x}</t><w:t xmlns:w="y">${y}</w:t>` + run("${a}") + "</w:p>", []string{"a"}},
		{"a prefix is that of its element", `<w:p><n:r xmlns:n="http://purl.oclc.org/ooxml/wordprocessingml/main"><n:t>${a}</n:t></n:r><n:t>${x}</n:t></w:p>`, []string{"a"}},
		{"the same one again and again", strings.Repeat(templatetest.Paragraph("${a#t}"), 3), []string{"a#t"}},
	}
	for _, test := range tests {
		declares(t, test.rule, templatetest.Docx(test.body), test.want, nil)
	}
}

// TestEverySplit: wherever the runs are split, the parameter is found.
func TestEverySplit(t *testing.T) {
	const text = "${a#date#2020-01-01}"
	for i := range text {
		for j := i; j <= len(text); j++ {
			file := templatetest.Docx("<w:p>" + run(text[:i]) + run(text[i:j]) + run(text[j:]) + "</w:p>")
			declares(t, fmt.Sprintf("%q %q %q", text[:i], text[i:j], text[j:]), file, []string{"a#date#2020-01-01"}, nil)
		}
	}
}

// TestParts holds "in parts reached through relationships".
func TestParts(t *testing.T) {
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

// TestRelationships holds what a relationship may lead to. The list of the main
// part is written out, for what a Package would not write.
func TestRelationships(t *testing.T) {
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

// TestReaderErrors: what the reader says is not taken for a fault of the file.
func TestReaderErrors(t *testing.T) {
	file := templatetest.Docx(templatetest.Paragraph("${a}"))
	broken := errors.New("the disk is gone")
	for at := range len(file) {
		_, err := Parameters(brokenFile{file, int64(at), broken}, int64(len(file)), param.Limits{})
		assert.False(t, err != nil && !errors.Is(err, broken), "unreadable from byte %d: got %v, want the reader's error", at, err)
	}
	for _, size := range []int64{-1, 0, 1, int64(len(file)) - 1, 1 << 20} {
		_, err := Parameters(bytes.NewReader(file), size, param.Limits{})
		assert.ErrorIs(t, err, param.ErrNotTemplate, "size %d of %d", size, len(file))
	}
}

// brokenFile cannot be read at one byte.
type brokenFile struct {
	file []byte
	at   int64
	err  error
}

func (b brokenFile) ReadAt(p []byte, at int64) (int, error) {
	if at <= b.at && b.at < at+int64(len(p)) {
		return 0, b.err
	}
	return bytes.NewReader(b.file).ReadAt(p, at)
}

// TestRoundTripControl: the random documents catch a reader that makes a mistake
// that readers of documents do make.
func TestRoundTripControl(t *testing.T) {
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
