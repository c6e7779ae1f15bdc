package gateway

import (
	"troupe/gateway/internal/parse"
)

// languages returns the languages of the reader, the preferred one first, and notes that the answer depends on them.
func (x *exchange) languages() []string {
	x.varyLanguage = true
	return parse.AcceptLanguage(x.r.Header["Accept-Language"])
}
