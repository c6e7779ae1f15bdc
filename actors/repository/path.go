package repository

import (
	"iter"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

const top = "/"

// IsPath reports whether p is the canonical path of a file or folder: absolute in the repository with its leading
// slash, with nothing that path.Clean would change, in valid UTF-8 without control characters. "/" is the repository.
func IsPath(p string) bool {
	return strings.HasPrefix(p, "/") && path.Clean(p) == p && isText(p)
}

// IsName reports whether a file or folder of this name can have a path. Others are left out of the repository.
func IsName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.Contains(name, "/") && isText(name)
}

func isText(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func join(folder, name string) string {
	if folder == top {
		return top + name
	}
	return folder + "/" + name
}

// Names are the names on the way from the repository to a path, which is canonical.
func Names(p string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for rest := p[1:]; rest != ""; {
			name, behind, _ := strings.Cut(rest, "/")
			if !yield(name) {
				return
			}
			rest = behind
		}
	}
}

func depth(p string) int {
	if p == top {
		return 0
	}
	return strings.Count(p, "/")
}
