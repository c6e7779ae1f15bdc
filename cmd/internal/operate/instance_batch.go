package operate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"troupe/cmd/internal/cli"
	"troupe/gateway/client"
)

const (
	batchItems = 1000 // batchItems and batchBytes are how much of a file goes into one request
	batchBytes = 4 << 20
)

type sendFile struct {
	cmd    *cobra.Command
	client *client.Client
	key    string // of batch n it is key-n
	live   *cli.LiveLine

	Sent     int           `json:"sent"`
	Done     int           `json:"done"`
	Failed   int           `json:"failed"`
	Created  []createdItem `json:"created"`
	Failures []failedItem  `json:"failures"`
	began    time.Time
	batches  int
}

// itemPlace says where an item stands in the file. Both count from 1.
type itemPlace struct {
	Item int `json:"item"`
	Line int `json:"line"` // where it begins
}

type createdItem struct {
	itemPlace
	WorkflowID string `json:"workflowId"`
	InstanceID string `json:"instanceId"`
}

type failedItem struct {
	itemPlace
	client.BatchResult
}

func (s *sendFile) run(name string, out *cli.Output) error {
	in := s.cmd.InOrStdin()
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("--file: %w", err)
		}
		defer func() { _ = file.Close() }() // it was only read
		in = file
	}
	err := s.read(in)
	s.live.Clear()
	if shown := s.show(out); err == nil {
		err = shown
	}
	if err == nil && s.Failed > 0 {
		err = s.refused()
	}
	return err
}

// NB: what was wrong in an item is wrong again with the same key, and a batch must not change under it.
func (s *sendFile) refused() error {
	const fix = "put the corrected lines%s into a new file and send it without --key"
	passing := 0 // those that may be taken the next time
	for _, f := range s.Failures {
		if f.Status == http.StatusTooManyRequests || f.Status >= 500 {
			passing++
		}
	}
	next := "they are retried when you " + s.again()
	switch {
	case passing == 0:
		next = fmt.Sprintf(fix, "")
	case passing < s.Failed:
		next = fmt.Sprintf(fix+"; the %d with status 429 or 5xx are retried when you %s", " of the other items", passing, s.again())
	}
	return fmt.Errorf("%d of %d items failed; %s", s.Failed, s.Sent, next)
}

// NB: nothing may follow it, or it is copied as a part of the key, and everything is done twice.
func (s *sendFile) again() string { return "repeat the same command with --key " + s.key }

func (s *sendFile) onlyRest() string { return "nothing is done twice when you " + s.again() }

type fileItem struct {
	text json.RawMessage
	line int
}

func (s *sendFile) read(stream io.Reader) error {
	pipe := interruptible(s.cmd.Context(), stream)
	defer func() { _ = pipe.Close() }() // never fails
	in := newItemReader(pipe)
	var items []fileItem
	size := 0
	for {
		item, err := in.next()
		if errors.Is(err, io.EOF) {
			return s.send(items)
		}
		if s.cmd.Context().Err() != nil { // NB: not what broke off because of it
			return fmt.Errorf("%w after %d items were sent; %s", cli.ErrInterrupted, s.Sent, s.onlyRest())
		}
		if err != nil {
			return s.unread(err)
		}
		if len(items) == batchItems || len(items) > 0 && size+len(item.text) > batchBytes {
			if err := s.send(items); err != nil {
				return err
			}
			items, size = items[:0], 0
		}
		items = append(items, item)
		size += len(item.text)
	}
}

func (s *sendFile) unread(err error) error {
	failed := (*fs.PathError)(nil)
	if s.Sent == 0 && errors.As(err, &failed) {
		return fmt.Errorf("--file: %w", err)
	}
	if s.Sent == 0 {
		return cli.Usagef("--file: %w; nothing was sent", err)
	}
	return fmt.Errorf("--file: %w; the first %d items were sent: fix the rest of the file; %s", err, s.Sent, s.onlyRest())
}

func (s *sendFile) send(items []fileItem) error {
	if len(items) == 0 {
		return nil
	}
	r := client.BatchRequest{Key: s.key + "-" + strconv.Itoa(s.batches)}
	for _, item := range items {
		r.Items = append(r.Items, item.text)
	}
	results, err := s.client.Batch(s.cmd.Context(), r)
	if err != nil {
		return s.unsent(err, len(items))
	}
	for i := range results {
		at := itemPlace{s.Sent + i + 1, items[i].line}
		switch {
		case results[i].Err() != nil:
			s.Failures = append(s.Failures, failedItem{at, results[i]})
		case results[i].Created, isCreate(items[i].text):
			s.Created = append(s.Created, createdItem{at, results[i].WorkflowID, results[i].InstanceID})
		}
	}
	s.batches++
	s.Sent += len(items)
	s.Failed = len(s.Failures)
	s.Done = s.Sent - s.Failed
	s.live.Say(fmt.Sprintf("%d sent, %d failed, %.0f/s", s.Sent, s.Failed, float64(s.Sent)/max(time.Since(s.began).Seconds(), 0.001)))
	return nil
}

// NB: not with the key of the batch, which is not for --key.
func (s *sendFile) unsent(err error, items int) error {
	from, to := s.Sent+1, s.Sent+items
	var refused *client.Error
	var unknown *client.UnknownError
	isUnknown := errors.As(err, &unknown)
	if isUnknown {
		err = unknown.Cause
	}
	if s.cmd.Context().Err() != nil {
		err = cli.ErrInterrupted
	}
	switch {
	case isUnknown:
		return fmt.Errorf("items %d to %d: outcome unknown: %w; %s", from, to, err, s.onlyRest())
	case errors.Is(err, client.ErrInvalid):
		return err
	case errors.As(err, &refused) && refused.Status == http.StatusUnprocessableEntity:
		return fmt.Errorf("items %d to %d: %w; the file was changed since it was sent with this --key: send the original file, or send the missing items without --key", from, to, err)
	}
	fix := ""
	if errors.As(err, &refused) && refused.Status < 500 && refused.Status != http.StatusTooManyRequests {
		fix = "fix that; "
	}
	return fmt.Errorf("items %d to %d were not done: %w; %s%s", from, to, err, fix, s.onlyRest())
}

func isCreate(item json.RawMessage) bool {
	var event struct{ InstanceID, Key json.RawMessage }
	return json.Unmarshal(item, &event) == nil && event.InstanceID == nil && event.Key == nil
}

func (s *sendFile) show(out *cli.Output) error {
	if out.Form != cli.FormTable {
		return out.Marshaled(json.Marshal(s))
	}
	if len(s.Failures) > 0 {
		rows := [][]string{{"ITEM", "LINE", "STATUS", "ERROR", "MESSAGE"}}
		for _, f := range s.Failures {
			rows = append(rows, []string{strconv.Itoa(f.Item), strconv.Itoa(f.Line), strconv.Itoa(f.Status), f.Code, f.Message})
		}
		if err := out.Table(rows); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out.To, "%d sent, %d done, %d failed\n", s.Sent, s.Done, s.Failed)
	return err
}

// interruptible reads a stream until ctx ends: then reads return errInterrupted, although a quiet standard input waits
// on.
func interruptible(ctx context.Context, stream io.Reader) *io.PipeReader {
	in, out := io.Pipe()
	context.AfterFunc(ctx, func() { _ = out.CloseWithError(cli.ErrInterrupted) }) // never fails
	go func() {
		_, err := io.Copy(out, stream)
		_ = out.CloseWithError(err) // without one: io.EOF
	}()
	return in
}

// itemReader reads the items of a file: values of JSON one after the other, or an array.
type itemReader struct {
	in      *bufio.Reader
	lines   lineCounter
	decoder *json.Decoder // nil before the first item
	array   bool
}

func newItemReader(r io.Reader) *itemReader { return &itemReader{in: bufio.NewReader(r)} }

func (r *itemReader) next() (fileItem, error) {
	if r.decoder == nil {
		if err := r.begin(); err != nil {
			return fileItem{}, err
		}
	}
	if r.array && !r.decoder.More() {
		return fileItem{}, r.end()
	}
	var item json.RawMessage
	if err := r.decoder.Decode(&item); err != nil {
		if errors.Is(err, io.EOF) && !r.array {
			return fileItem{}, io.EOF
		}
		return fileItem{}, r.explain(err)
	}
	line := r.lines.line(r.decoder.InputOffset())
	return fileItem{item, line - bytes.Count(item, []byte{'\n'})}, nil
}

func (r *itemReader) begin() error {
	// NB: an error of Peek comes again behind what there is.
	start, _ := r.in.Peek(3)
	for _, mark := range []string{"\xEF\xBB\xBF", "\xFE\xFF", "\xFF\xFE"} {
		if bytes.HasPrefix(start, []byte(mark)) {
			return errors.New("the file has a byte order mark: use UTF-8 without one")
		}
	}
	for {
		c, err := r.in.ReadByte()
		if err != nil {
			return err
		}
		if c == '\n' {
			r.lines.passed++
		}
		if !isBlank(rune(c)) {
			_ = r.in.UnreadByte() // it was just read
			r.lines.in = r.in
			r.decoder = json.NewDecoder(&r.lines)
			if r.array = c == '['; r.array {
				_, err = r.decoder.Token()
			}
			return err
		}
	}
}

func (r *itemReader) end() error {
	_, err := r.decoder.Token()
	if err != nil {
		return r.explain(err)
	}
	var more json.RawMessage
	if err = r.decoder.Decode(&more); err == nil {
		err = errors.New("there is text after the array")
	}
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return r.explain(err)
}

func (r *itemReader) explain(err error) error {
	rest, _ := io.ReadAll(r.decoder.Buffered()) // from memory
	item := bytes.TrimLeftFunc(rest, isBlank)
	before := len(rest) - len(item)
	// NB: the offsets in errors of a Decoder leave out what stands between items.
	if fault := (*json.SyntaxError)(nil); errors.As(json.Unmarshal(item, new(json.RawMessage)), &fault) && fault.Error() == err.Error() {
		before += int(fault.Offset) - 1
	}
	line := r.lines.line(r.decoder.InputOffset()) + bytes.Count(rest[:before], []byte{'\n'})
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = errors.New("the file ends in the middle of an item")
	case errors.Is(err, io.EOF):
		err = errors.New("the file ends before its array does: a ] is missing")
	}
	return fmt.Errorf("line %d: %w", line, err)
}

func isBlank(c rune) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

type lineCounter struct {
	in     io.Reader
	read   int64   // bytes
	ends   []int64 // where the lines end that were read and not passed
	passed int     // lines
}

func (l *lineCounter) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			l.ends = append(l.ends, l.read+int64(i))
		}
	}
	l.read += int64(n)
	return n, err
}

// Offsets must not become smaller.
func (l *lineCounter) line(offset int64) int {
	n, _ := slices.BinarySearch(l.ends, offset)
	l.ends = l.ends[n:]
	l.passed += n
	return l.passed + 1
}
