// Package rml finds the parameters of report templates: XML files, with declarations in text and in the values of
// attributes. Every text node, every CDATA section and every value of an attribute is a piece of its own; a declaration
// stands in one piece. Comments, processing instructions and names are ignored. Every root element is accepted.
package rml
