// Package rml finds the parameters of report templates: XML files, with declarations in text and in the values of
// attributes.
//
//	file ─► markup.Decode ─► markup.Parser ─► param.Scanner ─► param.Collector
//
// Every text node, every CDATA section and every value of an attribute is a piece of its own, in the order of the file.
// A declaration stands in one piece. Comments, processing instructions and names are ignored. Every root element is
// accepted.
//
// It is pure: nothing is opened, fetched or remembered. It reads the file once, from its start to its end, or to the
// first error.
package rml
