package gateway

import (
	"bytes"
	"io"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"

	"troupe/actors/identity"
	"troupe/gateway/api"
)

// Who takes gzip gets it for answers that are sent whole: JSON, pages, and the
// files that pages ask for. What is streamed stays as it is, because an event or a
// piece of a list must leave at once. gateway/DESIGN.md, "Compression", has the
// reasons and figures.

const (
	packJSONBytesMin = 4 << 10
	packPageBytesMin = 1 << 10 // below, what is saved fits into the same packets
)

// pack returns the bytes to send for x.out: packed, where the caller takes that and it
// is not secret. It sets the headers that go with it. x.out keeps its buffer.
func (x *exchange) pack() []byte {
	if !x.mayPack() {
		return x.out
	}
	x.varyEncoding = true
	if !takesGzip(x.r.Header["Accept-Encoding"]) {
		return x.out
	}
	small := packed(x.out, &quickPackers)
	if len(small) >= len(x.out) {
		return x.out
	}
	h := x.w.Header()
	h["Content-Encoding"] = valueGzip
	if tag := h["Etag"]; len(tag) == 1 {
		h["Etag"] = []string{packedTag(tag[0])}
	}
	return small
}

// mayPack reports whether the whole answer in x.out is sent packed to those who take
// it.
func (x *exchange) mayPack() bool {
	bytesMin := packPageBytesMin
	if x.contentType == nil { // JSON
		bytesMin = packJSONBytesMin
	}
	// NB: whoever can put text beside a secret and sees how long the packed answer is
	// can guess the secret (BREACH). So nothing secret is packed, and nothing that a
	// page of another site has a browser ask for with its cookie.
	return len(x.out) >= bytesMin && !x.route.secret && !(x.kind == identity.Session && x.isElsewhere())
}

// isElsewhere reports whether the browser says that a page of another origin asks.
func (x *exchange) isElsewhere() bool {
	switch x.r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	return true
}

// packers have the working memory of a compressor, some 800 KiB. BenchmarkPack is the
// reason for the pool.
type packers struct{ sync.Pool }

func newPackers(level int) packers {
	return packers{sync.Pool{New: func() any {
		w, err := gzip.NewWriterLevel(io.Discard, level)
		if err != nil {
			panic("gateway: a level that gzip does not know: " + err.Error())
		}
		return w
	}}}
}

var quickPackers, thoroughPackers = newPackers(gzip.BestSpeed), newPackers(gzip.BestCompression)

// packed returns text in gzip; the bytes are the caller's.
func packed(text []byte, with *packers) []byte {
	w := with.Get().(*gzip.Writer)
	defer with.Put(w)
	var out bytes.Buffer
	out.Grow(len(text) / 4)
	w.Reset(&out)
	_, _ = w.Write(text) // a bytes.Buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

// packedTag is the entity tag of packed bytes.
func packedTag(tag string) string { return strings.TrimSuffix(tag, `"`) + api.PackedSuffix + `"` }

// static is something of the program's own that is the same for everybody. It never
// changes.
type static struct {
	body               []byte
	contentType, cache []string
	tag                string // "" is none
	// packed returns body in gzip, nil when that is not worth it. It packs at the first
	// call.
	packed func() []byte
}

// newStatic makes a file; without cache it may not be kept.
func newStatic(body []byte, contentType, cache []string, tag string) *static {
	return &static{body: body, contentType: contentType, cache: cache, tag: tag, packed: sync.OnceValue(func() []byte {
		if len(body) < packPageBytesMin {
			return nil
		}
		if p := packed(body, &thoroughPackers); len(p) < len(body) {
			return p
		}
		return nil
	})}
}

var valueGzip = []string{"gzip"}
