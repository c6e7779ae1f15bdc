// Package template answers which parameters a template declares, without rendering it (gateway/INTERFACE.md, "Template
// parameters"). Report templates are XML (package rml), document templates are Office Open XML (package docx); package
// param defines what a declaration is. Parameters is pure: it answers any bytes with the parameters, or with a *Fault
// that says what is wrong with the file, within 2 s and 64 MB on one core under the default limits. Service opens the
// files as the caller, bounds how many are parsed at the same time, and caches the answers by the file's identity. A
// file that changes while it is read gives an error or a mixture of its old and new parameters.
package template
