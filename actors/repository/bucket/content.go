package bucket

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"sync"

	"troupe/actors/failure"
)

const drainBytesMax = 64 << 10

// The first use reads all of it into memory, because readers of zip files jump about.
type content struct {
	body   io.ReadCloser
	size   int64
	cancel context.CancelFunc // ends the request

	once sync.Once
	text *bytes.Reader
	err  error
}

// ReadAt implements io.ReaderAt.
func (c *content) ReadAt(p []byte, off int64) (int, error) {
	c.once.Do(c.load)
	if c.err != nil {
		return 0, c.err
	}
	return c.text.ReadAt(p, off)
}

// NB: it does not wrap the errors of the connection: one of them is io.EOF, which would look like the end of the
// object.
func (c *content) load() {
	text := make([]byte, c.size)
	if _, err := io.ReadFull(c.body, text); err != nil {
		c.err = failure.Errorf(failure.ErrUnavailable, "read an object: %s", err.Error())
		return
	}
	c.text = bytes.NewReader(text)
}

// Close implements io.Closer.
func (c *content) Close() error {
	c.once.Do(func() {
		c.err = fs.ErrClosed
		if c.size <= drainBytesMax {
			_, _ = io.Copy(io.Discard, c.body) // if it fails, the connection is not used again
		}
	})
	c.cancel()
	return c.body.Close()
}
