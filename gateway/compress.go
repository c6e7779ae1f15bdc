package gateway

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"

	"troupe/actors/identity"
	"troupe/gateway/api"
	"troupe/gateway/internal/parse"
)

// Answers that are sent whole (JSON, pages and the files of pages) are compressed
// with gzip when the request accepts it. Streams are not, because an event or a
// piece of a list must be sent at once. gateway/DESIGN.md, "Compression", has the
// reasons and figures.

const (
	gzipJSONBytesMin = 4 << 10
	gzipPageBytesMin = 1 << 10 // below, compressing saves no network packet
)

// compress returns the bytes to send for x.out: in gzip, if the request accepts it and
// mayCompress allows it. It sets the headers for that. x.out keeps its buffer.
func (x *exchange) compress() []byte {
	if !x.mayCompress() {
		return x.out
	}
	x.varyEncoding = true
	if !parse.AcceptsGzip(x.r.Header["Accept-Encoding"]) {
		return x.out
	}
	compressed := gzipped(x.out, &fastGzip)
	if len(compressed) >= len(x.out) {
		return x.out
	}
	h := x.w.Header()
	h["Content-Encoding"] = valueGzip
	if tag := h["Etag"]; len(tag) == 1 {
		h["Etag"] = []string{gzipTag(tag[0])}
	}
	return compressed
}

// mayCompress reports whether the answer in x.out may be compressed.
func (x *exchange) mayCompress() bool {
	bytesMin := gzipPageBytesMin
	if x.contentType == nil { // JSON
		bytesMin = gzipJSONBytesMin
	}
	// NB: an attacker who can put text beside a secret and sees the length of the
	// compressed answer can guess the secret (BREACH). So answers with secrets are not
	// compressed, nor answers to requests that another site's page made with the cookie.
	return len(x.out) >= bytesMin && !x.route.secret && !(x.kind == identity.Session && x.isCrossOriginFetch())
}

// isCrossOriginFetch reports whether the browser says that a page of another origin
// made the request.
func (x *exchange) isCrossOriginFetch() bool {
	switch x.r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	return true
}

// gzipWriters is a pool of compressors, each with some 800 KiB of working memory.
// BenchmarkGzip is the reason for it.
type gzipWriters struct{ sync.Pool }

func newGzipWriters(level int) gzipWriters {
	return gzipWriters{sync.Pool{New: func() any {
		w, err := gzip.NewWriterLevel(io.Discard, level)
		if err != nil {
			panic("gateway: gzip does not know the level: " + err.Error())
		}
		return w
	}}}
}

var fastGzip, bestGzip = newGzipWriters(gzip.BestSpeed), newGzipWriters(gzip.BestCompression)

// gzipped returns text in gzip. The bytes belong to the caller.
func gzipped(text []byte, with *gzipWriters) []byte {
	w := with.Get().(*gzip.Writer)
	defer with.Put(w)
	var out bytes.Buffer
	out.Grow(len(text) / 4)
	w.Reset(&out)
	_, _ = w.Write(text) // a bytes.Buffer never returns an error
	_ = w.Close()
	return out.Bytes()
}

// gzipTag returns the entity tag of the gzip form.
func gzipTag(tag string) string { return formTag(tag, api.GzipSuffix) }

// staticFile is a file of the program that is the same for every caller. It never
// changes.
type staticFile struct {
	body               []byte
	contentType, cache []string
	tag                string // "" is none
	// gzipped returns body in gzip, nil when that is not smaller. The first call
	// compresses it.
	gzipped func() []byte
	// brotli has body in brotli; nil: it never will.
	brotli *brotliForm
}

// newStaticFile makes a file. Without cache, browsers may not cache it.
func newStaticFile(body []byte, contentType, cache []string, tag string) *staticFile {
	return &staticFile{body: body, contentType: contentType, cache: cache, tag: tag, gzipped: sync.OnceValue(func() []byte {
		if len(body) < gzipPageBytesMin {
			return nil
		}
		if compressed := gzipped(body, &bestGzip); len(compressed) < len(body) {
			return compressed
		}
		return nil
	})}
}

// brotliForm is the brotli form of a file. It takes a second to make, so it is made behind
// the first request that would get it, and used from then on.
type brotliForm struct {
	asked atomic.Bool
	bytes atomic.Pointer[[]byte] // nil until it is made; empty when it is not smaller
}

const (
	// brotliLevel: the highest takes three times as long and saves less than another 2 % (BenchmarkBrotli).
	brotliLevel = 10
	// brotliSuffix is what the entity tag of the brotli form ends in.
	brotliSuffix = "-br"
)

// brotliTurn has a place for the one file that is packed: a browser asks for several at once,
// and they must not take all processors.
var brotliTurn = make(chan struct{}, 1)

// brotlied returns the file in brotli, nil as long as there is none. The first call has it made.
func (s *Server) brotlied(f *staticFile) []byte {
	if f.brotli == nil {
		return nil
	}
	if made := f.brotli.bytes.Load(); made != nil {
		return *made
	}
	if !f.brotli.asked.Swap(true) {
		s.packing.Go(func() { s.packBrotli(f) })
	}
	return nil
}

// packBrotli makes the brotli form, unless the server is stopped before its turn comes.
func (s *Server) packBrotli(f *staticFile) {
	select {
	case brotliTurn <- struct{}{}:
		defer func() { <-brotliTurn }()
	case <-s.stopping:
		f.brotli.asked.Store(false)
		return
	}
	var out bytes.Buffer
	w := brotli.NewWriterLevel(&out, brotliLevel)
	_, _ = w.Write(f.body) // a bytes.Buffer never returns an error
	_ = w.Close()
	made := out.Bytes()
	if gzipped := f.gzipped(); out.Len() >= len(f.body) || gzipped != nil && out.Len() >= len(gzipped) {
		made = nil
	}
	f.brotli.bytes.Store(&made)
}

// formTag returns the entity tag of a form of a file.
func formTag(tag, suffix string) string { return strings.TrimSuffix(tag, `"`) + suffix + `"` }

var (
	valueGzip   = []string{"gzip"}
	valueBrotli = []string{"br"}
)
