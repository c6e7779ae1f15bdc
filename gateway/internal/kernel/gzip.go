package kernel

import (
	"bytes"
	"compress/gzip"
	"io"
	"sync"

	"troupe/gateway/api"
)

// GzipWriters is a pool of compressors, each with some 800 KiB of working memory.
// BenchmarkGzip is the reason for it.
type GzipWriters struct{ sync.Pool }

// NewGzipWriters makes a pool for a level.
func NewGzipWriters(level int) GzipWriters {
	return GzipWriters{sync.Pool{New: func() any {
		w, err := gzip.NewWriterLevel(io.Discard, level)
		if err != nil {
			panic("gateway: gzip does not know the level: " + err.Error())
		}
		return w
	}}}
}

var FastGzip, bestGzip = NewGzipWriters(gzip.BestSpeed), NewGzipWriters(gzip.BestCompression)

// Gzipped returns text in gzip. The bytes belong to the caller.
func Gzipped(text []byte, with *GzipWriters) []byte {
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
