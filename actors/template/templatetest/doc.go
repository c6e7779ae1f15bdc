// Package templatetest makes templates for tests: random parameters, and documents
// whose text is split, wrapped and packed in every way that a writer of documents
// may choose. Tests of the formats, of the command line and of the service use it.
package templatetest
