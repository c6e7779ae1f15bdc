package repository

import (
	"errors"
	"fmt"

	"troupe/actors/failure"
)

// TooLarge is the error of a Source's Open for a file of more bytes than its limit.
func TooLarge(bytesMax int64) error {
	return &failure.Error{
		Kind: failure.ErrTooLarge, Reason: "the file is too large", Cause: fmt.Errorf("more than %d bytes", bytesMax),
	}
}

// errIndexing is why a service is not ready, and what failure.ErrUnavailable wraps when a list has waited too long.
var errIndexing = errors.New("the files are being indexed")

// errTooManyNames: the names of one folder do not fit. It never leaves the package.
var errTooManyNames = errors.New("too many names in one folder")
