package template

import (
	"io"
	"path"
	"slices"
	"strings"

	"troupe/actors/template/docx"
	"troupe/actors/template/param"
	"troupe/actors/template/rml"
)

// Kind says how a template is read.
type Kind uint8

const (
	Report   Kind = iota + 1 // a report template: an XML file, .rml
	Document                 // a document template: a document of Office Open XML, .docx, .dotx, .docm or .dotm
)

// String returns the usual extension of the kind's files, without its dot.
func (k Kind) String() string {
	if len(extensions[k]) == 0 {
		return "unknown"
	}
	return extensions[k][0][1:]
}

var extensions = map[Kind][]string{
	Report:   {".rml"},
	Document: {".docx", ".dotx", ".docm", ".dotm"},
}

// KindOf returns the kind of the templates with a file name's extension, whose case does not count; ok is false for
// every other extension.
func KindOf(name string) (kind Kind, ok bool) {
	extension := strings.ToLower(path.Ext(name))
	for kind, known := range extensions {
		if slices.Contains(known, extension) {
			return kind, true
		}
	}
	return 0, false
}

// Sniff guesses the kind of a file by its first bytes, for files whose name does not say it.
func Sniff(head []byte) Kind {
	for _, magic := range []string{"PK\x03\x04", "PK\x05\x06", "\xd0\xcf\x11\xe0"} {
		if strings.HasPrefix(string(head), magic) {
			return Document
		}
	}
	return Report
}

// What package param describes.
type (
	// Param is a parameter of a template.
	Param = param.Param
	// Limits bound the work that one file can cause.
	Limits = param.Limits
	// Fault is an error about the content of a file.
	Fault = param.Fault
)

var (
	ErrNotTemplate = param.ErrNotTemplate
	ErrEncrypted   = param.ErrEncrypted
	ErrTooLarge    = param.ErrTooLarge
)

// Parameters returns the parameters that the template of size bytes in r declares: one for each name, ascending by
// name, by code point; never nil without an error. A zero Limits has the defaults.
//
// Errors: a *Fault, which wraps ErrNotTemplate, ErrEncrypted or ErrTooLarge, about the content; any other error comes
// from r.
func Parameters(kind Kind, r io.ReaderAt, size int64, limits Limits) ([]Param, error) {
	switch kind {
	case Report:
		return rml.Parameters(r, size, limits)
	case Document:
		return docx.Parameters(r, size, limits)
	}
	panic("template: unknown kind " + kind.String())
}
