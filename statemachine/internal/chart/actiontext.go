package chart

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf8"

	"troupe/statemachine/data"
)

// CheckRedirect refuses targets that a client must not navigate to: schemes that run code, and control characters
// (statemachine/DEFINITION.md, "Redirect").
func CheckRedirect(to string) error {
	if len(to) > 2048 {
		return errors.New("redirect: the target is longer than 2048 bytes")
	}
	u, err := url.Parse(to)
	if err != nil {
		return fmt.Errorf("redirect: %q is not a URL", data.Shorten(to))
	}
	if s := strings.ToLower(u.Scheme); s != "" && s != "http" && s != "https" {
		return fmt.Errorf("redirect: scheme %q is not allowed", data.Shorten(s))
	}
	return nil
}

// MaxLogBytes bounds a log line; a longer one is cut.
const MaxLogBytes = 2 << 10

// LogText returns the text of a log line, cut to MaxLogBytes. It copies no more of v than it needs.
func LogText(v data.Value) string {
	most := MaxLogBytes + utf8.UTFMax
	text := ""
	if v.Kind() == data.String {
		n := most + 1
		if bytes.IndexByte(v[:min(len(v), n)], '\\') >= 0 {
			n *= 6 // the longest escape, \u0000
		}
		if len(v) > n {
			v = append(v[:n:n], '"')
		}
		text = v.Text()
	} else {
		text = string(v[:min(len(v), most)])
	}
	return data.Clip(text, MaxLogBytes)
}
