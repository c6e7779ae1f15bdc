package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Tool is the end of the server's store that a command works with: it reads in, which is what the command sends, and tells
// of lines and of how far it is. The context ends when the command has gone, or the server stops.
type Tool func(ctx context.Context, in io.Reader, line func(any) error, say func(progress string)) error

// toolMessage is a line of the answer of a tool. The last one has Done or an Error.
type toolMessage[Line any] struct {
	Progress string      `json:"progress,omitempty"`
	Line     Line        `json:"line,omitempty"`
	Error    *errorReply `json:"error,omitempty"`
	Done     bool        `json:"done,omitempty"`
}

// RunTool has the server use one of its tools. in is sent to its end; nil is nothing. The errors are the tool's, of the
// kinds that others of the server have.
func (c *Client) RunTool(ctx context.Context, name string, in io.Reader, line func(json.RawMessage) error, say func(progress string)) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://admin"+pathTools+"/"+url.PathEscape(name), in)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if err != nil {
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return fmt.Errorf("ask the server at %s: %w", c.path, err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return readError(response.Body)
	}
	for messages := json.NewDecoder(response.Body); ; {
		var m toolMessage[json.RawMessage]
		if err := messages.Decode(&m); err != nil {
			return fmt.Errorf("%w: the answer ends early, so the server may have stopped: %w", ErrFailed, err)
		}
		switch {
		case m.Error != nil:
			return &remoteError{cause: causeOf(m.Error.Error), text: m.Error.Message}
		case m.Done:
			return nil
		case m.Line != nil:
			if err := line(m.Line); err != nil {
				return err
			}
		default:
			say(m.Progress)
		}
	}
}

func (s *Server) useTool(w http.ResponseWriter, r *http.Request) {
	tool := s.options.Tools[r.PathValue("name")]
	if tool == nil {
		s.answer(w, r, nil, ErrUnknownRequest)
		return
	}
	s.tools.Add(1)
	defer s.tools.Done()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	go func() {
		select {
		case <-s.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	c := http.NewResponseController(w)
	if err := errors.Join(c.SetReadDeadline(time.Time{}), c.SetWriteDeadline(time.Time{}), c.EnableFullDuplex()); err != nil {
		s.answer(w, r, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	to := json.NewEncoder(w)
	to.SetEscapeHTML(false)
	err := tool(ctx, r.Body, func(value any) error {
		return to.Encode(toolMessage[any]{Line: value})
	}, func(progress string) {
		_ = to.Encode(toolMessage[any]{Progress: progress}) // NB: an error means that the command has gone; the context says so
		_ = c.Flush()
	})
	last := toolMessage[any]{Done: true}
	if err != nil {
		last = toolMessage[any]{Error: &errorReply{Error: mappingOf(err).label, Message: err.Error()}}
	}
	_ = to.Encode(last)
}
