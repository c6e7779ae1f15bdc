// Package fanout asks the nodes that lead the shards for what a list has of them, and merges what they answer.
//
//	asked node ── question, some shards ──► their leader: reads one moment of them, in the order of the list
//	     ▲                                       │
//	     └────────── items in order, an end ─────┘
//
// A Kind is a list that is asked in this way: every node registers the same ones (NewKind), and has Answer carry out the
// questions of others. Merge asks, each leader once; its own shards a node reads without any encoding. The reader of a
// Kind sees to it that what it reads has everything that was acknowledged before, and that it still has the shards at the
// moment that it reads. A standalone node has no use for a Service: it reads its own store.
//
// DESIGN.md has the reasons.
package fanout

import (
	"bufio"
	"bytes"
	"context"
	"encoding"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"troupe/actors/failure"
	"troupe/persistence/key"
)

// Peers reaches the nodes of a cluster.
type Peers interface {
	// Leader returns the node that leads a shard; "" when it is this one. It waits until there is one, or returns
	// failure.ErrUnavailable when ctx ends. A leader that is known is returned even when ctx has ended before.
	Leader(ctx context.Context, sh key.Shard) (node string, err error)
	// Ask has another node answer a question by Service.Answer, and returns the answer, which must be closed. It ends with
	// io.EOF only when all of it has come. The error is failure.ErrUnavailable.
	Ask(ctx context.Context, node string, question []byte) (answer io.ReadCloser, err error)
}

// Rules are what a node goes by when it decides what a caller may see.
type Rules interface {
	// Known says which these are: a later number has all of an earlier one.
	Known() uint64
	// CatchUp returns when this node knows what another one does, or failure.ErrUnavailable while it cannot.
	CatchUp(known uint64) error
}

// Service is a node's part. Its methods are safe for concurrent use, after the last NewKind.
type Service struct {
	peers  Peers
	rules  Rules
	shards []key.Shard
	kinds  map[string]answer
}

// New returns a service for so many numbered shards.
func New(peers Peers, rules Rules, shards uint16) *Service {
	s := &Service{peers: peers, rules: rules, kinds: map[string]answer{}}
	for sh := range key.Shard(shards) {
		s.shards = append(s.shards, sh)
	}
	return s
}

type answer func(ctx context.Context, q *question, to *pieces) error

// question is what a node is asked, as JSON.
type question struct {
	Kind   string          `json:"kind"`
	Known  uint64          `json:"known"` // of the rules of the node that asks
	Shards []key.Shard     `json:"shards"`
	Of     json.RawMessage `json:"of"`
}

// Answer carries out a question of another node. What it writes to out leaves with the next flush at the latest. After an
// error the answer is not whole, and is to be broken off.
func (s *Service) Answer(ctx context.Context, text []byte, out io.Writer, flush func() error) error {
	q := &question{}
	if err := json.Unmarshal(text, q); err != nil {
		return failure.Errorf(failure.ErrInvalid, "a question: %w", err)
	}
	answer := s.kinds[q.Kind]
	if answer == nil || len(q.Shards) == 0 {
		return failure.Errorf(failure.ErrInvalid, "a question of the kind %q for %d shards", q.Kind, len(q.Shards))
	}
	return answer(ctx, q, &pieces{out: out, flush: flush})
}

// Read reads what a list has in some shards: it calls yield with each item in the list's order, and returns what is to be
// said at the end. All of it is of one moment, which has everything that was acknowledged before. What yield is given is
// its own. The error is failure.ErrNotLeader or failure.ErrUnavailable where the shards cannot be read here.
type Read[In, Item, End any] func(ctx context.Context, shards []key.Shard, in *In, yield func(Item) error) (End, error)

// Kind is a list that is asked of the leaders. In and End travel as JSON, and so does an Item without
// encoding.BinaryAppender.
type Kind[In, Item, End any] struct {
	service *Service
	name    string
	read    Read[In, Item, End]
	// Live sends each item at once: more may come late. It is set before the first question.
	Live bool
}

// NewKind registers how the node answers for its shards. Names are those of the interface between nodes.
func NewKind[In, Item, End any](s *Service, name string, read Read[In, Item, End]) *Kind[In, Item, End] {
	k := &Kind[In, Item, End]{service: s, name: name, read: read}
	s.kinds[name] = k.answer
	return k
}

// An answer is pieces, each with its length as a varint in front: a letter and what it names. Items come first, and then
// the end, or why there is none.
const (
	pieceItem  byte = 'i'
	pieceEnd   byte = 'e'
	pieceError byte = 'x'
)

// pieceMax bounds a piece. The largest are items with 16 MiB of history.
const pieceMax = 64 << 20

// pieces writes an answer.
type pieces struct {
	out   io.Writer
	flush func() error
	text  []byte // the newest, kept for its room
}

func (p *pieces) write(letter byte, text []byte) error {
	p.text = append(append(binary.AppendUvarint(p.text[:0], uint64(1+len(text))), letter), text...)
	_, err := p.out.Write(p.text)
	return err
}

func (k *Kind[In, Item, End]) answer(ctx context.Context, q *question, to *pieces) error {
	in := new(In)
	if err := json.Unmarshal(q.Of, in); err != nil {
		return failure.Errorf(failure.ErrInvalid, "a question of the kind %s: %w", q.Kind, err)
	}
	var end End
	err := k.service.rules.CatchUp(q.Known)
	if err == nil {
		end, err = k.read(ctx, q.Shards, in, func(item Item) error {
			text, err := itemText(item)
			if err == nil {
				err = to.write(pieceItem, text)
			}
			if err == nil && k.Live {
				err = to.flush()
			}
			return err
		})
	}
	var text []byte
	if err == nil {
		text, err = marshal(end)
	}
	if err != nil {
		return to.write(pieceError, ErrorText(err))
	}
	return to.write(pieceEnd, text)
}

func itemText(item any) ([]byte, error) {
	if of, ok := item.(encoding.BinaryAppender); ok {
		return of.AppendBinary(nil)
	}
	return marshal(item)
}

// marshal leaves what is JSON already as it is.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

func parseItem[Item any](text []byte) (item Item, err error) {
	if of, ok := any(&item).(encoding.BinaryUnmarshaler); ok {
		return item, of.UnmarshalBinary(bytes.Clone(text))
	}
	return item, json.Unmarshal(text, &item)
}

// sentError is a failure.Error as it travels. Its kind is a text, since nodes of two versions number kinds in two ways.
type sentError struct {
	Kind   string `json:"kind"`
	Reason string `json:"reason,omitempty"` // for the caller
	Cause  string `json:"cause"`            // for the log
	Shard  uint16 `json:"shard,omitempty"`
}

// ErrorText is an error as it travels between nodes.
func ErrorText(err error) []byte {
	of := failure.Of(err)
	text, _ := json.Marshal(sentError{of.Kind.Error(), of.Reason, err.Error(), of.Shard}) // texts and a number
	return text
}

// ParseError reads what ErrorText has written, on a node.
func ParseError(node string, text []byte) error {
	var sent sentError
	if err := json.Unmarshal(text, &sent); err != nil {
		return failure.Errorf(failure.ErrUnavailable, "node %s: %w", node, err)
	}
	of := &failure.Error{Kind: failure.ErrUnavailable, Reason: sent.Reason, Shard: sent.Shard, Op: "ask node", Subject: node, Cause: errors.New(sent.Cause)}
	for kind := failure.ErrInvalid; kind < failure.Kinds; kind++ {
		if kind.Error() == sent.Kind {
			of.Kind = kind
		}
	}
	return of
}

// ask has another node read some shards.
func (k *Kind[In, Item, End]) ask(ctx context.Context, node string, shards []key.Shard, in *In, yield func(Item) error) (end End, err error) {
	q := question{Kind: k.name, Known: k.service.rules.Known(), Shards: shards}
	if q.Of, err = json.Marshal(in); err != nil {
		return end, failure.Errorf(failure.ErrInternal, "%w", err)
	}
	text, err := json.Marshal(q)
	if err != nil {
		return end, failure.Errorf(failure.ErrInternal, "%w", err)
	}
	answer, err := k.service.peers.Ask(ctx, node, text)
	if err != nil {
		return end, err
	}
	defer func() { _ = answer.Close() }() // it was read to its end, or is given up
	from := pieceReader{from: bufio.NewReaderSize(answer, roomBytes), room: make([]byte, roomBytes)}
	for {
		letter, text, err := from.next()
		if err != nil {
			return end, failure.Errorf(failure.ErrUnavailable, "node %s: %w", node, err)
		}
		switch letter {
		case pieceItem:
			item, err := parseItem[Item](text)
			if err != nil {
				return end, failure.Errorf(failure.ErrUnavailable, "node %s: %w", node, err)
			}
			if err := yield(item); err != nil {
				return end, err
			}
		case pieceError:
			return end, ParseError(node, text)
		default:
			if err = json.Unmarshal(text, &end); err == nil {
				err = from.over()
			}
			if err != nil {
				return end, failure.Errorf(failure.ErrUnavailable, "node %s: %w", node, err)
			}
			return end, nil
		}
	}
}

// roomBytes is how much of an answer is read at a time, and has room for most pieces.
const roomBytes = 16 << 10

type pieceReader struct {
	from *bufio.Reader
	room []byte
}

// next returns the next piece, whose text is valid until the next call.
func (r *pieceReader) next() (letter byte, text []byte, err error) {
	length, err := binary.ReadUvarint(r.from)
	if err != nil {
		return 0, nil, fmt.Errorf("the answer has no end: %w", err)
	}
	if length == 0 || length > pieceMax {
		return 0, nil, fmt.Errorf("a piece of %d bytes", length)
	}
	if length > uint64(len(r.room)) {
		r.room = make([]byte, length)
	}
	text = r.room[:length]
	if _, err = io.ReadFull(r.from, text); err != nil {
		return 0, nil, fmt.Errorf("the answer has no end: %w", err)
	}
	if letter = text[0]; letter != pieceItem && letter != pieceEnd && letter != pieceError {
		err = fmt.Errorf("a piece %q", letter)
	}
	return letter, text[1:], err
}

// over is nil at the end of the answer.
func (r *pieceReader) over() error {
	_, err := r.from.ReadByte()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err == nil:
		return errors.New("an answer that goes on behind its end")
	}
	return err
}
