package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"troupe/gateway/client"
)

const (
	// batchItems and batchBytes are how much of a file goes into one request: enough for
	// nearly all that a batch saves, and little to repeat.
	batchItems = 1000
	batchBytes = 4 << 20
)

// sendFile sends the items of a file in batches, one after the other.
type sendFile struct {
	cmd    *cobra.Command
	client *client.Client
	key    string // of batch n it is key-n
	live   *liveLine

	Sent     int          `json:"sent"`
	Failed   int          `json:"failed"`
	Failures []failedItem `json:"failures"`
	began    time.Time
	batches  int
}

// failedItem is an item that was refused.
type failedItem struct {
	Item int `json:"item"` // from 1
	client.BatchResult
}

// errFailures makes the exit code 1. The failures were listed.
var errFailures = errors.New("items have failed; the same command again tries only them, if it had the same --key")

func (s *sendFile) run(name string, out *output) error {
	in := s.cmd.InOrStdin()
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("--file: %w", err)
		}
		defer func() { _ = file.Close() }() // it was only read
		in = file
	}
	err := s.read(bufio.NewReader(in))
	s.live.clear()
	if shown := s.show(out); err == nil {
		err = shown
	}
	if err == nil && s.Failed > 0 {
		err = fmt.Errorf("%d of %d %w", s.Failed, s.Sent, errFailures)
	}
	return err
}

// read sends what a stream has: values of JSON one after the other, or an array.
func (s *sendFile) read(in *bufio.Reader) error {
	d := json.NewDecoder(in)
	array, err := beginsArray(in)
	if err != nil {
		return fmt.Errorf("--file: %w", err)
	}
	if array {
		_, _ = d.Token() // the bracket
	}
	var items []json.RawMessage
	size := 0
	for !array || d.More() {
		var item json.RawMessage
		err := d.Decode(&item)
		if errors.Is(err, io.EOF) && !array {
			break
		}
		if err != nil {
			return usageError{fmt.Errorf("--file: item %d: %w", s.Sent+len(items)+1, err)}
		}
		if len(items) == batchItems || len(items) > 0 && size+len(item) > batchBytes {
			if err := s.send(items); err != nil {
				return err
			}
			items, size = items[:0], 0
		}
		items = append(items, item)
		size += len(item)
	}
	if array {
		if _, err := d.Token(); err != nil {
			return usageError{fmt.Errorf("--file: behind item %d: %w", s.Sent+len(items), err)}
		}
	}
	return s.send(items)
}

// beginsArray looks at the first byte that is no white space.
func beginsArray(in *bufio.Reader) (bool, error) {
	for {
		c, err := in.ReadByte()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c == '[', in.UnreadByte()
		}
	}
}

func (s *sendFile) send(items []json.RawMessage) error {
	if len(items) == 0 {
		return nil
	}
	results, err := s.client.Batch(s.cmd.Context(), client.BatchRequest{Items: items, Key: s.key + "-" + strconv.Itoa(s.batches)})
	if err != nil {
		return fmt.Errorf("items %d to %d: %w", s.Sent+1, s.Sent+len(items), err)
	}
	for i := range results {
		if results[i].Err() != nil {
			s.Failed++
			s.Failures = append(s.Failures, failedItem{s.Sent + i + 1, results[i]})
		}
	}
	s.batches++
	s.Sent += len(items)
	s.live.say(fmt.Sprintf("%d sent, %d failed, %.0f/s", s.Sent, s.Failed, float64(s.Sent)/max(time.Since(s.began).Seconds(), 0.001)))
	return nil
}

// show writes the failures and the summary.
func (s *sendFile) show(out *output) error {
	if out.form != formTable {
		text, err := json.Marshal(s)
		if err != nil {
			return err
		}
		return out.document(text)
	}
	if len(s.Failures) > 0 {
		rows := [][]string{{"ITEM", "STATUS", "ERROR", "MESSAGE"}}
		for _, f := range s.Failures {
			rows = append(rows, []string{strconv.Itoa(f.Item), strconv.Itoa(f.Status), f.Code, f.Message})
		}
		if err := out.table(rows); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out.to, "%d sent, %d done, %d failed\n", s.Sent, s.Sent-s.Failed, s.Failed)
	return err
}
