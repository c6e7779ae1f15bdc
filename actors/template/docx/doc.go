// Package docx finds the parameters of document templates: Office Open XML documents, zip files whose parts lead to
// each other through relationships.
//
//	_rels/.rels ──officeDocument──► main part (w:document)
//	                                  │ its own relationships
//	                                  ├─ header, footer
//	                                  ├─ footnotes, endnotes
//	                                  └─ comments
//
// Of each of these parts the text of a paragraph is put together from its runs, however they are split, and given to
// the scanner of package param as one piece. A text box is in a run of a paragraph, but its paragraphs are their own.
// What counts as text is in actors/template/DESIGN.md, "Where they stand in a document template (docx)".
//
// The container is not trusted: sizes, numbers and ratios have limits, entries must not overlap, names of entries are
// never paths in a file system, and a relationship to something outside the file is not followed. It is pure: nothing
// is opened, fetched or remembered, and no part is in memory as a whole.
package docx
