// Package reference turns the description of the interface, gateway/openapi.yaml,
// into what people and programs read: JSON, and a page that needs no script and no
// other server.
//
//	openapi.yaml ──Parse──► Document ──┬── JSON ──► /openapi.json
//	                                   └── Page ──► /docs
//
// The page knows the parts of OpenAPI 3.1 that the document uses, and Page refuses
// a reference that leads nowhere. Whether the document is right is for the tests of
// package gateway to say. Texts are paragraphs, lists, `code` and **strong**; all of
// them are escaped.
//
// A Document is read only and may be shared. The package does no I/O.
package reference
