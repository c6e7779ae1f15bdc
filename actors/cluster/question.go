package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"

	"troupe/actors/failure"
	"troupe/persistence/key"
)

// A question is a call whose answer comes in frames, each with its length in four bytes in front, and a last one of no
// length: what ends without that was cut off.
const (
	pathAsk        = pathPrefix + "ask"
	frameBytesMax  = 1 << 30
	frameRoomBytes = 32 << 10
)

// Questions has the node's part of package fanout.
type Questions struct{ *Node }

// Leader implements fanout.Peers.
func (q Questions) Leader(ctx context.Context, sh key.Shard) (string, error) {
	id, err := q.Node.Leader(ctx, sh)
	if err != nil || id == q.self {
		return "", err
	}
	return string(id), nil
}

// Ask implements fanout.Peers.
func (q Questions) Ask(ctx context.Context, node string, question []byte, visit func(frame []byte) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+node+pathAsk, bytes.NewReader(question))
	if err != nil {
		return failure.Errorf(failure.ErrInternal, "%w", err)
	}
	answer, err := q.port.RoundTrip(request)
	if err != nil {
		return failure.Errorf(failure.ErrUnavailable, "%w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, callBytesMax))
		return failure.Errorf(failure.ErrUnavailable, "node %s: %s", node, bytes.TrimSpace(text))
	}
	from, room := bufio.NewReader(answer.Body), make([]byte, frameRoomBytes)
	for {
		frame, err := readFrame(from, room)
		if err != nil {
			return failure.Errorf(failure.ErrUnavailable, "node %s: %w", node, err)
		}
		if len(frame) == 0 {
			return nil
		}
		if err := visit(frame); err != nil {
			return err
		}
	}
}

func readFrame(from io.Reader, room []byte) (frame []byte, err error) {
	var head [4]byte
	if _, err = io.ReadFull(from, head[:]); err != nil {
		return nil, fmt.Errorf("the answer ended early: %w", err)
	}
	length := binary.BigEndian.Uint32(head[:])
	if length > frameBytesMax {
		return nil, fmt.Errorf("a frame of %d bytes", length)
	}
	if int(length) > cap(room) {
		room = make([]byte, length)
	}
	_, err = io.ReadFull(from, room[:length])
	return room[:length], err
}

// HandleQuestions has the questions of other nodes answered. What answer returns an error for is cut off.
func (n *Node) HandleQuestions(answer func(ctx context.Context, question []byte, send func(frame []byte) error) error) {
	n.mux.HandleFunc("POST "+pathAsk, func(w http.ResponseWriter, r *http.Request) {
		if !n.started.Load() {
			writeError(w, failure.Refuse(failure.ErrUnavailable, "the node is starting"))
			return
		}
		question, err := io.ReadAll(http.MaxBytesReader(w, r.Body, callBytesMax))
		if err != nil {
			http.Error(w, "the question cannot be read: "+err.Error(), http.StatusBadRequest)
			return
		}
		out := http.NewResponseController(w)
		send := func(frame []byte) error {
			_, err := w.Write(binary.BigEndian.AppendUint32(nil, uint32(len(frame)))) //nolint:gosec // a frame is in memory
			if err == nil {
				_, err = w.Write(frame)
			}
			return errors.Join(err, out.Flush())
		}
		if err := answer(r.Context(), question, send); err != nil {
			panic(http.ErrAbortHandler)
		}
		_ = send(nil) // who asked has left
	})
}
