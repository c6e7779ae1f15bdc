// Package markup reads XML for the packages rml and docx: it checks that a text is
// well-formed, decodes it, and says what is in it, piece by piece.
//
//	bytes ── Decode ──► UTF-8 ── Parser ──► Start, Text, Break, End …
//
// Decode finds the encoding by byte order mark and declaration. Parser.Next
// returns one event after the other; text comes in parts as long as the buffer
// has them, so that a text node of 64 MB needs no memory. Only a start tag is held
// as a whole, because its attributes say in which namespaces it is.
//
// It expands the five entities of XML and character references and nothing else,
// never opens anything, and refuses a document type declaration with an internal
// subset. Depth, tags, attributes and nodes have limits. Errors are those of
// package param: *param.Fault about the content, otherwise the reader's own.
//
// encoding/xml is not used: it takes five times as long and holds a whole text node
// in memory. The trial and its figures are in actors/template/DESIGN.md,
// "Our own parser of XML (markup)".
package markup
