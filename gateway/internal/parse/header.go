// Package parse reads what a caller sends as text: headers, credentials, query parameters and the
// members of JSON bodies. Whatever is wrong is failure.ErrInvalid with a message that the caller
// may read (Malformed). It knows no route, and looks nobody up.
package parse

import (
	"iter"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"troupe/actors/failure"
	"troupe/gateway/api"
)

// The headers except the credentials. All of it is text from outside; each parser has a fuzz target.

const (
	IdempotencyKeyCharsMax = 255
	entityTagsMax          = 256
	lastEventIDCharsMax    = 8 << 10
)

// IdempotencyKey returns the key of the Idempotency-Key header, "" when there is none. It may be bare or a string of
// RFC 8941; `abc` and `"abc"` are the same key.
func IdempotencyKey(lines []string) (string, error) {
	if len(lines) == 0 {
		return "", nil
	}
	if len(lines) > 1 {
		return "", Malformed("the header Idempotency-Key is repeated")
	}
	key := lines[0]
	if strings.HasPrefix(key, `"`) {
		var ok bool
		if key, ok = unquoteKey(key); !ok {
			return "", Malformed("the header Idempotency-Key begins with a quote, but is not a quoted string")
		}
	}
	if !IsIdempotencyKey(key) {
		return "", Malformed("the header Idempotency-Key must have 1 to %d visible ASCII characters", IdempotencyKeyCharsMax)
	}
	return key, nil
}

// unquoteKey reads a string of RFC 8941: only a quote and a backslash can be
// escaped, and nothing may follow the closing quote.
func unquoteKey(s string) (string, bool) {
	if len(s) < 2 || s[len(s)-1] != '"' {
		return "", false
	}
	s = s[1 : len(s)-1]
	if strings.IndexByte(s, '\\') < 0 && strings.IndexByte(s, '"') < 0 {
		return s, true
	}
	key := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch c {
		case '"':
			return "", false
		case '\\':
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", false
			}
			c = s[i]
		}
		key = append(key, c)
	}
	return string(key), true
}

// IsIdempotencyKey reports whether s can be an idempotency key: 1 to 255 visible
// ASCII characters (gateway/INTERFACE.md, "Retries").
func IsIdempotencyKey(s string) bool {
	return s != "" && len(s) <= IdempotencyKeyCharsMax && IsVisible(s)
}

// IsVisible reports whether s has only visible ASCII characters.
func IsVisible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// LastEventID returns the place of the header Last-Event-ID, after which a watcher goes on; "" when there is none. What
// it means is for those to say who gave it out.
func LastEventID(lines []string) (string, error) {
	switch {
	case len(lines) == 0:
		return "", nil
	case len(lines) > 1:
		return "", Malformed("the header Last-Event-ID is repeated")
	case len(lines[0]) > lastEventIDCharsMax || !IsVisible(lines[0]):
		return "", Malformed("the header Last-Event-ID must have at most %d visible ASCII characters", lastEventIDCharsMax)
	}
	return lines[0], nil
}

// IfMatch returns the sequence numbers that If-Match allows, nil for any. When the header is there but names no number,
// the result is a list with 0, which no instance has: nothing matches. Weak tags never match (RFC 9110,
// 13.1.1 requires the strong comparison), nor do tags that are not a number
// written as EntityTag writes it.
func IfMatch(lines []string) ([]uint64, error) {
	if len(lines) == 0 || len(lines) == 1 && lines[0] == "*" {
		return nil, nil
	}
	sequences := make([]uint64, 0, 1)
	tags := 0
	for _, rest := range lines {
		for {
			rest = strings.TrimLeft(rest, " \t,") // RFC 9110, 5.6.1.2: empty elements are ignored
			if rest == "" {
				break
			}
			tag, weak, after, ok := CutEntityTag(rest)
			tags++
			if !ok || tags > entityTagsMax {
				return nil, Malformed("the header If-Match must be * or a list of at most %d entity tags", entityTagsMax)
			}
			if n, ok := parseSequence(tag); ok && !weak {
				sequences = append(sequences, n)
			}
			rest = after
		}
	}
	switch {
	case tags == 0:
		return nil, Malformed("the header If-Match is empty")
	case len(sequences) == 0:
		sequences = append(sequences, 0)
	}
	return sequences, nil
}

// CutEntityTag cuts an entity tag (RFC 9110, 8.8.3) off the front of s. Behind it must be the end or a comma.
func CutEntityTag(s string) (tag string, weak bool, rest string, ok bool) {
	s, weak = strings.CutPrefix(s, "W/")
	if s == "" || s[0] != '"' {
		return "", false, "", false
	}
	end := strings.IndexByte(s[1:], '"')
	if end < 0 {
		return "", false, "", false
	}
	tag, rest = s[1:1+end], TrimBlanks(s[end+2:])
	for i := range len(tag) {
		if tag[i] <= ' ' || tag[i] == 0x7f {
			return "", false, "", false
		}
	}
	if rest != "" && rest[0] != ',' {
		return "", false, "", false
	}
	return tag, weak, rest, true
}

// parseSequence reads a sequence number exactly as EntityTag writes it, or as gzipTag of package kernel does.
func parseSequence(tag string) (uint64, bool) {
	tag = strings.TrimSuffix(tag, api.GzipSuffix)
	n, err := strconv.ParseUint(tag, 10, 64)
	return n, err == nil && tag[0] != '0'
}

// EntityTag is the tag of an instance after its nth history entry.
func EntityTag(sequence uint64) string {
	return `"` + strconv.FormatUint(sequence, 10) + `"`
}

// PrefersMinimal reports whether the Prefer header asks for return=minimal.
func PrefersMinimal(lines []string) bool { return PreferredReturn(lines) == "minimal" }

// PreferredReturn returns what the Prefer header asks for with return (RFC 7240), empty for nothing. A preference is
// optional, so malformed ones are ignored. Of several "return" the first counts.
func PreferredReturn(lines []string) string {
	for preference := range listElements(lines) {
		name, value, _ := strings.Cut(preference, "=")
		if EqualASCII(TrimBlanks(name), "return") {
			value = TrimBlanks(value)
			if len(value) > 1 && value[0] == '"' && value[len(value)-1] == '"' {
				value = value[1 : len(value)-1]
			}
			return value
		}
	}
	return ""
}

// listElements returns the elements of a list in a header, each with its parameters (RFC 9110, 5.6).
func listElements(lines []string) iter.Seq2[string, string] {
	return func(yield func(element, parameters string) bool) {
		for _, line := range lines {
			for line != "" {
				var element string
				element, line = cutOutsideQuotes(line, ',')
				element, parameters := cutOutsideQuotes(element, ';')
				if !yield(TrimBlanks(element), parameters) {
					return
				}
			}
		}
	}
}

// cutOutsideQuotes cuts s at the first separator that is not inside a quoted string.
func cutOutsideQuotes(s string, separator byte) (before, after string) {
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case c == separator && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// AcceptsHTML reports whether the Accept header names text/html itself, as browsers do when a person goes to an
// address. A weight of 0 refuses it (RFC 9110, 12.4.2). Malformed elements are ignored.
func AcceptsHTML(lines []string) bool {
	for name, parameters := range listElements(lines) {
		if EqualASCII(name, "text/html") && weightOf(parameters) > 0 {
			return true
		}
	}
	return false
}

// AcceptsGzip reports whether the Accept-Encoding header accepts gzip and does not
// prefer identity (RFC 9110, 12.5.3). Without the header gzip is not used.
func AcceptsGzip(lines []string) bool {
	gzip, _, plain := codingWeights(lines)
	return gzip > 0 && gzip >= plain
}

// PrefersBrotli reports whether the Accept-Encoding header names br, and likes nothing better.
func PrefersBrotli(lines []string) bool {
	gzip, brotli, plain := codingWeights(lines)
	return brotli > 0 && brotli >= gzip && brotli >= plain
}

// codingWeights returns the weights of an Accept-Encoding header, -1 where it tells nothing.
// "*" stands for gzip, which everybody has.
func codingWeights(lines []string) (gzip, brotli, plain int) {
	const unsaid = -1
	gzip, brotli, plain = unsaid, unsaid, unsaid
	other := unsaid
	for name, parameters := range listElements(lines) {
		switch {
		case EqualASCII(name, "gzip"), EqualASCII(name, "x-gzip"):
			gzip = max(gzip, weightOf(parameters))
		case EqualASCII(name, "br"):
			brotli = max(brotli, weightOf(parameters))
		case EqualASCII(name, "identity"):
			plain = max(plain, weightOf(parameters))
		case name == "*":
			other = max(other, weightOf(parameters))
		}
	}
	if gzip == unsaid {
		gzip = other
	}
	return gzip, brotli, plain
}

// weightOf returns the weight among the parameters of an element in thousandths (RFC
// 9110, 12.4.2): 1000 without one, 0 for a malformed one.
func weightOf(parameters string) int {
	for parameters != "" {
		var parameter string
		parameter, parameters = cutOutsideQuotes(parameters, ';')
		name, value, _ := strings.Cut(TrimBlanks(parameter), "=")
		if !EqualASCII(name, "q") {
			continue
		}
		whole, fraction, _ := strings.Cut(value, ".")
		n, err := strconv.ParseUint(whole+(fraction + "000")[:3], 10, 16)
		if err != nil || len(whole) != 1 || len(fraction) > 3 || n > 1000 {
			return 0
		}
		return int(n)
	}
	return 1000
}

// CheckEncoding refuses bodies with a Content-Encoding.
func CheckEncoding(h http.Header) error {
	switch lines := h["Content-Encoding"]; {
	case len(lines) == 0:
		return nil
	case len(lines) == 1 && EqualASCII(lines[0], "identity"):
		return nil
	}
	return failure.Refuse(failure.ErrMediaType, "the body must not have a Content-Encoding")
}

// CheckContentType requires a type.
func CheckContentType(h http.Header, wanted string, need Presence) error {
	if len(h["Content-Type"]) == 0 && need == HeaderOptional || HasType(h, wanted) {
		return nil
	}
	if wanted != "application/json" {
		return failure.Refuse(failure.ErrMediaType, "the Content-Type must be %s", wanted)
	}
	return failure.Refuse(failure.ErrMediaType, "the Content-Type must be application/json in UTF-8")
}

// IsLines reports whether the body is JSON in lines.
func IsLines(h http.Header) bool { return HasType(h, "application/x-ndjson") }

// IsYAML reports whether the body is YAML (RFC 9512).
func IsYAML(h http.Header) bool { return HasType(h, "application/yaml") }

// HasType reports whether the Content-Type is a type. It accepts charset=utf-8, the
// encoding of JSON, and ignores other parameters.
func HasType(h http.Header, wanted string) bool {
	lines := h["Content-Type"]
	if len(lines) != 1 || lines[0] == wanted {
		return len(lines) == 1
	}
	mediaType, params, err := mime.ParseMediaType(lines[0])
	charset, given := params["charset"]
	return err == nil && mediaType == wanted && (!given || EqualASCII(charset, "utf-8"))
}

// Presence says whether a header is required.
type Presence uint8

const (
	HeaderRequired Presence = iota
	HeaderOptional
)

// IfAbsent reports whether If-None-Match requires that there is nothing yet.
// Tags have no meaning for what is about to be written.
func IfAbsent(lines []string) (bool, error) {
	switch {
	case len(lines) == 0:
		return false, nil
	case len(lines) == 1 && TrimBlanks(lines[0]) == "*":
		return true, nil
	}
	return false, Malformed("the header If-None-Match can only be * here")
}
