package workflow

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"troupe/actors/failure"
	"troupe/persistence"
	"troupe/statemachine/data"
	"troupe/statemachine/packed"
)

// replyDigest stands for a caller and an idempotency key.
type replyDigest [16]byte

func digestOf(user, key string) replyDigest {
	sum := sha256.Sum256(append(append([]byte(user), 0), key...))
	return replyDigest(sum[:16])
}

// storedReply is the first answer to a request with an idempotency key, without
// its history (gateway/INTERFACE.md, "Retries"). The rest is rebuilt from entries
// 1 to sequence.
type storedReply struct {
	fingerprint [32]byte
	instance    persistence.ID
	sequence    uint64
	at          int64 // when, in Unix ms
	head, tail  []byte
}

// replyFormat is the version of the stored form.
const replyFormat = 1

// append writes format(1) fingerprint(32) instance(16) sequence at head tail.
func (s *storedReply) append(dst []byte) []byte {
	dst = append(dst, replyFormat)
	dst = append(dst, s.fingerprint[:]...)
	dst = append(dst, s.instance[:]...)
	dst = binary.AppendUvarint(dst, s.sequence)
	dst = binary.AppendVarint(dst, s.at)
	return append(packed.AppendText(dst, s.head), s.tail...)
}

// parseStoredReply reads what append wrote; its slices alias b.
func parseStoredReply(b []byte) (*storedReply, error) {
	r := packed.NewReader(b)
	if r.Byte() != replyFormat {
		r.Fail()
	}
	s := &storedReply{}
	copy(s.fingerprint[:], r.Take(len(s.fingerprint)))
	copy(s.instance[:], r.Take(len(s.instance)))
	s.sequence, s.at = r.Uvarint(), r.Varint()
	s.head, s.tail = r.Text(), r.Rest()
	if !r.Whole() {
		return nil, failure.Errorf(failure.ErrExecution, "stored reply")
	}
	return s, nil
}

// firstAnswer reads what was stored under an idempotency row's key; nil when
// nothing was. failure.ErrKeyReused: it was the answer to another request.
func (r *Router) firstAnswer(key []byte, fingerprint [32]byte) (*storedReply, error) {
	value, err := r.store.Load(key)
	if errors.Is(err, persistence.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, failure.OfStore(err)
	}
	first, err := parseStoredReply(value)
	if err != nil {
		return nil, err
	}
	if first.fingerprint != fingerprint {
		return nil, failure.ErrKeyReused
	}
	return first, nil
}

// render writes the two parts of an instance record's JSON around its history.
func render(workflowID, instanceID string, public, private data.Value, states []byte, redirect string) (head, tail []byte) {
	size := len(public) + len(private) + len(states) + len(workflowID) + len(redirect) + 160
	b := make([]byte, 0, size)
	b = append(b, `"_id":"`...)
	b = append(b, instanceID...)
	b = append(b, `","workflowId":"`...)
	b = append(b, workflowID...)
	b = append(b, `","svcPublic":`...)
	b = append(b, public...)
	b = append(b, `,"svcPrivate":`...)
	b = append(b, private...)
	cut := len(b)
	b = append(b, `"states":`...)
	b = append(b, states...)
	if redirect != "" {
		b = append(b, `,"svcRedirect":`...)
		b = data.AppendString(b, redirect)
	}
	return b[:cut:cut], b[cut:]
}
