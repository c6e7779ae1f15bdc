// Package templatetest makes templates for tests: random parameters, and documents whose text is split, wrapped and
// packed in every way that a writer of documents may choose.
package templatetest
