package templatetest

import (
	"archive/zip"
	"bytes"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"unicode/utf16"

	"troupe/actors/template/param"
)

// Document makes a document that declares params, and returns with it what a reader of it finds.
func Document(chance *rand.Rand, params []param.Param) (file []byte, want []param.Param) {
	d := &document{Rand: chance, word: pickOf(chance, "w:", "w:", "x:", "")}
	d.pkg = Package{Strict: d.IntN(4) == 0, Name: pickOf(chance, "", "", "word/document2.xml", "a/b/Main.xml", "main.xml")}
	if d.IntN(2) == 0 {
		d.pkg.Method = zip.Deflate
	}
	if d.IntN(3) == 0 {
		d.pkg.Target = func(_, to string) string { return "/" + to }
	}
	d.pkg.Main = d.story("document", d.share(&params, true), "body")
	for _, kind := range []string{"header", "header", "footer", "footnotes", "endnotes", "comments"} {
		if last := kind == "comments"; last || d.IntN(2) == 0 {
			d.other(kind, d.share(&params, !last))
		}
	}
	d.pkg.More = d.bystanders()
	entries := d.pkg.Entries()
	for i := range entries {
		if i > 0 && strings.HasSuffix(entries[i].Name, ".xml") && d.IntN(8) == 0 {
			entries[i].Content = inUTF16(entries[i].Content)
		}
	}
	d.Shuffle(len(entries), func(i, j int) { entries[i], entries[j] = entries[j], entries[i] })
	file = Zip(entries...)
	if d.IntN(8) == 0 {
		file = append([]byte("#!/bin/sh\nexit\n"), file...)
	}
	return file, Distinct(d.params)
}

func pickOf[T any](chance *rand.Rand, of ...T) T { return of[chance.IntN(len(of))] }

type document struct {
	*rand.Rand
	pkg    Package
	word   string        // the prefix of WordprocessingML, with its colon
	params []param.Param // in the order in which a reader comes to their ends
	number int           // of what must be different
}

func (d *document) share(params *[]param.Param, some bool) []param.Param {
	n := len(*params)
	if some {
		n = d.IntN(n + 1)
	}
	taken := (*params)[:n]
	*params = (*params)[n:]
	return taken
}

func (d *document) other(kind string, params []param.Param) {
	d.number++
	root, container := kind, ""
	switch kind {
	case "header":
		root = "hdr"
	case "footer":
		root = "ftr"
	default:
		container = strings.TrimSuffix(kind, "s")
	}
	name := fmt.Sprintf("%s/%s%d.xml", pickOf(d.Rand, "word", "word", "other parts", "x/y"), pickOf(d.Rand, kind, "part"), d.number)
	d.pkg.Others = append(d.pkg.Others, Part{kind, strings.ReplaceAll(name, " ", "%20"), d.story(root, params, container)})
}

func (d *document) story(root string, params []param.Param, container string) string {
	content := d.blocks(params, 0)
	if container != "" {
		content = d.tag(container, content)
	}
	xml := Story("ROOT", content, d.pkg.Strict)
	if d.word == "" {
		xml = strings.Replace(xml, "xmlns:w=", "xmlns=", 1)
	} else {
		xml = strings.Replace(xml, "xmlns:w=", "xmlns:"+strings.TrimSuffix(d.word, ":")+"=", 1)
	}
	return strings.ReplaceAll(xml, "w:ROOT", d.word+root)
}

func (d *document) tag(name, content string, attributes ...string) string {
	open := d.word + name + strings.Join(append([]string{""}, attributes...), " ")
	if content == "" && d.IntN(2) == 0 {
		return "<" + open + "/>"
	}
	return "<" + open + ">" + content + "</" + d.word + name + ">"
}

func (d *document) blocks(params []param.Param, depth int) (out string) {
	for len(params) > 0 || d.IntN(2) == 0 {
		mine := params[:d.IntN(min(len(params), 3)+1)]
		params = params[len(mine):]
		switch d.IntN(6) {
		case 0:
			cells := ""
			for cut := d.IntN(len(mine) + 1); len(mine) > 0; cut = len(mine) {
				cells += d.tag("tc", d.tag("tcPr", "")+d.blocks(mine[:cut], depth+1)+d.paragraph(nil, depth+1))
				mine = mine[cut:]
			}
			out += d.tag("tbl", d.tag("tblPr", "")+d.tag("tr", cells))
		case 1:
			out += d.tag("sdt", d.tag("sdtPr", d.tag("alias", "", `val="${alias}"`))+d.tag("sdtContent", d.paragraph(mine, depth)))
		case 2:
			out += d.tag("ins", "") + d.paragraph(mine, depth) + "<!-- ${comment} -->"
		default:
			out += d.paragraph(mine, depth)
		}
	}
	return out
}

func (d *document) paragraph(params []param.Param, depth int) string {
	out := ""
	if d.IntN(3) == 0 {
		out = d.tag("pPr", d.tag("tabs", d.tag("tab", "", `pos="709"`))+d.tag("rPr", d.tag("del", "", `id="1"`)))
	}
	out += d.runs(d.filler(), depth)
	for _, p := range params {
		text := d.runs(p.Declaration(), depth)
		// The paragraphs of text boxes in between end before this declaration does.
		d.params = append(d.params, p)
		out += text + d.runs(d.filler(), depth)
	}
	return d.tag("p", out)
}

func (d *document) filler() string {
	return strings.ReplaceAll(pickOf(d.Rand, "", "Dear ", "$", "{x} ", "} ", "#", "a \U0001f600 b", "$$", "\u201e${\u201c ")+pickOf(d.Rand, " ", ", ", "x", "\t"), "${", "$ {")
}

func (d *document) runs(text string, depth int) (out string) {
	all := []rune(text)
	for len(all) > 0 {
		n := len(all)
		if d.IntN(3) > 0 {
			n = 1 + d.IntN(min(n, 6))
		}
		run := d.run(all[:n])
		all = all[n:]
		switch d.IntN(12) {
		case 0:
			run = d.tag("hyperlink", run, `r:id="${link}"`)
		case 1:
			run = d.tag("smartTag", run)
		case 2:
			run = d.tag("sdt", d.tag("sdtPr", d.tag("tag", "", `val="${tag}"`))+d.tag("sdtContent", run))
		case 3:
			run = d.tag(pickOf(d.Rand, "ins", "moveTo"), run)
		case 4:
			run = d.tag("fldSimple", run, `instr="${instr}"`)
		}
		out += run
		// Nothing after the last: a text box there would come after the declaration.
		if len(all) > 0 && d.IntN(2) == 0 {
			out += d.noise(depth)
		}
	}
	return out
}

func (d *document) run(text []rune) string {
	out := ""
	if d.IntN(2) == 0 {
		out = d.tag("rPr", d.tag("b", "")+d.tag("noBreakHyphen", "")+d.tag("ins", ""))
	}
	plain := ""
	flush := func() {
		if plain != "" {
			out += d.tag("t", Escape(d.IntN, plain, "<&>"), `xml:space="preserve"`)
		}
		plain = ""
	}
	for _, r := range text {
		element := map[rune]string{'\t': pickOf(d.Rand, "tab", "ptab"), '\n': pickOf(d.Rand, "br", "cr"), '-': "noBreakHyphen"}[r]
		if element != "" && d.IntN(2) == 0 {
			flush()
			out += d.tag(element, "")
			continue
		}
		plain += string(r)
		if d.IntN(8) == 0 {
			flush()
		}
	}
	flush()
	return d.tag("r", out)
}

// Now and then it is a text box, with parameters of its own.
func (d *document) noise(depth int) string {
	d.number++
	text := func(name, text string) string { return d.tag("r", d.tag(name, text)) }
	switch d.IntN(12) {
	case 0:
		return d.tag("proofErr", "", `type="spellStart"`) + d.tag("proofErr", "", `type="spellEnd"`)
	case 1:
		return d.tag("bookmarkStart", "", fmt.Sprintf(`name="${b%d}"`, d.number)) + d.tag("bookmarkEnd", "")
	case 2:
		return d.tag("r", d.tag("lastRenderedPageBreak", "")+d.tag("softHyphen", "")+d.tag("commentReference", ""))
	case 3:
		return d.tag("del", text("delText", "${deleted}"))
	case 4:
		return d.tag("moveFrom", text("t", "${moved}"))
	case 5:
		return text("instrText", " MERGEFIELD ${field} ")
	case 6:
		return "<!-- ${comment} --><?p ${instruction}?>"
	case 7, 8:
		if depth < 2 {
			return d.tag("r", d.textBox(depth))
		}
	}
	return ""
}

func (d *document) textBox(depth int) string {
	mine := []param.Param{}
	if d.IntN(2) == 0 {
		mine = append(mine, param.Param{Name: fmt.Sprintf("box %d", d.IntN(20)), Type: pickOf(d.Rand, "", "date"), Default: pickOf(d.Rand, "", "x")})
	}
	content := d.tag("txbxContent", d.blocks(mine, depth+1))
	drawing := func(shape string) string {
		return d.tag("drawing", `<wp:inline><wp:docPr descr="${description}"/><a:graphic><a:graphicData><wps:wsp><wps:txbx>`+shape+`</wps:txbx></wps:wsp></a:graphicData></a:graphic></wp:inline>`)
	}
	picture := d.tag("pict", `<v:shape alt="${alt}"><v:textbox>`+content+`</v:textbox></v:shape>`)
	switch d.IntN(4) {
	case 0:
		return picture
	case 1:
		return `<mc:AlternateContent><mc:Fallback>` + picture + `</mc:Fallback></mc:AlternateContent>`
	case 2:
		return `<mc:AlternateContent><mc:Choice Requires="wps">` + drawing(content) + `</mc:Choice><mc:Choice Requires="x">` + drawing(content) +
			`</mc:Choice><mc:Fallback>` + picture + `</mc:Fallback></mc:AlternateContent>`
	}
	return `<mc:AlternateContent><mc:Choice Requires="wps">` + drawing(content) + `</mc:Choice><mc:Fallback>` +
		strings.ReplaceAll(picture, "box ", "only in the fallback ") + `</mc:Fallback></mc:AlternateContent>`
}

func (d *document) bystanders() []Entry {
	all := []Entry{
		{Name: "docProps/core.xml", Content: "<a>${title}</a>"},
		{Name: "word/media/image1.png", Content: "\x89PNG ${picture}"},
		{Name: "word/header99.xml", Content: Story("hdr", Paragraph("${orphan}"), false)},
		{Name: "word/glossary/document.xml", Content: Story("glossaryDocument", Paragraph("${glossary}"), false)},
		{Name: "word/"},
		{Name: path.Join("customXml", "item1.xml"), Content: "${custom", Method: zip.Deflate},
	}
	d.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:d.IntN(len(all)+1)]
}

func inUTF16(text string) string {
	out := bytes.NewBufferString("\xff\xfe")
	for _, unit := range utf16.Encode([]rune(strings.Replace(text, `encoding="UTF-8"`, `encoding="UTF-16"`, 1))) {
		out.WriteByte(byte(unit))
		out.WriteByte(byte(unit >> 8))
	}
	return out.String()
}
