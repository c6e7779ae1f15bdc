package kernel

import (
	"troupe/actors/identity"
	"troupe/gateway/internal/parse"
)

// Answers that are sent whole (JSON, pages and the files of pages) are compressed
// with gzip when the request accepts it. Streams are not, because an event or a
// piece of a list must be sent at once. gateway/DESIGN.md, "Compression", has the
// reasons and figures.

const (
	GzipJSONBytesMin = 4 << 10
	GzipPageBytesMin = 1 << 10 // below, compressing saves no network packet
)

// compress returns the bytes to send for x.out: in gzip, if the request accepts it and
// mayCompress allows it. It sets the headers for that. x.out keeps its buffer.
func (x *Exchange) compress() []byte {
	if !x.mayCompress() {
		return x.Out
	}
	x.VaryEncoding = true
	if !parse.AcceptsGzip(x.Request.Header["Accept-Encoding"]) {
		return x.Out
	}
	compressed := Gzipped(x.Out, &FastGzip)
	if len(compressed) >= len(x.Out) {
		return x.Out
	}
	h := x.Writer.Header()
	h["Content-Encoding"] = valueGzip
	if tag := h["Etag"]; len(tag) == 1 {
		h["Etag"] = []string{gzipTag(tag[0])}
	}
	return compressed
}

// mayCompress reports whether the answer in x.out may be compressed.
func (x *Exchange) mayCompress() bool {
	bytesMin := GzipPageBytesMin
	if x.ContentType == nil { // JSON
		bytesMin = GzipJSONBytesMin
	}
	// NB: an attacker who can put text beside a secret and sees the length of the
	// compressed answer can guess the secret (BREACH). So answers with secrets are not
	// compressed, nor answers to requests that another site's page made with the cookie.
	return len(x.Out) >= bytesMin && !x.Route.Secret && !(x.Kind == identity.Session && x.isCrossOriginFetch())
}

// isCrossOriginFetch reports whether the browser says that a page of another origin
// made the request.
func (x *Exchange) isCrossOriginFetch() bool {
	switch x.Request.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	return true
}

var valueGzip = []string{"gzip"}
