package filter

import "errors"

// Why Parse refuses a filter. The texts are for the sender of the filter and repeat little of it.
var (
	// ErrSyntax: the text is not a filter: no JSON object, a malformed path, or an
	// operand that its operator, which the text names, does not take.
	ErrSyntax = errors.New("malformed filter")
	// ErrUnsupported: the filter has an operator that this service does not know, which the text names.
	ErrUnsupported = errors.New("unsupported filter")
	// ErrRoot: a path begins with something that instances do not have, or that
	// the caller may not ask for. The two are not told apart.
	ErrRoot = errors.New("unknown field in filter")
	// ErrTooLarge: the filter is longer, deeper or has more conditions than are allowed, or a part of it that the text names is.
	ErrTooLarge = errors.New("filter too large")
)
