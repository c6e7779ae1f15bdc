// Package markup parses XML for the packages rml and docx: Decode finds the encoding, and Parser.Next returns one event
// after the other. Text comes in parts of at most a buffer, so a text node of 64 MB needs no more memory than a short
// one; only a start tag is held as a whole. It expands the five entities of XML and character references and nothing
// else, never opens anything, and refuses a document type declaration with an internal subset. Depth, tags, attributes
// and nodes have limits. Why not encoding/xml: actors/template/DESIGN.md, "Our own parser of XML (markup)".
package markup
