package template_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"troupe/actors/template/docx"
	"troupe/actors/template/param"
	"troupe/actors/template/templatetest"
)

// mustBeKnown fails for an error that is of no kind, and for an answer with both.
func mustBeKnown(t *testing.T, params []param.Param, err error) {
	t.Helper()
	known := errors.Is(err, param.ErrNotTemplate) || errors.Is(err, param.ErrTooLarge) || errors.Is(err, param.ErrEncrypted)
	assert.True(t, !(err != nil && (!known || params != nil)) && (err != nil || params != nil), "got %q, %v; want parameters or an error of a kind", params, err)
}

// FuzzDocument: whatever the bytes of a file are, there is an answer of a known kind.
func FuzzDocument(f *testing.F) {
	f.Add(templatetest.Docx(templatetest.Paragraph("${a#t#d}")))
	f.Add([]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"))
	for seed := range uint64(5) {
		file, _ := templatetest.Document(rand.New(rand.NewPCG(seed, 0)), []param.Param{{Name: "a"}, {Name: "b", Type: "c"}})
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		params, err := docx.Parameters(bytes.NewReader(file), int64(len(file)), param.Limits{DocumentBytes: 1 << 20})
		mustBeKnown(t, params, err)
	})
}

// FuzzBody: whatever the main part is, there is an answer of a known kind, and it
// is the naive one: the paragraphs found by a tree of elements.
func FuzzBody(f *testing.F) {
	for _, seed := range []string{
		templatetest.Body(templatetest.Paragraph("${a#t#d}")),
		templatetest.Body("<w:p><w:r><w:t>${a</w:t><w:tab/><w:t>}</w:t></w:r><w:del><w:r><w:t>${x}</w:t></w:r></w:del></w:p>"),
		templatetest.Body("<w:p><mc:AlternateContent><mc:Choice><w:p><w:t>${a}</w:t></w:p></mc:Choice><mc:Fallback><w:t>${b}</w:t></mc:Fallback></mc:AlternateContent></w:p>"),
		// A prefix whose namespace only looks like a known one is any other element's.
		strings.Replace(templatetest.Body("<w:p><mc:AlternateContent><mc:Choice><w:t>${a}</w:t></mc:Choice><mc:Fallback><w:t>${b}</w:t></mc:Fallback></mc:AlternateContent></w:p>"), "formats.org/markup", "formats.oYg/markup", 1),
	} {
		f.Add([]byte(seed))
	}
	for seed := range uint64(20) {
		file, _ := templatetest.Document(rand.New(rand.NewPCG(seed, 0)), []param.Param{{Name: "a"}, {Name: "b", Type: "c"}})
		archive, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
		require.NoError(f, err)
		for _, part := range archive.File {
			if content, err := part.Open(); err == nil && path.Ext(part.Name) == ".xml" {
				body, err := io.ReadAll(content)
				require.NoError(f, err)
				f.Add(body)
			}
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		file := templatetest.Zip(templatetest.Package{Main: string(body)}.Entries()...)
		params, err := parseDocument(file)
		mustBeKnown(t, params, err)
		if err != nil {
			return
		}
		want, err := naiveDocument(bytes.NewReader(body))
		if err != nil {
			return // encoding/xml does not read it: another encoding, another version
		}
		require.Len(t, want, len(params), "%q:\ngot  %q", body, params)
		for i := range want {
			assert.Equal(t, want[i], params[i], "%q:\ngot  %q\nwant %q", body, params, want)
		}
	})
}
