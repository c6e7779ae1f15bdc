package template

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"troupe/actors/template/templatetest"
)

func TestKinds(t *testing.T) {
	for name, want := range map[string]Kind{
		"/a/b.rml": Report, ".rml": Report, "a.docx.rml": Report, "a.docx": Document,
		"A.RML": Report, "b.Docx": Document, "b.DOCX": Document, "c.dotx": Document, "c.DotX": Document, "c.docm": Document, "c.DOTM": Document,
		"a.doc": 0, "a.dot": 0, "a.xml": 0, "rml": 0, "RML": 0, "a.rml/b": 0, "a.rml ": 0, "a.RML.txt": 0, "": 0,
	} {
		got, ok := KindOf(name)
		assert.True(t, got == want && ok == (want != 0), "KindOf(%q): got %v, %v; want %v", name, got, ok, want)
	}
	for head, want := range map[string]Kind{
		"PK\x03\x04\x14": Document, "PK\x05\x06": Document, "\xd0\xcf\x11\xe0\xa1": Document,
		"<a/>": Report, "\xff\xfe<\x00": Report, "PK": Report, "": Report,
	} {
		assert.Equal(t, want, Sniff([]byte(head)), "Sniff(%q)", head)
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
			assert.True(t, err == nil && slices.Equal(got, want), "the document: got %q, %v", got, err)
			report := strings.NewReader("<a b='${b##x}'>${a#date}</a>")
			got, err = Parameters(Report, report, report.Size(), Limits{})
			assert.True(t, err == nil && slices.Equal(got, want), "the report: got %q, %v", got, err)
		})
	}
	all.Wait()
}

// TestLimitsAreTheCallers: every limit can be raised and lowered.
func TestLimitsAreTheCallers(t *testing.T) {
	file := numbered(100_000, "date#2020-01-01")()
	got, err := Parameters(Report, bytes.NewReader(file), int64(len(file)), Limits{Parameters: 100_000})
	assert.True(t, err == nil && len(got) == 100_000, "got %d parameters, %v; want 100,000", len(got), err)
	document := templatetest.Docx(templatetest.Paragraph("${a}"))
	for name, limits := range map[string]Limits{
		"FileBytes": {FileBytes: 100}, "Entries": {Entries: 3}, "PartBytes": {PartBytes: 100}, "DocumentBytes": {DocumentBytes: 500},
		"Depth": {Depth: 3}, "TagBytes": {TagBytes: 20}, "Attributes": {Attributes: 1}, "Nodes": {Nodes: 5},
	} {
		_, err := Parameters(Document, bytes.NewReader(document), int64(len(document)), limits)
		assert.ErrorIs(t, err, ErrTooLarge, name)
	}
	_, err = Parameters(Document, bytes.NewReader(document), int64(len(document)), Limits{})
	assert.NoError(t, err, "without limits")
}
