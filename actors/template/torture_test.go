package template

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/stretchr/testify/assert"

	"troupe/actors/template/templatetest"
	"troupe/statemachine/cputest"
)

const (
	second = time.Second
	// bytesMax is how much memory any file may take. What is allocated in all is
	// compared with it, which is never less than what is in use at a time.
	bytesMax = 64 << 20
)

// measured answers for a file, and fails when that takes too long, the fastest of
// three times, or too much memory. Time is the processor's, where the system tells
// it of one thread: other programs that run take nothing from a file's two seconds.
func measured(t *testing.T, kind Kind, file io.ReaderAt, size int64, limits Limits, bytesMax uint64) ([]Param, error) {
	t.Helper()
	var fastest time.Duration
	for try := range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		watched := cputest.Watch()
		params, err := Parameters(kind, file, size, limits)
		took := watched()
		runtime.ReadMemStats(&after)
		used := after.TotalAlloc - before.TotalAlloc
		assert.LessOrEqual(t, used, bytesMax, "it allocated %d MB, more than %d", used>>20, bytesMax>>20)
		if try == 0 || took < fastest {
			fastest = took
		}
		if fastest <= timeMax {
			t.Logf("%v, %d KB", took.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>10)
			return params, err
		}
	}
	t.Errorf("it took %v, more than %v", fastest, timeMax)
	return nil, nil
}

// torture is a file that is made to hurt, and what it must be answered with.
type torture struct {
	name string
	make func() []byte
	err  error  // nil: it is answered
	says string // is a part of the error
	want int    // parameters
}

func (c torture) run(t *testing.T, kind Kind, limits Limits, bytesMax uint64) {
	t.Run(c.name, func(t *testing.T) {
		file := c.make()
		params, err := measured(t, kind, bytes.NewReader(file), int64(len(file)), limits, bytesMax)
		assert.True(t, errors.Is(err, c.err) && (err == nil || strings.Contains(err.Error(), c.says)) && len(params) == c.want,
			"got %d parameters, %v; want %d, %v %s", len(params), err, c.want, c.err, c.says)
	})
}

func text(s string) func() []byte { return func() []byte { return []byte(s) } }

// many is a text again and again, between a root's tags.
func many(piece string, n int) func() []byte {
	return func() []byte { return []byte("<a>" + strings.Repeat(piece, n) + "</a>") }
}

// TestTortureReport holds persistence/PROMISES.md, "P20", for reports.
func TestTortureReport(t *testing.T) {
	if !heavy {
		t.Skip("they are large")
	}
	for _, c := range []torture{
		{"an empty file", text(""), ErrNotTemplate, "no element", 0},
		{"one byte", text("<"), ErrNotTemplate, "", 0},
		{"plain text", text("Dear ${a},"), ErrNotTemplate, "outside the root", 0},
		{"a document under the wrong name", func() []byte { return templatetest.Docx("") }, ErrNotTemplate, "", 0},
		{"an encrypted document under the wrong name", func() []byte { return compound("EncryptedPackage", 512) }, ErrNotTemplate, "", 0},
		{"a million elements in each other", text(strings.Repeat("<a>", 1_000_000)), ErrTooLarge, "more than 256 elements inside each other", 0},
		{"3 million elements", many("<r/>", 3_000_000), nil, "", 0},
		{"5 million elements", many("<r/>", 5_000_000), ErrTooLarge, "more than 4000000 elements and attributes", 0},
		{"a million attributes", text("<a " + strings.Repeat("b='' ", 1_000_000) + "/>"), ErrTooLarge, "more than 4 MiB in one tag", 0},
		{"100,000 attributes", text("<a " + strings.Repeat("b='' ", 100_000) + "/>"), ErrTooLarge, "more than 1000 attributes", 0},
		{"2 million attributes of 1,000 each", func() []byte {
			tag := "<b"
			for i := range 999 {
				tag += fmt.Sprintf(" %c%d=''", 'a'+i%26, i/26)
			}
			return many(tag+"/>", 2000)()
		}, nil, "", 0},
		{"an attribute of 3 MB", text("<a b='${x##" + strings.Repeat("y", 60_000) + "}" + strings.Repeat("&#36;", 600_000) + "'/>"), nil, "", 1},
		{"an attribute of 19 MB", text("<a b='" + strings.Repeat("y", 19<<20) + "'/>"), ErrTooLarge, "more than 4 MiB in one tag", 0},
		{"a text of 20 MB", many("x", 20<<20-7), nil, "", 0},
		{"a text of 20 MB of other letters", many("\u6f22", 20<<20/3-3), nil, "", 0},
		{"brackets", many("]", 19<<20), nil, "", 0},
		{"carriage returns", many("\r", 19<<20), nil, "", 0},
		{"references", many("&lt;", 5<<20-3), nil, "", 0},
		{"comments", many("<!---->", 2_900_000), nil, "", 0},
		{"a comment of 20 MB", text("<a><!--" + strings.Repeat("- ", 10<<20-20) + "--></a>"), nil, "", 0},
		{"a comment without an end", text("<a><!--" + strings.Repeat("-", 19<<20)), ErrNotTemplate, "", 0},
		{"sections", many("<![CDATA[]]>", 1_700_000), nil, "", 0},
		{"a file of 20 MB and a byte", many("x", 20<<20-6), ErrTooLarge, "more than 20 MiB in a file", 0},
		{"10 million ${", many("${", 10_000_000), ErrTooLarge, "more than 32 levels", 0},
		{"10 million $", many("$", 10_000_000), nil, "", 0},
		{"braces", many("${"+strings.Repeat("{", 60_000)+"<b/>", 300), nil, "", 0},
		{"a million declarations of one", many("${a##bc}", 1_000_000), nil, "", 1},
		{"more than a million of them", many("${a}", 1_000_001), ErrTooLarge, "more than 1000000 declarations", 0},
		{"10,000 parameters", numbered(10_000, "date#2020-01-01"), nil, "", 10_000},
		{"100,000 parameters", numbered(100_000, "date#2020-01-01"), ErrTooLarge, "more than 10000 parameters", 0},
		{"100 defaults of 60 KB", numbered(100, "#"+strings.Repeat("x", 60_000)), nil, "", 100},
		{"300 defaults of 60 KB", numbered(300, "#"+strings.Repeat("x", 60_000)), ErrTooLarge, "more than 8 MiB of names, types and defaults", 0},
		{"a default of 10 MB", many("${a##"+strings.Repeat("x", 10<<20)+"}", 1), ErrTooLarge, "more than 64 KiB in one declaration", 0},
		{"long names in each other", many(strings.Repeat(`${a\`, 32)+"x"+strings.Repeat(`\\`, 30_000)+strings.Repeat("}", 32), 300), ErrTooLarge, "more than 32 MiB of names", 0},
		{"billion laughs", text(`<!DOCTYPE a [<!ENTITY b "x"><!ENTITY c "&b;&b;&b;&b;">]><a>&c;</a>`), ErrNotTemplate, "internal subset", 0},
		{"an external entity", text(`<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>`), ErrNotTemplate, "internal subset", 0},
		{"a parameter entity", text(`<!DOCTYPE a [<!ENTITY % b SYSTEM "http://169.254.169.254/">%b;]><a/>`), ErrNotTemplate, "internal subset", 0},
		{"an entity that the external subset might have", text(`<!DOCTYPE a SYSTEM "http://169.254.169.254/"><a>&b;</a>`), ErrNotTemplate, "&b;", 0},
		{"UTF-16 of 20 MB", func() []byte { return append([]byte("\xff\xfe"), wide(string(many("${a}", 2_000_000)()))...) }, ErrTooLarge, "declarations", 0},
		{"UTF-16 of 10 MB", func() []byte { return append([]byte("\xff\xfe"), wide(string(many("${a} xyz\u6f22", 500_000)()))...) }, nil, "", 1},
		{"ISO-8859-1 of 20 MB", func() []byte {
			return []byte(`<?xml version="1.0" encoding="ISO-8859-1"?><a>` + strings.Repeat("\xe9", 19<<20) + "</a>")
		}, nil, "", 0},
		{"Shift_JIS of 20 MB", func() []byte {
			return []byte(`<?xml version="1.0" encoding="Shift_JIS"?><a>` + strings.Repeat("\x8a\xbf", 9<<20) + "</a>")
		}, nil, "", 0},
	} {
		c.run(t, Report, Limits{}, bytesMax)
	}
}

// numbered is a report with n parameters, each with a number and the same declaration.
func numbered(n int, declaration string) func() []byte {
	return func() []byte {
		var out bytes.Buffer
		out.WriteString("<a>")
		for i := range n {
			fmt.Fprintf(&out, "${name%d#%s}", i, declaration)
		}
		out.WriteString("</a>")
		return out.Bytes()
	}
}

func wide(s string) []byte {
	var out []byte
	for _, unit := range utf16.Encode([]rune(s)) {
		out = binary.LittleEndian.AppendUint16(out, unit)
	}
	return out
}

func document(body string) func() []byte { return func() []byte { return templatetest.Docx(body) } }

func entries(change func([]templatetest.Entry) []templatetest.Entry) func() []byte {
	return func() []byte {
		pkg := templatetest.Package{Main: templatetest.Body(templatetest.Paragraph("${a}")), Method: zip.Deflate}
		return templatetest.Zip(change(pkg.Entries())...)
	}
}

// changed makes a document with one entry changed; the main part is 2, and its
// relationships are 3.
func changed(n int, change func(*templatetest.Entry)) func() []byte {
	return entries(func(all []templatetest.Entry) []templatetest.Entry {
		change(&all[n])
		return all
	})
}

func replaced(n int, old, text string) func() []byte {
	return changed(n, func(e *templatetest.Entry) { e.Content = strings.Replace(e.Content, old, text, 1) })
}

func added(e templatetest.Entry) func() []byte {
	return entries(func(all []templatetest.Entry) []templatetest.Entry { return append(all, e) })
}

// related makes a document with 100,000 relationships to itself.
func related(kind string) func() []byte {
	return changed(3, func(e *templatetest.Entry) {
		one := `<Relationship Type="http://purl.oclc.org/ooxml/officeDocument/relationships/` + kind + `" Target="document.xml"/>`
		e.Content = strings.Replace(e.Content, "</", strings.Repeat(one, 100_000)+"</", 1)
		e.Method = zip.Store
	})
}

// header makes a document, with one thing changed in what the headers of its main
// part say.
func header(change func(*zip.FileHeader)) func() []byte {
	return changed(2, func(e *templatetest.Entry) { e.Change = change })
}

// paragraphs is so many bytes of paragraphs as a writer of documents makes them.
func paragraphs(bytesOf int) string {
	var out strings.Builder
	for i := 0; out.Len() < bytesOf; i++ {
		sum := crc32.ChecksumIEEE(fmt.Append(nil, i))
		fmt.Fprintf(&out, `<w:p w:rsidR="%08X"><w:r><w:rPr><w:b/></w:rPr><w:t xml:space="preserve">Dear ${name#text}, %d </w:t></w:r></w:p>`, sum, sum)
	}
	return out.String()
}

// TestTortureDocument holds persistence/PROMISES.md, "P20", for documents, among
// them those of persistence/PROMISES.md, "F12".
func TestTortureDocument(t *testing.T) {
	for _, c := range brokenDocuments() {
		c.run(t, Document, Limits{}, bytesMax)
	}
	if !heavy {
		t.Skip("without the large ones")
	}
	for _, c := range heavyDocuments() {
		c.run(t, Document, Limits{}, bytesMax)
	}
	// Large against their limits, which are an eighth of what they are without any.
	for _, c := range largeDocuments() {
		c.run(t, Document, Limits{PartBytes: 8 << 20, DocumentBytes: 16 << 20}, 4<<20)
	}
}

// brokenDocuments are small: they seed FuzzParameters, too.
func brokenDocuments() []torture {
	return []torture{
		{"an empty file", text(""), ErrNotTemplate, "an empty file", 0},
		{"one byte", text("P"), ErrNotTemplate, "no zip file", 0},
		{"plain text", text("Dear ${a}, " + strings.Repeat("x", 1000)), ErrNotTemplate, "no zip file", 0},
		{"a report under the wrong name", many("${a}", 1), ErrNotTemplate, "an XML or HTML file", 0},
		{"HTML", text("\ufeff\n<!DOCTYPE html><html></html>"), ErrNotTemplate, "an XML or HTML file", 0},
		{"RTF", text(`{\rtf1 ${a}}`), ErrNotTemplate, "an RTF file", 0},
		{"PDF", text("%PDF-1.7"), ErrNotTemplate, "a PDF file", 0},
		{"an old document", func() []byte { return compound("WordDocument", 512) }, ErrNotTemplate, "a compound file", 0},
		{"an encrypted document", func() []byte { return compound("EncryptedPackage", 512) }, ErrEncrypted, "needs a password", 0},
		{"an encrypted document, large sectors", func() []byte { return compound("EncryptedPackage", 4096) }, ErrEncrypted, "needs a password", 0},
		{"a compound file that leads in a circle", func() []byte {
			file := compound("WordDocument", 512)
			binary.LittleEndian.PutUint32(file[512+4:], 1) // the directory goes on with itself
			return append(file, make([]byte, 10<<20)...)
		}, ErrNotTemplate, "a compound file", 0},
		{"an encrypted entry", header(func(h *zip.FileHeader) { h.Flags |= 1 }), ErrEncrypted, "needs a password", 0},
		{"AES", header(func(h *zip.FileHeader) { h.Flags |= 1; h.Method = 99 }), ErrEncrypted, "needs a password", 0},
		{"bzip2", header(func(h *zip.FileHeader) { h.Method = 12 }), ErrNotTemplate, "method 12", 0},
		{"LZMA", header(func(h *zip.FileHeader) { h.Method = 14 }), ErrNotTemplate, "method 14", 0},
		{"Zstandard", header(func(h *zip.FileHeader) { h.Method = 93 }), ErrNotTemplate, "method 93", 0},
		{"a wrong checksum", header(func(h *zip.FileHeader) { h.CRC32++ }), ErrNotTemplate, "checksum", 0},
		{"a size that is too small", header(func(h *zip.FileHeader) { h.UncompressedSize64-- }), ErrNotTemplate, "", 0},
		{"a size that is too large", header(func(h *zip.FileHeader) { h.UncompressedSize64++ }), ErrNotTemplate, "", 0},
		{"a size of zero", header(func(h *zip.FileHeader) { h.UncompressedSize64 = 0 }), ErrNotTemplate, "", 0},
		{"a size of 4 GB", header(func(h *zip.FileHeader) { h.UncompressedSize64 = 1 << 32 }), ErrTooLarge, "more than 64 MiB in one part", 0},
		{"a size of 2^64", header(func(h *zip.FileHeader) { h.UncompressedSize64 = 1<<64 - 1 }), ErrTooLarge, "more than 64 MiB in one part", 0},
		{"a size with nothing behind it", header(func(h *zip.FileHeader) { h.CompressedSize64 = 1 << 40 }), ErrNotTemplate, "", 0},
		{"bytes that are no deflate", changed(2, func(e *templatetest.Entry) { e.Raw = []byte(strings.Repeat("\xff", 100)) }), ErrNotTemplate, "", 0},
		{"no entries", func() []byte { return templatetest.Zip() }, ErrNotTemplate, "no [Content_Types].xml", 0},
		{"no content types", entries(func(all []templatetest.Entry) []templatetest.Entry { return all[1:] }), ErrNotTemplate, "no [Content_Types].xml", 0},
		{"no relationships", entries(func(all []templatetest.Entry) []templatetest.Entry { return append(all[:1], all[2:]...) }), ErrNotTemplate, "no main part", 0},
		{"no main part", entries(func(all []templatetest.Entry) []templatetest.Entry { return append(all[:2], all[3:]...) }), ErrNotTemplate, `there is no part "/word/document.xml"`, 0},
		{"a table of numbers", changed(2, func(e *templatetest.Entry) {
			e.Content = `<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"/>`
		}), ErrNotTemplate, "the root element is not that of a text document", 0},
		{"a document type in a part", replaced(2, "<w:document", "<!DOCTYPE x><w:document"), ErrNotTemplate, "a document type", 0},
		{"a document type in relationships", replaced(1, "<Relationships", "<!DOCTYPE x><Relationships"), ErrNotTemplate, "a document type", 0},
		{"UTF-7", replaced(2, "UTF-8", "UTF-7"), ErrNotTemplate, "UTF-7", 0},
		{"the main part twice", added(templatetest.Entry{Name: "word/document.xml", Content: templatetest.Body(templatetest.Paragraph("${b}"))}), ErrNotTemplate, "is there twice", 0},
		{"the main part twice, in other letters", added(templatetest.Entry{Name: "Word/Document.XML"}), ErrNotTemplate, "is there twice", 0},
		{"something in front", func() []byte {
			return append([]byte(strings.Repeat("x", 100_000)), document(templatetest.Paragraph("${a}"))()...)
		}, nil, "", 1},
		{"something behind", func() []byte { return append(document(templatetest.Paragraph("${a}"))(), "xyz"...) }, nil, "", 1},
		{"a comment", func() []byte { return commented(document(templatetest.Paragraph("${a}"))(), "x") }, nil, "", 1},
		{"a comment that is the end of another file", func() []byte {
			other := templatetest.Docx(templatetest.Paragraph("${b}"))
			return commented(document(templatetest.Paragraph("${a}"))(), string(other[len(other)-22:]))
		}, nil, "", 1},
		{"a comment that is a whole other file", func() []byte {
			return commented(document(templatetest.Paragraph("${a}"))(), string(templatetest.Docx(templatetest.Paragraph("${b}${c}"))))
		}, nil, "", 2},
		{"an end that asks for zip64, without any", func() []byte {
			file := document(templatetest.Paragraph("${a}"))()
			copy(file[len(file)-22+8:], strings.Repeat("\xff", 12))
			return file
		}, ErrNotTemplate, "", 0},
		{"zip64, with numbers that lie", func() []byte {
			file := document(templatetest.Paragraph("${a}"))()
			end := bytes.Clone(file[len(file)-22:])
			at := len(file) - 22
			file = append(file[:at], "PK\x06\x06\x2c\x00\x00\x00\x00\x00\x00\x00"...)
			file = append(file, make([]byte, 12)...)
			for range 4 {
				file = binary.LittleEndian.AppendUint64(file, 1<<63-1)
			}
			file = append(file, "PK\x06\x07\x00\x00\x00\x00"...)
			file = binary.LittleEndian.AppendUint64(file, uint64(at))
			file = append(file, 1, 0, 0, 0)
			copy(end[8:], strings.Repeat("\xff", 12))
			return append(file, end...)
		}, ErrNotTemplate, "", 0},
		{"1,000 records of one entry", overlapping(1000), ErrNotTemplate, "entries overlap", 0},
		{"an entry inside another", nested, ErrNotTemplate, "entries overlap", 0},
		{"an entry that reaches into the directory", longer(1), ErrNotTemplate, "entries overlap", 0},
		{"an entry that reaches beyond the end", longer(0x7fffffff - 1<<20), ErrNotTemplate, "entries overlap", 0},
	}
}

func heavyDocuments() []torture {
	return []torture{
		{"2,000 entries", entries(func(all []templatetest.Entry) []templatetest.Entry { return fill(all, 2000) }), nil, "", 1},
		{"2,001 entries", entries(func(all []templatetest.Entry) []templatetest.Entry { return fill(all, 2001) }), ErrTooLarge, "more than 2000 entries", 0},
		{"65,536 entries", entries(func(all []templatetest.Entry) []templatetest.Entry { return fill(all, 65_536) }), ErrTooLarge, "in the directory of a zip file", 0},
		{"200,000 entries", entries(func(all []templatetest.Entry) []templatetest.Entry { return fill(all, 200_000) }), ErrTooLarge, "", 0},
		{"100,000 elements in each other", func() []byte { return stored(strings.Repeat("<w:p>", 100_000)) }, ErrTooLarge, "more than 8 paragraphs inside each other", 0},
		{"100,000 tables in each other", func() []byte { return stored(strings.Repeat("<w:tbl>", 100_000)) }, ErrTooLarge, "more than 256 elements inside each other", 0},
		{"3 million runs", func() []byte { return stored(strings.Repeat("<w:r/>", 3_000_000)) }, nil, "", 0},
		{"8 open declarations of 64 KB", func() []byte {
			return stored(strings.Repeat("<w:p><w:t>${"+strings.Repeat("{", 65_000)+"</w:t>", 8) + strings.Repeat("</w:p>", 8))
		}, nil, "", 0},
		{"20,000 prefixes at a time", func() []byte { return stored(bindings(20_000)) }, ErrTooLarge, "more than 10000 namespace prefixes", 0},
		{"200,000 prefixes, one after the other", func() []byte {
			var out bytes.Buffer
			for i := range 200_000 {
				fmt.Fprintf(&out, `<p%d:x xmlns:p%d="http://purl.oclc.org/ooxml/wordprocessingml/main"/>`, i, i)
			}
			return stored(out.String())
		}, nil, "", 0},
		{"100,000 parameters", func() []byte {
			return stored(templatetest.Paragraph(strings.Trim(string(numbered(100_000, "date#2020-01-01")()), "</a>")))
		}, ErrTooLarge, "more than 10000 parameters", 0},
		{"100,000 relationships", related("header"), ErrTooLarge, "more than 10000 relationships", 0},
		{"9,999 spellings of one part", spellings(9_999), nil, "", 1},
		{"100,000 hyperlinks", related("hyperlink"), nil, "", 1},
	}
}

// partBytes is what largeDocuments puts into a part.
const partBytes = 15 << 19

func largeDocuments() []torture {
	return []torture{
		{"a document of 62,500 paragraphs", func() []byte { return document(paragraphs(partBytes))() }, nil, "", 1},
		{"7 MB of text", entries(func(all []templatetest.Entry) []templatetest.Entry { return large(all, 1, partBytes) }), nil, "", 1},
		{"two parts of 7 MB of text", entries(func(all []templatetest.Entry) []templatetest.Entry { return large(all, 2, partBytes) }), nil, "", 2},
		{"two parts of brackets", twoParts("]"), nil, "", 0},
		{"two parts of carriage returns", twoParts("\r"), nil, "", 0},
		{"two parts of line ends of two characters", twoParts("\r\n"), nil, "", 0},
		{"two parts of brackets and letters", twoParts("]a"), nil, "", 0},
		{"two parts of references and brackets", twoParts("&lt;]]"), nil, "", 0},
		{"two parts of escapes in a declaration", twoParts("${x" + strings.Repeat("\\#", 30_000) + "}"), nil, "", 1},
		{"three parts of 7 MB of text", entries(func(all []templatetest.Entry) []templatetest.Entry { return large(all, 3, partBytes) }), ErrTooLarge, "more than 16 MiB in all parts", 0},
		{"a part of 8 MB of text and more", entries(func(all []templatetest.Entry) []templatetest.Entry { return large(all, 1, 9<<20) }), ErrTooLarge, "more than 8 MiB in one part", 0},
		{"a bomb: 7 MB of zeros", changed(2, func(e *templatetest.Entry) { e.Content = strings.Repeat("\x00", partBytes) }), ErrTooLarge, "more than 100 times the compressed size", 0},
		{"a bomb: blanks behind the root", changed(2, func(e *templatetest.Entry) { e.Content += strings.Repeat(" ", partBytes) }), ErrTooLarge, "more than 100 times the compressed size", 0},
		{"a bomb that lies about its size", changed(2, func(e *templatetest.Entry) {
			length := uint64(len(e.Content))
			e.Raw = templatetest.Compress(zip.Deflate, e.Content+strings.Repeat(" ", partBytes))
			e.Change = func(h *zip.FileHeader) { h.UncompressedSize64 = length }
		}), ErrNotTemplate, "", 0},
		{"a bomb in a part that is not read", added(templatetest.Entry{Name: "word/media/x.bmp", Content: strings.Repeat("\x00", partBytes), Method: zip.Deflate}), nil, "", 1},
	}
}

func commented(file []byte, comment string) []byte {
	binary.LittleEndian.PutUint16(file[len(file)-2:], uint16(len(comment)))
	return append(file, comment...)
}

// stored is a document whose parts are not compressed: ratios do not stop it.
func stored(body string) []byte {
	return templatetest.Zip(templatetest.Package{Main: templatetest.Body(body)}.Entries()...)
}

func fill(all []templatetest.Entry, n int) []templatetest.Entry {
	for i := len(all); i < n; i++ {
		all = append(all, templatetest.Entry{Name: fmt.Sprint("x/", i)})
	}
	return all
}

// twoParts is a document of two parts of almost 8 MB each: a text of pieces, and a
// comment that makes the ratio a good one.
func twoParts(piece string) func() []byte {
	return func() []byte {
		var noise strings.Builder
		for i := 0; noise.Len() < 190<<10; i++ {
			fmt.Fprintf(&noise, "%08x", crc32.ChecksumIEEE(fmt.Append(nil, i)))
		}
		body := "<!--" + noise.String() + "--><w:p><w:r><w:t>" + strings.Repeat(piece, partBytes/len(piece)) + "</w:t></w:r></w:p>"
		all := large(templatetest.Package{Method: zip.Deflate}.Entries(), 2, 1000)
		all[2].Content = templatetest.Body(body)
		all[len(all)-1].Content = templatetest.Story("hdr", body, false)
		return templatetest.Zip(all...)
	}
}

// spellings is a document with n relationships to one header, whose target each of
// them spells in another way.
func spellings(n int) func() []byte {
	return func() []byte {
		const name = "headerheader.xml"
		var relations strings.Builder
		for i := range n {
			relations.WriteString(`<Relationship Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/header" Target="`)
			for at := range len(name) {
				if i>>at&1 == 1 {
					fmt.Fprintf(&relations, "%%%02X", name[at])
				} else {
					relations.WriteByte(name[at])
				}
			}
			relations.WriteString(`"/>`)
		}
		all := large(templatetest.Package{Method: zip.Deflate}.Entries(), 2, 1000)
		all[2].Content = templatetest.Body("")
		all[len(all)-1].Name = "word/" + name
		all[3].Content = strings.Replace(all[3].Content, `Target="h1.xml"/>`, `Target="`+name+`"/>`+relations.String(), 1)
		return templatetest.Zip(all...)
	}
}

// large gives n parts a text of so many bytes; deflate makes it about 40 times
// shorter.
func large(all []templatetest.Entry, n, bytesOf int) []templatetest.Entry {
	var text strings.Builder
	for i := 0; text.Len() < bytesOf-1000; i++ {
		text.WriteString(strings.Repeat(fmt.Sprintf("%x and more ", crc32.ChecksumIEEE(fmt.Append(nil, i))), 30))
	}
	relation := `<Relationship Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/header" Target="h%d.xml"/>`
	for i := range n {
		body := templatetest.Paragraph(text.String() + fmt.Sprintf("${large%d}", i))
		if i == 0 {
			all[2].Content = templatetest.Body(body)
			continue
		}
		all = append(all, templatetest.Entry{Name: fmt.Sprintf("word/h%d.xml", i), Content: templatetest.Story("hdr", body, false), Method: zip.Deflate})
		all[3].Content = strings.Replace(all[3].Content, "</", fmt.Sprintf(relation, i)+"</", 1)
	}
	return all
}

// bindings is n prefixes in elements inside each other.
func bindings(n int) string {
	var out bytes.Buffer
	for i := range n {
		if i%500 == 0 {
			if i > 0 {
				out.WriteString(">")
			}
			out.WriteString("<x")
		}
		fmt.Fprintf(&out, ` xmlns:p%d="http://purl.oclc.org/ooxml/wordprocessingml/main"`, i)
	}
	return out.String() + ">" + strings.Repeat("</x>", (n+499)/500)
}

// overlapping is a zip file of n directory records that name the same data.
func overlapping(n int) func() []byte {
	return func() []byte {
		content := strings.Repeat("\x00", 1<<20)
		file := templatetest.Zip(templatetest.Entry{Name: "x", Content: content, Method: zip.Deflate}, templatetest.Entry{Name: "[Content_Types].xml"})
		directory := bytes.Index(file, []byte("PK\x01\x02"))
		record := file[directory : directory+46+len("x")]
		second := bytes.Clone(file[directory+len(record) : len(file)-22])
		out := bytes.Clone(file[:directory])
		for i := range n {
			one := bytes.Clone(record)
			binary.LittleEndian.PutUint16(one[28:], 4)
			out = append(append(out, one[:46]...), fmt.Sprintf("%04d", i)...)
		}
		out = append(out, second...)
		end := bytes.Clone(file[len(file)-22:])
		binary.LittleEndian.PutUint16(end[8:], uint16(n+1))
		binary.LittleEndian.PutUint16(end[10:], uint16(n+1))
		binary.LittleEndian.PutUint32(end[12:], uint32(len(out)-directory))
		return append(out, end...)
	}
}

// longer is a bomb whose last entry says that it is so many bytes longer than it
// is: that would make its ratio a good one.
func longer(by uint32) func() []byte {
	return func() []byte {
		pkg := templatetest.Package{Main: templatetest.Body(templatetest.Paragraph("${a}") + strings.Repeat(" ", 3<<20))}
		all := pkg.Entries()
		slices.SortFunc(all, func(a, b templatetest.Entry) int { return len(a.Content) - len(b.Content) }) // the main part is the last
		all[len(all)-1].Method = zip.Deflate
		file := templatetest.Zip(all...)
		size := file[bytes.LastIndex(file, []byte("PK\x01\x02"))+20:]
		binary.LittleEndian.PutUint32(size, binary.LittleEndian.Uint32(size)+by)
		return file
	}
}

// nested is a document with an entry whose data is inside another's.
func nested() []byte {
	inner := templatetest.Zip(templatetest.Entry{Name: "y", Content: "inner"})
	inner = inner[:bytes.Index(inner, []byte("PK\x01\x02"))]
	file := templatetest.Zip(
		templatetest.Entry{Name: "[Content_Types].xml"}, templatetest.Entry{Name: "x", Content: string(inner)}, templatetest.Entry{Name: "y", Content: "inner"})
	directory := bytes.LastIndex(file, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(file[directory+42:], uint32(bytes.Index(file, inner)))
	return file
}

// compound is a compound file with a stream in its directory: a header, an
// allocation table, the directory.
func compound(stream string, sector int) []byte {
	file := make([]byte, 3*sector)
	copy(file, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
	shift := map[int]uint16{512: 9, 4096: 12}[sector]
	binary.LittleEndian.PutUint16(file[0x1e:], shift)
	binary.LittleEndian.PutUint32(file[0x30:], 1) // the directory is in sector 1
	for i := range 109 {
		binary.LittleEndian.PutUint32(file[0x4c+4*i:], 0xffffffff)
	}
	binary.LittleEndian.PutUint32(file[0x4c:], 0) // the table is in sector 0
	binary.LittleEndian.PutUint32(file[sector+0:], 0xfffffffd)
	binary.LittleEndian.PutUint32(file[sector+4:], 0xfffffffe)
	entry := file[2*sector+128:]
	name := wide(stream + "\x00")
	copy(entry, name)
	binary.LittleEndian.PutUint16(entry[0x40:], uint16(len(name)))
	return file
}

// TestTruncated: a file that ends too early is refused, wherever it ends.
func TestTruncated(t *testing.T) {
	pkg := templatetest.Package{Main: templatetest.Body(strings.Repeat(templatetest.Paragraph("${a}"), 1000)), More: []templatetest.Entry{{Name: "x", Content: strings.Repeat("y", 5000)}}}
	for kind, file := range map[Kind][]byte{Document: templatetest.Zip(pkg.Entries()...), Report: many("${a}", 3000)()} {
		for i := range 64 {
			size := len(file) * i / 64
			params, err := Parameters(kind, bytes.NewReader(file[:size]), int64(size), Limits{})
			assert.True(t, errors.Is(err, ErrNotTemplate) && params == nil, "%v %v %v %v %v", kind, size, len(file), params, err)
		}
	}
}

// TestHugeFile: what is over the limit of the file is not read at all.
func TestHugeFile(t *testing.T) {
	for _, kind := range []Kind{Report, Document} {
		_, err := Parameters(kind, unreadable{t}, 4<<30, Limits{})
		assert.ErrorIs(t, err, ErrTooLarge, kind)
	}
}

type unreadable struct{ t *testing.T }

func (u unreadable) ReadAt([]byte, int64) (int, error) {
	u.t.Error("it was read")
	return 0, io.EOF
}

// FuzzParameters: whatever the bytes are, there is an answer of a known kind, soon.
func FuzzParameters(f *testing.F) {
	for _, c := range brokenDocuments() {
		if file := c.make(); len(file) < 100_000 {
			f.Add(file)
		}
	}
	f.Add([]byte("<a b='${c#d#e}'>${f}</a>"))
	f.Fuzz(func(t *testing.T, file []byte) {
		for _, kind := range []Kind{Report, Document, Sniff(file)} {
			watched := cputest.Watch()
			params, err := Parameters(kind, bytes.NewReader(file), int64(len(file)), Limits{})
			assert.LessOrEqual(t, watched(), 10*second, "%v took", kind)
			known := errors.Is(err, ErrNotTemplate) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrEncrypted)
			assert.True(t, (err != nil || params != nil) && !(err != nil && (!known || params != nil)), "%v %v %v", kind, params, err)
		}
	})
}
