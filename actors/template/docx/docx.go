package docx

import (
	"io"

	"troupe/actors/template/param"
)

// Parameters returns the parameters of the document template of size bytes in r, ascending by name.
func Parameters(r io.ReaderAt, size int64, limits param.Limits) ([]param.Param, error) {
	limits = limits.WithDefaults()
	if size > limits.FileBytes {
		return nil, param.TooLarge(limits.FileBytes, "bytes in a file")
	}
	a, err := newArchive(r, size, limits)
	if err != nil {
		return nil, err
	}
	list := param.NewCollector(limits)
	d := reader{archive: a, limits: limits, list: list}
	if err := d.read(); err != nil {
		return nil, a.cause(err)
	}
	return list.Params(), nil
}
