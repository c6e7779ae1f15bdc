package kernel

import (
	"troupe/gateway/internal/parse"
)

// Languages returns the languages of the reader, the preferred one first, and notes that the answer depends on them.
func (x *Exchange) Languages() []string {
	x.VaryLanguage = true
	return parse.AcceptLanguage(x.Request.Header["Accept-Language"])
}
