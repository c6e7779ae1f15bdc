package main

import (
	"os"
	"path/filepath"
	"strings"
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
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("folder.rml", 0o700); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name           string
		args           []string
		code           int
		stdout, stderr string
	}{
		{"a report", []string{"invoice.rml"}, exitDone, "NAME   TYPE  DEFAULT\na\\nb         \nfrom   date  2026-01-01\ntitle        Invoice <1>\n", ""},
		{"a document", []string{"letter.docx"}, exitDone, "NAME  TYPE         DEFAULT\nname  choice(A,B)  \n", ""},
		{"an extension in other letters", []string{"LETTER.DOCX"}, exitDone, "NAME   TYPE  DEFAULT\nupper        \n", ""},
		{"a report in other letters", []string{"INVOICE.Rml"}, exitDone, "NAME   TYPE  DEFAULT\nupper        \n", ""},
		{
			"the wrong extension in other letters",
			[]string{"wrong.DOTX"},
			exitFailed, "",
			"wrong.DOTX: not a template: an XML or HTML file, not a document of Office Open XML\ntroupe: 1 of 1 files could not be read as templates\n",
		},
		{"no extension, XML", []string{"report"}, exitDone, "NAME  TYPE  DEFAULT\nbare        \n", ""},
		{"no extension, zip", []string{"letter"}, exitDone, "NAME    TYPE  DEFAULT\nzipped        \n", ""},
		{"no parameters", []string{"none.rml"}, exitDone, "", ""},
		{
			"several",
			[]string{"none.rml", "report", "letter"},
			exitDone,
			"FILE    NAME    TYPE  DEFAULT\nreport  bare          \nletter  zipped        \n", "",
		},
		{
			"JSON", []string{"-o", "json", "invoice.rml", "none.rml"}, exitDone, `[
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
`, "",
		},
		{
			"the wrong extension",
			[]string{"wrong.docx"},
			exitFailed, "",
			"wrong.docx: not a template: an XML or HTML file, not a document of Office Open XML\ntroupe: 1 of 1 files could not be read as templates\n",
		},
		{
			"one of two",
			[]string{"broken.rml", "report"},
			exitFailed, "FILE    NAME  TYPE  DEFAULT\nreport  bare        \n",
			"broken.rml: not a template: not well-formed XML: line 1: the text ends inside the element \"a\"\ntroupe: 1 of 2 files could not be read as templates\n",
		},
		{
			"one of two in JSON",
			[]string{"-o", "json", "no.rml"},
			exitFailed, "[\n  {\n    \"file\": \"no.rml\",\n    \"error\": \"no such file or directory\"\n  }\n]\n",
			"no.rml: no such file or directory\ntroupe: 1 of 1 files could not be read as templates\n",
		},
		{"a folder", []string{"folder.rml"}, exitFailed, "", "folder.rml: is a folder, a pipe or a device, not a file\ntroupe: 1 of 1 files could not be read as templates\n"},
		{"no template at all", []string{"unknown.text"}, exitFailed, "", "unknown.text: not a template: not well-formed XML: line 1: text outside of the root element\ntroupe: 1 of 1 files could not be read as templates\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			code, stdout, stderr := invoke(append([]string{"parameters"}, test.args...)...)
			if code != test.code || stdout != test.stdout || stderr != test.stderr {
				t.Errorf("got code %d\n%q\n%q\nwant %d\n%q\n%q", code, stdout, stderr, test.code, test.stdout, test.stderr)
			}
		})
	}
	for _, args := range [][]string{{"parameters"}, {"parameters", "-o", "yaml", "report"}} {
		if code, stdout, stderr := invoke(args...); code != exitUsage || stdout != "" || !strings.Contains(stderr, "troupe: ") {
			t.Errorf("%v: got code %d, %q, %q; want %d", args, code, stdout, stderr, exitUsage)
		}
	}
	// A full path is as good as one from here.
	full, err := filepath.Abs("report")
	if err != nil {
		t.Fatal(err)
	}
	if code, stdout, _ := invoke("parameters", full); code != exitDone || !strings.Contains(stdout, "bare") {
		t.Errorf("got code %d, %q", code, stdout)
	}
}
