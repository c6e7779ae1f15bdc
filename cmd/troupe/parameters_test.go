package main

import (
	"path/filepath"
	"testing"

	"troupe/actors/template/templatetest"
)

func TestParameters(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, content := range map[string]string{
		"invoice.rml":  "<report title='${title##Invoice &lt;1&gt;}'>${from#date#2026-01-01}${a\nb}</report>",
		"letter.docx":  string(templatetest.Docx(templatetest.Paragraph("Dear ${name#choice(A,B)},"))),
		"LETTER.DOCX":  string(templatetest.Docx(templatetest.Paragraph("${upper}"))),
		"INVOICE.Rml":  "<a>${upper}</a>",
		"wrong.DOTX":   "<a>${x}</a>",
		"report":       "<a>${bare}</a>",
		"letter":       string(templatetest.Docx(templatetest.Paragraph("${zipped}"))),
		"none.rml":     "<a/>",
		"wrong.docx":   "<a>${x}</a>",
		"broken.rml":   "<a>${x}",
		"unknown.text": "no template",
	} {
		putFile(t, ".", name, content)
	}
	putFile(t, "folder.rml", "x", "")
	full, err := filepath.Abs("report")
	if err != nil {
		t.Fatal(err)
	}
	runAll(t, []invocation{
		{name: "a report", args: []string{"parameters", "invoice.rml"}, stdout: "NAME   TYPE  DEFAULT\na\\nb         \nfrom   date  2026-01-01\ntitle        Invoice <1>\n"},
		{name: "a document", args: []string{"parameters", "letter.docx"}, stdout: "NAME  TYPE         DEFAULT\nname  choice(A,B)  \n"},
		{name: "an extension in other letters", args: []string{"parameters", "LETTER.DOCX"}, stdout: "NAME   TYPE  DEFAULT\nupper        \n"},
		{name: "a report in other letters", args: []string{"parameters", "INVOICE.Rml"}, stdout: "NAME   TYPE  DEFAULT\nupper        \n"},
		{name: "the wrong extension in other letters", args: []string{"parameters", "wrong.DOTX"}, code: exitFailed, stderr: "wrong.DOTX: not a template: an XML or HTML file, not a document of Office Open XML\ntroupe: 1 of 1 files could not be read as templates\n"},
		{name: "no extension, XML", args: []string{"parameters", "report"}, stdout: "NAME  TYPE  DEFAULT\nbare        \n"},
		{name: "no extension, zip", args: []string{"parameters", "letter"}, stdout: "NAME    TYPE  DEFAULT\nzipped        \n"},
		{name: "no parameters", args: []string{"parameters", "none.rml"}},
		{name: "several", args: []string{"parameters", "none.rml", "report", "letter"}, stdout: "FILE    NAME    TYPE  DEFAULT\nreport  bare          \nletter  zipped        \n"},
		{name: "JSON", args: []string{"parameters", "-o", "json", "invoice.rml", "none.rml"}, stdout: `[
  {
    "file": "invoice.rml",
    "parameters": [
      {
        "name": "a\nb",
        "type": "",
        "defaultValue": ""
      },
      {
        "name": "from",
        "type": "date",
        "defaultValue": "2026-01-01"
      },
      {
        "name": "title",
        "type": "",
        "defaultValue": "Invoice <1>"
      }
    ]
  },
  {
    "file": "none.rml",
    "parameters": []
  }
]
`},
		{name: "the wrong extension", args: []string{"parameters", "wrong.docx"}, code: exitFailed, stderr: "wrong.docx: not a template: an XML or HTML file, not a document of Office Open XML\ntroupe: 1 of 1 files could not be read as templates\n"},
		{name: "one of two", args: []string{"parameters", "broken.rml", "report"}, code: exitFailed, stdout: "FILE    NAME  TYPE  DEFAULT\nreport  bare        \n", stderr: "broken.rml: not a template: not well-formed XML: line 1: the text ends inside the element \"a\"\ntroupe: 1 of 2 files could not be read as templates\n"},
		{name: "one of two in JSON", args: []string{"parameters", "-o", "json", "no.rml"}, code: exitFailed, stdout: "[\n  {\n    \"file\": \"no.rml\",\n    \"error\": \"no such file or directory\"\n  }\n]\n", stderr: "no.rml: no such file or directory\ntroupe: 1 of 1 files could not be read as templates\n"},
		{name: "a folder", args: []string{"parameters", "folder.rml"}, code: exitFailed, stderr: "folder.rml: is a folder, a pipe or a device, not a file\ntroupe: 1 of 1 files could not be read as templates\n"},
		{name: "no template at all", args: []string{"parameters", "unknown.text"}, code: exitFailed, stderr: "unknown.text: not a template: not well-formed XML: line 1: text outside the root element\ntroupe: 1 of 1 files could not be read as templates\n"},
		{name: "a full path", args: []string{"parameters", full}, stdout: "NAME  TYPE  DEFAULT\nbare        \n"},
		{name: "no file", args: []string{"parameters"}, code: exitUsage, stderr: "troupe: "},
		{name: "a form that it does not have", args: []string{"parameters", "-o", "yaml", "report"}, code: exitUsage, stderr: "troupe: "},
	})
}
