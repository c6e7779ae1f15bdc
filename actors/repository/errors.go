package repository

import "errors"

// ErrTooLarge: Open found a file that is larger than its source hands out (413).
// Every other error is one of package workflow.
var ErrTooLarge = errors.New("file too large")

// errIndexing is why a service is not ready, and what failure.ErrUnavailable
// wraps when a list has waited too long.
var errIndexing = errors.New("the files are being indexed")

// errTooManyNames: the names of one folder do not fit. It never leaves the
// package.
var errTooManyNames = errors.New("too many names in one folder")
