package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type chunked struct {
	text string
	n    int
}

func (c *chunked) Read(p []byte) (int, error) {
	if c.text == "" {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.n)], c.text)
	c.text = c.text[n:]
	return n, nil
}

func blocksOf(in io.Reader, bytesMax int) (blocks []string, err error) {
	s := newStreamReader(in, bytesMax)
	for {
		b, err := s.next()
		if err != nil {
			return blocks, err
		}
		blocks = append(blocks, shown(&b))
	}
}

func shown(b *block) string {
	data := "-"
	if b.data != nil {
		data = strconv.Quote(string(b.data))
	}
	retry := "-"
	if b.retry >= 0 {
		retry = strconv.FormatInt(b.retry.Milliseconds(), 10)
	}
	return fmt.Sprintf("%s %s %q %s", b.kind, data, b.id, retry)
}

// TestStream plays testdata/stream: texts as Go quotes them, read in pieces of several sizes, and their blocks.
func TestStream(t *testing.T) {
	datadriven.RunTest(t, "testdata/stream/blocks.txt", func(t *testing.T, d *datadriven.TestData) string {
		text, err := strconv.Unquote(d.Input)
		require.NoError(t, err, d.Input)
		read := func(size int) string {
			blocks, err := blocksOf(&chunked{text, size}, 64)
			return strings.Join(append(blocks, fmt.Sprintln(err)), "\n")
		}
		for _, size := range []int{1, 2, 3, 7} {
			assert.Equal(t, read(4096), read(size), "in pieces of %d", size)
		}
		return read(4096)
	})
}

// TestStreamDoesNotWaitBehindCR holds that a block which ends with CR is there
// before the next byte is.
func TestStreamDoesNotWaitBehindCR(t *testing.T) {
	in, out := io.Pipe()
	go func() {
		_, _ = out.Write([]byte("data: a\r\r"))
	}()
	b, err := newStreamReader(in, 64).next()
	assert.True(t, err == nil && string(b.data) == "a", "got %q, %v", b.data, err)
	_ = in.Close()
}

func TestStreamError(t *testing.T) {
	broken := errors.New("broken")
	got, err := blocksOf(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)), 64)
	assert.True(t, len(got) == 1 && errors.Is(err, broken), "got %v, %v, want one block and the error", got, err)
}

// slowBlocks is the same by splitting the whole text: the oracle.
func slowBlocks(text string) (blocks []string) {
	lines := strings.Split(strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n"), "\n")
	lines = lines[:len(lines)-1] // what has no end is no line
	if len(lines) > 0 {
		lines[0] = strings.TrimPrefix(lines[0], "\uFEFF")
	}
	id := ""
	b := block{retry: -1}
	var data []string
	said := false
	for _, line := range lines {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if said {
				if data != nil {
					b.data = []byte(strings.Join(data, "\n"))
				}
				b.id = id
				blocks = append(blocks, shown(&b))
			}
			b, data, said = block{retry: -1}, nil, false
		case field == "data":
			data, said = append(data, value), true
		case field == "event":
			b.kind, said = strings.ToValidUTF8(value, "�"), true
		case field == "id" && !strings.Contains(value, "\x00"):
			id, said = strings.ToValidUTF8(value, "�"), true
		case field == "retry" && value != "" && strings.Trim(value, "0123456789") == "":
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				b.retry, said = time.Duration(min(n, 3_600_000))*time.Millisecond, true
			}
		}
	}
	return blocks
}

func FuzzStream(f *testing.F) {
	f.Add("retry: 2000\nid: 1\n\nid: 2\nevent: entry\ndata: {}\n\n: beat\n\n", uint8(3))
	f.Add("\uFEFFdata: a\r\rdata:b\r\n\r\ndata\n\n", uint8(1))
	f.Add("id: \x00\nretry: 99999999999999999999\nevent\n\n", uint8(2))
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		got, err := blocksOf(&chunked{text, int(size) + 1}, 1<<16)
		if errors.Is(err, errTooLong) {
			require.GreaterOrEqual(t, len(text), 1<<16, "got %v", err)
			return
		}
		require.False(t, !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF), "got %v", err)
		assert.Equal(t, strings.Join(slowBlocks(text), "\n"), strings.Join(got, "\n"))
	})
}

func BenchmarkStream(b *testing.B) {
	entry := []byte("id: 123456789\nevent: entry\ndata: " + strings.Repeat("x", 400) + "\n\n")
	b.SetBytes(int64(len(entry)))
	text := bytes.Repeat(entry, b.N)
	s := newStreamReader(bytes.NewReader(text), 1<<20)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := s.next(); err != nil {
			b.Fatal(err)
		}
	}
}
