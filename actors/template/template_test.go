package template

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"troupe/actors/template/templatetest"
)

func TestKinds(t *testing.T) {
	for name, want := range map[string]Kind{
		"/a/b.rml": Report, ".rml": Report, "a.docx.rml": Report, "a.docx": Document,
		"A.RML": Report, "b.Docx": Document, "b.DOCX": Document, "c.dotx": Document, "c.DotX": Document, "c.docm": Document, "c.DOTM": Document,
		"a.doc": 0, "a.dot": 0, "a.xml": 0, "rml": 0, "RML": 0, "a.rml/b": 0, "a.rml ": 0, "a.RML.txt": 0, "": 0,
	} {
		if got, ok := KindOf(name); got != want || ok != (want != 0) {
			t.Errorf("KindOf(%q): got %v, %v; want %v", name, got, ok, want)
		}
	}
	for head, want := range map[string]Kind{
		"PK\x03\x04\x14": Document, "PK\x05\x06": Document, "\xd0\xcf\x11\xe0\xa1": Document,
		"<a/>": Report, "\xff\xfe<\x00": Report, "PK": Report, "": Report,
	} {
		if got := Sniff([]byte(head)); got != want {
			t.Errorf("Sniff(%q): got %v, want %v", head, got, want)
		}
	}
}

// TestParameters: both kinds, at the same time.
func TestParameters(t *testing.T) {
	document := templatetest.Docx(templatetest.Paragraph("${b##x} ${a#date}"))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			want := []Param{{Name: "a", Type: "date"}, {Name: "b", Default: "x"}}
			got, err := Parameters(Document, bytes.NewReader(document), int64(len(document)), Limits{})
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("the document: got %q, %v", got, err)
			}
			report := strings.NewReader("<a b='${b##x}'>${a#date}</a>")
			if got, err = Parameters(Report, report, report.Size(), Limits{}); err != nil || !slices.Equal(got, want) {
				t.Errorf("the report: got %q, %v", got, err)
			}
		})
	}
	all.Wait()
}

// TestLimitsAreTheCallers: every limit can be raised and lowered.
func TestLimitsAreTheCallers(t *testing.T) {
	file := numbered(100_000, "date#2020-01-01")()
	if got, err := Parameters(Report, bytes.NewReader(file), int64(len(file)), Limits{Parameters: 100_000}); err != nil || len(got) != 100_000 {
		t.Errorf("got %d parameters, %v; want 100,000", len(got), err)
	}
	document := templatetest.Docx(templatetest.Paragraph("${a}"))
	for name, limits := range map[string]Limits{
		"FileBytes": {FileBytes: 100}, "Entries": {Entries: 3}, "PartBytes": {PartBytes: 100}, "DocumentBytes": {DocumentBytes: 500},
		"Depth": {Depth: 3}, "TagBytes": {TagBytes: 20}, "Attributes": {Attributes: 1}, "Nodes": {Nodes: 5},
	} {
		if _, err := Parameters(Document, bytes.NewReader(document), int64(len(document)), limits); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: got %v, want ErrTooLarge", name, err)
		}
	}
	if _, err := Parameters(Document, bytes.NewReader(document), int64(len(document)), Limits{}); err != nil {
		t.Errorf("without limits: got %v", err)
	}
}
