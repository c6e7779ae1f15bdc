package kernel

import (
	"strings"
	"sync"
	"sync/atomic"
)

// StaticFile is a file of the program that is the same for every caller. It never
// changes.
type StaticFile struct {
	Body               []byte
	contentType, cache []string
	tag                string // "" is none
	// gzipped returns body in gzip, nil when that is not smaller. The first call
	// compresses it.
	gzipped func() []byte
	// Brotli has body in brotli; nil: it never will.
	Brotli *BrotliForm
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

// formTag returns the entity tag of a form of a file.
func formTag(tag, suffix string) string { return strings.TrimSuffix(tag, `"`) + suffix + `"` }

var valueBrotli = []string{"br"}
