// Package docx finds the parameters of document templates: Office Open XML documents, zip files whose parts lead to
// each other through relationships. It reads the main part, its headers and footers, footnotes, endnotes and comments.
// The text of a paragraph is put together from its runs and given to the scanner of package param as one piece
// (actors/template/DESIGN.md, "Where they stand in a document template (docx)"). The container is not trusted: sizes,
// numbers and ratios have limits, entries must not overlap, and a relationship to something outside the file is not
// followed.
package docx
