package repository

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"troupe/actors/failure"
)

// extensionBytesMax bounds an extension. No file system that we know has longer names.
const extensionBytesMax = 1024

// Extension is what names of files end with, without the dot in front. It may hold dots.
type Extension string

// ParseExtension reads an extension as callers write it: one leading dot is dropped (gateway/INTERFACE.md,
// "Extensions").
func ParseExtension(text string) (Extension, error) {
	extension := strings.TrimPrefix(text, ".")
	switch {
	case strings.TrimSpace(extension) == "":
		return "", failure.Refuse(failure.ErrInvalid, "the extension is missing or blank")
	case len(extension) > extensionBytesMax:
		return "", failure.Refuse(failure.ErrInvalid, "the extension is longer than %d bytes", extensionBytesMax)
	case !utf8.ValidString(extension):
		return "", failure.Refuse(failure.ErrInvalid, "the extension is not UTF-8")
	case strings.ContainsFunc(extension, unicode.IsControl):
		return "", failure.Refuse(failure.ErrInvalid, "the extension has a control character")
	}
	return Extension(extension), nil
}

// Matches reports whether the name of a file ends with a dot and the extension, in the same letters
// (gateway/INTERFACE.md, "Extensions").
func (e Extension) Matches(name string) bool {
	dot := len(name) - len(e) - 1
	return dot >= 0 && name[dot] == '.' && name[dot+1:] == string(e)
}
