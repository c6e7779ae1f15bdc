// Package rml finds the parameters of report templates: XML files, with declarations in text and in the values of
// attributes. Every text node, every CDATA section and every value of an attribute is a piece of its own; a declaration
// stands in one piece. Comments, processing instructions and names are ignored. Every root element is accepted.
package rml

import (
	"io"

	"troupe/actors/template/markup"
	"troupe/actors/template/param"
)

// Parameters returns the parameters of the report template of size bytes in r, ascending by name.
func Parameters(r io.ReaderAt, size int64, limits param.Limits) ([]param.Param, error) {
	limits = limits.WithDefaults()
	if size > limits.FileBytes {
		return nil, param.TooLarge(limits.FileBytes, "bytes in a file")
	}
	text, err := markup.Decode(io.NewSectionReader(r, 0, max(size, 0)))
	if err != nil {
		return nil, err
	}
	parser := markup.NewParser(limits)
	parser.Reset(text)
	list := param.NewCollector(limits)
	if err := scan(parser, param.NewScanner(list)); err != nil {
		return nil, err
	}
	return list.Params(), nil
}

func scan(parser *markup.Parser, scanner *param.Scanner) error {
	for {
		event, err := parser.Next()
		switch {
		case err == io.EOF: //nolint:errorlint // Next returns it bare
			return nil
		case err != nil:
			return err
		case event == markup.Text:
			err = scanner.Write(parser.Text())
		default:
			err = scanner.End()
		}
		if err == nil && event == markup.Start {
			err = scanAttributes(parser.Attributes(), scanner)
		}
		if err != nil {
			return err
		}
	}
}

func scanAttributes(attributes []markup.Attribute, scanner *param.Scanner) error {
	for _, a := range attributes {
		if err := scanner.Write(a.Value); err != nil {
			return err
		}
		if err := scanner.End(); err != nil {
			return err
		}
	}
	return nil
}
