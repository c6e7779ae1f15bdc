package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"troupe/actors/template/templatetest"
	"troupe/cmd/internal/cli"
	"troupe/cmd/internal/clitest"
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
		clitest.PutFile(t, ".", name, content)
	}
	clitest.PutFile(t, "folder.rml", "x", "")
	full, err := filepath.Abs("report")
	require.NoError(t, err)
	clitest.RunAll(t, []clitest.Invocation{
		{Name: "a report", Args: []string{"parameters", "invoice.rml"}, Stdout: "NAME   TYPE  DEFAULT\na\\nb         \nfrom   date  2026-01-01\ntitle        Invoice <1>\n"},
		{Name: "a document", Args: []string{"parameters", "letter.docx"}, Stdout: "NAME  TYPE         DEFAULT\nname  choice(A,B)  \n"},
		{Name: "an extension in other letters", Args: []string{"parameters", "LETTER.DOCX"}, Stdout: "NAME   TYPE  DEFAULT\nupper        \n"},
		{Name: "a report in other letters", Args: []string{"parameters", "INVOICE.Rml"}, Stdout: "NAME   TYPE  DEFAULT\nupper        \n"},
		{Name: "the wrong extension in other letters", Args: []string{"parameters", "wrong.DOTX"}, Code: cli.ExitFailed, Stderr: "wrong.DOTX: not a template: an XML or HTML file, not a document of Office Open XML\ntroupe: 1 of 1 files could not be read as templates\n"},
		{Name: "no extension, XML", Args: []string{"parameters", "report"}, Stdout: "NAME  TYPE  DEFAULT\nbare        \n"},
		{Name: "no extension, zip", Args: []string{"parameters", "letter"}, Stdout: "NAME    TYPE  DEFAULT\nzipped        \n"},
		{Name: "no parameters", Args: []string{"parameters", "none.rml"}},
		{Name: "several", Args: []string{"parameters", "none.rml", "report", "letter"}, Stdout: "FILE    NAME    TYPE  DEFAULT\nreport  bare          \nletter  zipped        \n"},
		{Name: "JSON", Args: []string{"parameters", "-o", "json", "invoice.rml", "none.rml"}, Stdout: `[
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
		{Name: "the wrong extension", Args: []string{"parameters", "wrong.docx"}, Code: cli.ExitFailed, Stderr: "wrong.docx: not a template: an XML or HTML file, not a document of Office Open XML\ntroupe: 1 of 1 files could not be read as templates\n"},
		{Name: "one of two", Args: []string{"parameters", "broken.rml", "report"}, Code: cli.ExitFailed, Stdout: "FILE    NAME  TYPE  DEFAULT\nreport  bare        \n", Stderr: "broken.rml: not a template: not well-formed XML: line 1: the text ends inside the element \"a\"\ntroupe: 1 of 2 files could not be read as templates\n"},
		{Name: "one of two in JSON", Args: []string{"parameters", "-o", "json", "no.rml"}, Code: cli.ExitFailed, Stdout: "[\n  {\n    \"file\": \"no.rml\",\n    \"error\": \"no such file or directory\"\n  }\n]\n", Stderr: "no.rml: no such file or directory\ntroupe: 1 of 1 files could not be read as templates\n"},
		{Name: "a folder", Args: []string{"parameters", "folder.rml"}, Code: cli.ExitFailed, Stderr: "folder.rml: is a folder, a pipe or a device, not a file\ntroupe: 1 of 1 files could not be read as templates\n"},
		{Name: "no template at all", Args: []string{"parameters", "unknown.text"}, Code: cli.ExitFailed, Stderr: "unknown.text: not a template: not well-formed XML: line 1: text outside the root element\ntroupe: 1 of 1 files could not be read as templates\n"},
		{Name: "a full path", Args: []string{"parameters", full}, Stdout: "NAME  TYPE  DEFAULT\nbare        \n"},
		{Name: "no file", Args: []string{"parameters"}, Code: cli.ExitUsage, Stderr: "troupe: "},
		{Name: "a form that it does not have", Args: []string{"parameters", "-o", "yaml", "report"}, Code: cli.ExitUsage, Stderr: "troupe: "},
	})
}
