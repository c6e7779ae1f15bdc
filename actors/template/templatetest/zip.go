package templatetest

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"hash/crc32"
	"io"
	"sync"
)

// Entry is an entry of a zip file.
type Entry struct {
	Name, Content string
	Method        uint16                // zip.Store, the zero, or zip.Deflate
	Raw           []byte                // the entry's data as it stands, for files that lie; nil: what Method makes of Content
	Change        func(*zip.FileHeader) // Change, if there is one, changes what the headers say
}

// Zip makes a zip file. It panics when it cannot: nothing is written but memory.
func Zip(entries ...Entry) []byte {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range entries {
		raw := e.Raw
		if raw == nil {
			raw = Compress(e.Method, e.Content)
		}
		header := &zip.FileHeader{
			Name: e.Name, Method: e.Method, CRC32: crc32.ChecksumIEEE([]byte(e.Content)),
			CompressedSize64: uint64(len(raw)), UncompressedSize64: uint64(len(e.Content)),
		}
		if e.Change != nil {
			e.Change(header)
		}
		entry, err := w.CreateRaw(header)
		if err == nil {
			_, err = entry.Write(raw)
		}
		if err != nil {
			panic(err)
		}
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.Bytes()
}

// writers are kept, because a new one costs more than a small document.
var writers = sync.Pool{New: func() any {
	w, err := flate.NewWriter(nil, flate.DefaultCompression)
	if err != nil {
		panic(err)
	}
	return w
}}

// Compress returns what a method of zip makes of a content.
func Compress(method uint16, content string) []byte {
	if method != zip.Deflate {
		return []byte(content)
	}
	var out bytes.Buffer
	w := writers.Get().(*flate.Writer)
	defer writers.Put(w)
	w.Reset(&out)
	_, err := io.WriteString(w, content)
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err)
	}
	return out.Bytes()
}
