package template

import (
	"io"
	"path"
	"strings"

	"troupe/actors/template/docx"
	"troupe/actors/template/param"
	"troupe/actors/template/rml"
)

// Kind says how a template is read.
type Kind uint8

const (
	// Report is a report template: an XML file, .rml.
	Report Kind = iota + 1
	// Document is a document template: a document of Office Open XML, .docx.
	Document
)

// String returns the extension of the kind's files, without its dot.
func (k Kind) String() string {
	switch k {
	case Report:
		return "rml"
	case Document:
		return "docx"
	}
	return "unknown"
}

// KindOf returns the kind of the templates with a file name's extension, which
// counts as it is written; ok is false for every other extension.
func KindOf(name string) (kind Kind, ok bool) {
	switch path.Ext(name) {
	case ".rml":
		return Report, true
	case ".docx":
		return Document, true
	}
	return 0, false
}

// Sniff guesses the kind of a file by its first bytes, for files whose name does
// not say it. What is neither a zip file nor a compound file is a report template,
// if it is a template at all.
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

// What is wrong with a file: package param says what the caller answers.
var (
	ErrNotTemplate = param.ErrNotTemplate
	ErrEncrypted   = param.ErrEncrypted
	ErrTooLarge    = param.ErrTooLarge
)

// Parameters returns the parameters that the template of size bytes in r declares:
// one for each name, ascending by name, by code point; never nil without an error.
// A zero Limits has the defaults.
//
// Errors: a *Fault, which wraps ErrNotTemplate, ErrEncrypted or ErrTooLarge, about
// the content; any other error comes from r.
func Parameters(kind Kind, r io.ReaderAt, size int64, limits Limits) ([]Param, error) {
	switch kind {
	case Report:
		return rml.Parameters(r, size, limits)
	case Document:
		return docx.Parameters(r, size, limits)
	}
	panic("template: unknown kind " + kind.String())
}
