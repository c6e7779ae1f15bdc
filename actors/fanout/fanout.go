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
	"bytes"
	"context"
	"encoding"
	"encoding/binary"
	"encoding/json"
	"errors"

	"troupe/actors/failure"
	"troupe/persistence/key"
)

// Peers reaches the nodes of a cluster.
type Peers interface {
	// Leader returns the node that leads a shard; "" when it is this one. It waits until there is one, or returns
	// failure.ErrUnavailable when ctx ends.
	Leader(ctx context.Context, sh key.Shard) (node string, err error)
	// Ask has another node answer a question by Service.Answer, and calls visit with each frame, whose slice is valid
	// during the call. It returns visit's error, or failure.ErrUnavailable when the answer does not come to its end.
	Ask(ctx context.Context, node string, question []byte, visit func(frame []byte) error) error
}

// Service is a node's part. Its methods are safe for concurrent use, after the last NewKind.
type Service struct {
	peers  Peers
	shards []key.Shard
	kinds  map[string]answer
}

// New returns a service for so many numbered shards.
func New(peers Peers, shards uint16) *Service {
	s := &Service{peers: peers, kinds: map[string]answer{}}
	for sh := range key.Shard(shards) {
		s.shards = append(s.shards, sh)
	}
	return s
}

type answer func(ctx context.Context, q *question, send func(frame []byte) error) error

// question is what a node is asked, as JSON.
type question struct {
	Kind   string          `json:"kind"`
	Shards []key.Shard     `json:"shards"`
	Of     json.RawMessage `json:"of"`
}

// Answer carries out a question of another node. send gets each frame, whose slice is valid during the call.
func (s *Service) Answer(ctx context.Context, text []byte, send func(frame []byte) error) error {
	q := &question{}
	if err := json.Unmarshal(text, q); err != nil {
		return failure.Errorf(failure.ErrInvalid, "a question: %w", err)
	}
	answer := s.kinds[q.Kind]
	if answer == nil || len(q.Shards) == 0 {
		return failure.Errorf(failure.ErrInvalid, "a question of the kind %q for %d shards", q.Kind, len(q.Shards))
	}
	return answer(ctx, q, send)
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

// A frame is a letter and what it names: items, each with its length in front; or the end; or why there is none.
const (
	frameItems byte = 'i'
	frameEnd   byte = 'e'
	frameError byte = 'x'
)

// frameBytes is about how much is sent at a time.
const frameBytes = 16 << 10

func (k *Kind[In, Item, End]) answer(ctx context.Context, q *question, send func([]byte) error) error {
	in := new(In)
	if err := json.Unmarshal(q.Of, in); err != nil {
		return failure.Errorf(failure.ErrInvalid, "a question of the kind %s: %w", q.Kind, err)
	}
	frame := []byte{frameItems}
	flush := func() error {
		if len(frame) == 1 {
			return nil
		}
		err := send(frame)
		frame = frame[:1]
		return err
	}
	end, err := k.read(ctx, q.Shards, in, func(item Item) (err error) {
		if frame, err = appendItem(frame, item); err == nil && (k.Live || len(frame) >= frameBytes) {
			err = flush()
		}
		return err
	})
	if err == nil {
		err = flush()
	}
	var text []byte
	if err == nil {
		text, err = marshal(end)
	}
	if err != nil {
		return send(appendError([]byte{frameError}, err))
	}
	return send(append([]byte{frameEnd}, text...))
}

func appendItem(dst []byte, item any) ([]byte, error) {
	var text []byte
	var err error
	if of, ok := item.(encoding.BinaryAppender); ok {
		text, err = of.AppendBinary(nil)
	} else {
		text, err = marshal(item)
	}
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...), err
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

func appendError(dst []byte, err error) []byte {
	of := failure.Of(err)
	text, _ := json.Marshal(sentError{of.Kind.Error(), of.Reason, err.Error(), of.Shard}) // texts and a number
	return append(dst, text...)
}

func parseError(node string, text []byte) error {
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
	q := question{Kind: k.name, Shards: shards}
	if q.Of, err = json.Marshal(in); err != nil {
		return end, failure.Errorf(failure.ErrInternal, "%w", err)
	}
	text, err := json.Marshal(q)
	if err != nil {
		return end, failure.Errorf(failure.ErrInternal, "%w", err)
	}
	ended := false
	err = k.service.peers.Ask(ctx, node, text, func(frame []byte) error {
		if len(frame) == 0 || ended {
			return failure.Errorf(failure.ErrUnavailable, "node %s: a frame that cannot be", node)
		}
		rest := frame[1:]
		switch frame[0] {
		case frameItems:
			return eachItem(node, rest, yield)
		case frameEnd:
			ended = true
			if err := json.Unmarshal(rest, &end); err != nil {
				return failure.Errorf(failure.ErrUnavailable, "node %s: %w", node, err)
			}
			return nil
		}
		return parseError(node, rest)
	})
	if err == nil && !ended {
		err = failure.Errorf(failure.ErrUnavailable, "node %s: the answer has no end", node)
	}
	return end, err
}

func eachItem[Item any](node string, rest []byte, yield func(Item) error) error {
	for len(rest) > 0 {
		length, n := binary.Uvarint(rest)
		if n <= 0 || length > uint64(len(rest)-n) {
			return failure.Errorf(failure.ErrUnavailable, "node %s: items that cannot be read", node)
		}
		item, err := parseItem[Item](rest[n : n+int(length)]) //nolint:gosec // at most len(rest)
		if err != nil {
			return failure.Errorf(failure.ErrUnavailable, "node %s: %w", node, err)
		}
		if err := yield(item); err != nil {
			return err
		}
		rest = rest[n+int(length):] //nolint:gosec // at most len(rest)
	}
	return nil
}
