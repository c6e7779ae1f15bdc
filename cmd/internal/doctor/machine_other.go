//go:build !linux

package doctor

import "errors"

// Only Linux is asked; elsewhere these are not known.
var errUnknown = errors.New("this system is not asked")

func freeBytes(string) (int64, error)           { return 0, errUnknown }
func fileSystemOf(string) (name, advice string) { return "", "" }
func isClockSynchronized() (bool, error)        { return false, errUnknown }
func memoryLimit() (bytes int64, source string) { return 0, "" }
func openFilesMax() (uint64, error)             { return 0, errUnknown }
