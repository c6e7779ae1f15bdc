// Package markup parses XML for the packages rml and docx: it decodes a text, checks that it is well-formed, and
// returns its tags and its text as events.
//
//	bytes ── Decode ──► UTF-8 ── Parser ──► Start, Text, Break, End …
//
// Decode finds the encoding by byte order mark and declaration. Parser.Next returns one event after the other. Text
// comes in parts of at most a buffer, so a text node of 64 MB needs no more memory than a short one. Only a start tag
// is held as a whole, because its attributes declare the namespaces of its own name.
//
// It expands the five entities of XML and character references and nothing else, never opens anything, and refuses a
// document type declaration with an internal subset. Depth, tags, attributes and nodes have limits. Errors are those of
// package param: *param.Fault about the content, otherwise the reader's own.
//
// encoding/xml is not used: it takes five times as long and holds a whole text node in memory. The trial and its
// figures are in actors/template/DESIGN.md, "Our own parser of XML (markup)".
package markup
