package mesh

import (
	"encoding/binary"
	"errors"
	"fmt"

	"go.etcd.io/raft/v3/raftpb"
)

// appendMessage adds a message, behind its length: shard (2 bytes), type (1), reject (1), and as uvarints term, log term,
// index, commit, vote, reject hint, length of the context, the context, number of entries; each entry has its term, type
// and the length of its data, as uvarints, and the data. Their indexes follow that of the message.
func appendMessage(dst []byte, shard uint16, m *raftpb.Message) []byte {
	start := len(dst)
	dst = binary.BigEndian.AppendUint16(append(dst, 0, 0, 0, 0), shard)
	reject := byte(0)
	if m.GetReject() {
		reject = 1
	}
	dst = append(dst, byte(m.GetType()), reject)
	for _, n := range []uint64{m.GetTerm(), m.GetLogTerm(), m.GetIndex(), m.GetCommit(), m.GetVote(), m.GetRejectHint(), uint64(len(m.GetContext()))} {
		dst = binary.AppendUvarint(dst, n)
	}
	dst = append(dst, m.GetContext()...)
	dst = binary.AppendUvarint(dst, uint64(len(m.GetEntries())))
	for _, e := range m.GetEntries() {
		dst = binary.AppendUvarint(dst, e.GetTerm())
		dst = binary.AppendUvarint(dst, uint64(e.GetType()))
		dst = binary.AppendUvarint(dst, uint64(len(e.GetData())))
		dst = append(dst, e.GetData()...)
	}
	binary.BigEndian.PutUint32(dst[start:], uint32(len(dst)-start-4))
	return dst
}

// entryBytesMin is how many bytes an entry has at least in a message.
const entryBytesMin = 3

// termMax leaves room for the terms to come.
const termMax = 1 << 62

var errMessage = errors.New("a message cannot be read")

// received and receivedEntry are messages and entries in one piece with what they point to.
type received struct {
	raftpb.Message
	kind    raftpb.MessageType
	reject  bool
	numbers [6]uint64
}

type receivedEntry struct {
	raftpb.Entry
	index, term uint64
	kind        raftpb.EntryType
}

// decodeMessage reads a message, whose data it keeps. What Raft would panic at is refused.
func decodeMessage(b []byte) (shard uint16, m *raftpb.Message, err error) {
	if len(b) < 4 {
		return 0, nil, errMessage
	}
	shard, kind, reject := binary.BigEndian.Uint16(b), raftpb.MessageType(b[2]), b[3] != 0
	d := decoder{b: b[4:]}
	read := &received{kind: kind, reject: reject}
	m = &read.Message
	m.Type, m.Reject = &read.kind, &read.reject
	for i, to := range []**uint64{&m.Term, &m.LogTerm, &m.Index, &m.Commit, &m.Vote, &m.RejectHint} {
		read.numbers[i] = d.number()
		*to = &read.numbers[i]
	}
	m.Context = d.bytes()
	count := d.number()
	if count > uint64(len(d.b))/entryBytesMin {
		return 0, nil, errMessage
	}
	if count > 0 {
		m.Entries = make([]*raftpb.Entry, count)
	}
	entries, term := make([]receivedEntry, count), m.GetLogTerm()
	for i := range entries {
		e := &entries[i]
		e.index, e.term, e.kind = m.GetIndex()+1+uint64(i), d.number(), raftpb.EntryType(d.number())
		e.Index, e.Term, e.Type, e.Data = &e.index, &e.term, &e.kind, d.bytes()
		if e.term < term || e.term > m.GetTerm() || e.kind > raftpb.EntryConfChangeV2 {
			return 0, nil, errMessage
		}
		term = e.term
		m.Entries[i] = &e.Entry
	}
	switch {
	case d.failed || len(d.b) > 0:
		return 0, nil, errMessage
	case !said(kind):
		return 0, nil, fmt.Errorf("%w: type %d", errMessage, kind)
	case m.GetTerm() == 0, m.GetTerm() > termMax, len(m.Context) != 0 && len(m.Context) != 8 && (kind == raftpb.MsgHeartbeat || kind == raftpb.MsgHeartbeatResp):
		return 0, nil, errMessage
	}
	return shard, m, nil
}

// said reports whether members of a group say such a thing to each other in a stream. NB: at what others only hand on, as
// questions whether this node leads, Raft panics when it is incomplete.
func said(kind raftpb.MessageType) bool {
	switch kind {
	case raftpb.MsgApp, raftpb.MsgAppResp, raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgPreVote, raftpb.MsgPreVoteResp,
		raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp, raftpb.MsgTimeoutNow:
		return true
	}
	return false
}

// decoder reads numbers and texts; failed says that something was missing.
type decoder struct {
	b      []byte
	failed bool
}

func (d *decoder) number() uint64 {
	n, size := binary.Uvarint(d.b)
	if size <= 0 {
		d.failed = true
		return 0
	}
	d.b = d.b[size:]
	return n
}

func (d *decoder) bytes() []byte {
	n := d.number()
	if n > uint64(len(d.b)) {
		d.failed = true
		return nil
	}
	if n == 0 {
		return nil
	}
	all := d.b[:n:n]
	d.b = d.b[n:]
	return all
}
