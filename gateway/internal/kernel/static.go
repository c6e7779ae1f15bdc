package kernel

import (
	"bytes"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/andybalholm/brotli"

	"troupe/gateway/internal/parse"
)

// StaticFile is a file of the program that is the same for every caller. It never changes.
type StaticFile struct {
	Body               []byte
	contentType, cache []string
	tag                string // "" is none
	// gzipped returns body in gzip, nil when that is not smaller. The first call compresses it.
	gzipped func() []byte
	Brotli  *BrotliForm // Brotli has body in brotli; nil: it never will
}

// NewStaticFile makes a file. Without cache, browsers may not cache it.
func NewStaticFile(body []byte, contentType, cache []string, tag string) *StaticFile {
	return &StaticFile{Body: body, contentType: contentType, cache: cache, tag: tag, gzipped: sync.OnceValue(func() []byte {
		if len(body) < GzipPageBytesMin {
			return nil
		}
		if compressed := Gzipped(body, &bestGzip); len(compressed) < len(body) {
			return compressed
		}
		return nil
	})}
}

// Send answers with a static file, or with 304 when the browser has it.
func (f *StaticFile) Send(x *Exchange) error {
	body, tag, h := f.Body, f.tag, x.Writer.Header()
	if compressed := f.gzipped(); compressed != nil {
		x.Vary |= VaryEncoding
		var smaller []byte
		if parse.PrefersBrotli(x.Request.Header["Accept-Encoding"]) {
			smaller = x.Kernel.brotlied(f)
		}
		switch {
		case len(smaller) > 0:
			body, tag = smaller, formTag(tag, brotliSuffix)
			h["Content-Encoding"] = valueBrotli
		case parse.AcceptsGzip(x.Request.Header["Accept-Encoding"]):
			body, tag = compressed, gzipTag(tag)
			h["Content-Encoding"] = valueGzip
		}
	}
	x.ContentType, x.CacheControl = f.contentType, f.cache
	if f.tag != "" {
		h["Etag"] = []string{tag}
		if hasTag(x.Request.Header["If-None-Match"], tag) {
			delete(h, "Content-Encoding")
			x.sendHeader(http.StatusNotModified, 0)
			return nil
		}
	}
	x.sendHeader(http.StatusOK, len(body))
	_, _ = x.Writer.Write(body) // NB: an error means that the caller has gone
	return nil
}

// hasTag reports whether If-None-Match names the tag (RFC 9110, 13.1.2, whose comparison is the weak one).
func hasTag(lines []string, tag string) bool {
	for _, rest := range lines {
		if parse.TrimBlanks(rest) == "*" {
			return true
		}
		for {
			given, _, after, ok := parse.CutEntityTag(parse.TrimBlanks(rest))
			if !ok {
				break
			}
			if `"`+given+`"` == tag {
				return true
			}
			if after = parse.TrimBlanks(after); after == "" || after[0] != ',' {
				break
			}
			rest = after[1:]
		}
	}
	return false
}

// BrotliForm is the brotli form of a file. It takes a second to make, so it is made behind
// the first request that would get it, and used from then on.
type BrotliForm struct {
	asked atomic.Bool
	bytes atomic.Pointer[[]byte] // nil until it is made; empty when it is not smaller
}

const (
	// BrotliLevel: the highest takes three times as long and saves less than another 2 % (BenchmarkBrotli).
	BrotliLevel = 10
	// brotliSuffix is what the entity tag of the brotli form ends in.
	brotliSuffix = "-br"
)

// brotliTurn has a place for the one file that is packed: a browser asks for several at once,
// and they must not take all processors.
var brotliTurn = make(chan struct{}, 1)

var valueBrotli = []string{"br"}

// brotlied returns the file in brotli, nil as long as there is none. The first call has it made.
func (s *Kernel) brotlied(f *StaticFile) []byte {
	if f.Brotli == nil {
		return nil
	}
	if made := f.Brotli.bytes.Load(); made != nil {
		return *made
	}
	if !f.Brotli.asked.Swap(true) {
		s.Packing.Go(func() { s.packBrotli(f) })
	}
	return nil
}

// packBrotli makes the brotli form, unless the server is stopped before its turn comes.
func (s *Kernel) packBrotli(f *StaticFile) {
	select {
	case brotliTurn <- struct{}{}:
		defer func() { <-brotliTurn }()
	case <-s.Stopping:
		f.Brotli.asked.Store(false)
		return
	}
	var out bytes.Buffer
	w := brotli.NewWriterLevel(&out, BrotliLevel)
	_, _ = w.Write(f.Body) // a bytes.Buffer never returns an error
	_ = w.Close()
	made := out.Bytes()
	if gzipped := f.gzipped(); out.Len() >= len(f.Body) || gzipped != nil && out.Len() >= len(gzipped) {
		made = nil
	}
	f.Brotli.bytes.Store(&made)
}

// SendPage answers with an HTML page.
func (x *Exchange) SendPage(status int, policy []string, page []byte) {
	x.SetPageHeaders(policy)
	x.ContentType = ValueHTML
	x.Out = append(x.Out[:0], page...)
	x.Send(status)
}

// SetPageHeaders sets the security headers of an HTML page.
func (x *Exchange) SetPageHeaders(policy []string) {
	h := x.Writer.Header()
	h["Content-Security-Policy"] = policy
	h["X-Frame-Options"] = valueDeny
	h["Referrer-Policy"] = valueNoReferrer
	h["Cross-Origin-Opener-Policy"] = valueSameOrigin
}

// Values of headers of pages, shared and never changed.
var (
	ValueHTML       = []string{"text/html; charset=utf-8"}
	valueDeny       = []string{"DENY"}
	valueNoReferrer = []string{"no-referrer"}
	valueSameOrigin = []string{"same-origin"}
)
