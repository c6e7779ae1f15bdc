// Package template answers which parameters a template declares, without rendering
// it (gateway/INTERFACE.md, "Template parameters"). Report templates are XML
// (package rml), document templates are Office Open XML (package docx). Package
// param defines what a declaration is.
//
//	Parameters(kind, file) ─┬─ rml  ─┐
//	                        └─ docx ─┴─ markup (XML) ─► param (scanner, list)
//
//	request ──► Service ──► supervisor actor ──► worker actor, one for each request
//	                             the file, read as the caller; the cache; Parameters
//
// Parameters is pure: it reads the bytes that it is given and opens, fetches and remembers
// nothing. Any bytes are answered: with the parameters, or with a *Fault that says
// what is wrong with the file; with the default limits within 2 s and 64 MB on one
// core. Functions may be called at the same time; every call stands alone.
//
// Service opens the files, as the caller, bounds how many are looked at at a time,
// and remembers what it found by what the file is. A file that changes while it is read gives an error or
// any mixture of the two: who minds reads it into memory first.
package template
