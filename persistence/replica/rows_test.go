package replica

import (
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"
)

// TestTranscripts holds what testdata/rows says of a log and a state over rows in memory. What answers nothing stands
// only in the story. -rewrite writes the answers anew.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/rows/*.txt")
	require.True(t, err == nil && len(files) > 0, "%v %v", files, err)
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				s := &story{t: t, m: newMemory()}
				require.NoError(t, s.restart())
				var answers strings.Builder
				for line := range strings.Lines(d.Input) {
					line = strings.TrimSpace(line)
					words := strings.Fields(line)
					if answer := s.do(words[0], words[1:]); answer != "" {
						fmt.Fprintf(&answers, "%s: %s\n", line, answer)
					}
				}
				return answers.String()
			})
		})
	}
}

// story is the log and the state of a shard. Its methods are the words of the transcripts.
type story struct {
	t     *testing.T
	m     *memory
	log   *raftLog
	state *state
}

// fatal is the panic of a state that would end the process.
type fatal string

// restart reads what there is as a process that starts does.
func (s *story) restart() (err error) {
	if s.state, err = openState(s.m, []byte("state "), func(reason string) { panic(fatal(reason)) }); err == nil {
		var l *raftLog
		if l, err = openLog(s.m, []byte("log "), s.state); err == nil {
			s.log = l
		}
	}
	return err
}

func said(err error) string {
	if err == nil {
		return "ok"
	}
	return err.Error()
}

// numbers are those of words, which may say what they are: term=1.
func numbers(args []string) (all []uint64) {
	for _, arg := range args {
		n, _ := strconv.ParseUint(arg[strings.IndexByte(arg, '=')+1:], 10, 64)
		all = append(all, n)
	}
	return all
}

func (s *story) do(word string, args []string) string {
	n := numbers(args)
	write := func(fill func(Batch)) { require.NoError(s.t, s.m.Write(Synced, fill)) }
	switch word {
	case "append": // term=N, and the indexes of entries
		m := &raftpb.Message{Term: new(n[0]), Vote: new(uint64(1))}
		for _, index := range n[1:] {
			m.Entries = append(m.Entries, &raftpb.Entry{Index: new(index), Term: new(n[0]), Data: fmt.Appendf(nil, "%d of %d", index, n[0])})
		}
		write(func(b Batch) { s.log.append(b, m) })
	case "trim": // applied=N: the first half, as far as that
		write(func(b Batch) { s.log.trim(b, n[0]) })
	case "restarted": // behind=N term=N
		write(func(b Batch) { s.log.restart(b, raftEntry{n[0], n[1]}) })
	case "hard": // state: term and vote are there
		write(func(b Batch) { s.log.append(b, &raftpb.Message{Term: new(uint64(1)), Vote: new(uint64(1))}) })
	case "copying":
		write(func(b Batch) { b.Set(s.log.rowKey('c'), nil) })
	case "log":
		return terms(s.t, s.log)
	case "term":
		term, err := s.log.Term(n[0])
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(term)
	case "damage": // the row of an entry, or of the log
		row := string(s.log.key(max(n[0], 1)))
		if n[0] == 0 {
			row = string(s.log.rowKey(args[0][0]))
		}
		switch args[1] {
		case "gone":
			delete(s.m.rows, row)
		case "short":
			s.m.rows[row] = "short"
		case "long":
			s.m.rows[row+"x"] = s.m.rows[row]
		}
	case "restart":
		bytes := s.log.size()
		_, copying := s.m.rows["log c"]
		err := s.restart()
		assert.True(s.t, err != nil || copying || bytes == s.log.size(), "the log counts %d bytes, and %d after a start", bytes, s.log.size())
		return said(err)
	case "apply":
		return s.apply(n[0], n[1], args[2:])
	case "row":
		return s.m.rows["row "+args[0]]
	case "at":
		p := s.state.at
		return fmt.Sprintf("applied %d, epoch %d, revision %d, term %d", p.applied, p.epoch, p.revision, p.term)
	case "rows": // of the shard are those of a copy: applied=N term=N
		s.m.rows["state p"] = string(position{applied: n[0], term: n[1]}.encode())
		s.m.rows["state m"] = "{}"
	default:
		s.t.Fatalf("there is no word %q", word)
	}
	return ""
}

// terms is the log as text: first index, and the term of each entry.
func terms(t *testing.T, l *raftLog) string {
	t.Helper()
	first, _ := l.FirstIndex()
	last, _ := l.LastIndex()
	text := fmt.Sprint(first, ":")
	for i := first; i <= last; i++ {
		got, err := l.Entries(i, i+1, 0)
		require.NoError(t, err, "entry %d", i)
		term, err := l.Term(i)
		require.NoError(t, err)
		require.True(t, got[0].GetIndex() == i && got[0].GetTerm() == term && string(got[0].GetData()) == fmt.Sprintf("%d of %d", i, term), "entry %d is %v", i, got[0])
		text += fmt.Sprint(" ", term)
	}
	return text
}

// apply applies an entry of a term: first, epoch, writes epoch=N after=N ROW=VALUE …, or bytes.
func (s *story) apply(index, term uint64, entry []string) (answer string) {
	n := numbers(entry)
	e := &raftpb.Entry{Index: new(index), Term: new(term)}
	switch entry[0] {
	case "first":
	case "epoch":
		e.Data = []byte{entryVersion, kindEpoch}
	case "writes":
		var sets []string
		for _, set := range entry[3:] {
			sets = append(sets, strings.Replace(set, "=", "", 1))
		}
		e.Data = writesOf(n[1], n[2], sets...)
	default:
		e.Data, _ = hex.DecodeString(strings.Join(entry[1:], ""))
	}
	defer func() {
		if reason := recover(); reason != nil {
			answer = fmt.Sprint("the process ends: ", reason.(fatal))
		}
	}()
	stale, revision := s.state.stale.Load(), s.state.at.revision
	a := applying{m: &raftpb.Message{Entries: []*raftpb.Entry{e}}}
	require.NoError(s.t, s.m.Write(Lazy, func(b Batch) {
		s.state.fill(b, &a)
		b.Set(s.state.people, s.state.members.encode())
	}))
	switch {
	case s.state.stale.Load() != stale:
		return "passed over"
	case s.state.at.epoch == index:
		return fmt.Sprintf("epoch %d begins", index)
	case s.state.at.revision != revision:
		return "applied"
	}
	return "nothing"
}

// TestAMessageComesAsItWasSent: every message that Raft sends between nodes.
func TestAMessageComesAsItWasSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.Uint64Max(3), rapid.Uint64Max(1<<62)) // NB: an index has room behind it
		bytes := rapid.SliceOfN(rapid.Byte(), 0, 5)
		data := func(label string) []byte {
			if b := bytes.Draw(t, label); len(b) > 0 {
				return b
			}
			return nil
		}
		kinds := []raftpb.MessageType{
			raftpb.MsgApp, raftpb.MsgAppResp, raftpb.MsgVote, raftpb.MsgVoteResp, raftpb.MsgHeartbeat, raftpb.MsgHeartbeatResp, raftpb.MsgTransferLeader,
			raftpb.MsgTimeoutNow, raftpb.MsgReadIndex, raftpb.MsgReadIndexResp, raftpb.MsgPreVote, raftpb.MsgPreVoteResp,
		}
		want := &raftpb.Message{
			Type: rapid.SampledFrom(kinds).Draw(t, "type").Enum(), Term: new(number.Draw(t, "term") + 1), LogTerm: new(uint64(0)),
			Index: new(number.Draw(t, "index")), Commit: new(number.Draw(t, "commit")), Vote: new(number.Draw(t, "vote")),
			RejectHint: new(number.Draw(t, "hint")), Reject: new(rapid.Bool().Draw(t, "reject")), Context: data("context"),
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "entries") {
			want.Entries = append(want.Entries, &raftpb.Entry{
				Index: new(want.GetIndex() + 1 + uint64(i)), Term: new(want.GetTerm()), Data: data("data"),
				Type: rapid.SampledFrom([]raftpb.EntryType{raftpb.EntryNormal, raftpb.EntryConfChange, raftpb.EntryConfChangeV2}).Draw(t, "kind").Enum(),
			})
		}
		encoded := appendMessage(nil, 7, want)
		shard, got, err := decodeMessage(encoded[4:])
		if err != nil || shard != 7 || !proto.Equal(want, got) {
			t.Fatalf("%v\nwas sent, and %v\ncame of shard %d: %v", want, got, shard, err)
		}
		for end := range len(encoded) - 4 {
			if _, _, err := decodeMessage(encoded[4 : 4+end]); err == nil {
				t.Fatalf("%d of %d bytes are a message", end, len(encoded)-4)
			}
		}
	})
}

// TestMessagesThatRaftWouldPanicAtAreRefused: another node must not be able to end this one.
func TestMessagesThatRaftWouldPanicAtAreRefused(t *testing.T) {
	for what, m := range map[string]*raftpb.Message{
		"one of this node to itself": {Type: raftpb.MsgStorageAppend.Enum(), Term: new(uint64(2))},
		"a proposal":                 {Type: raftpb.MsgProp.Enum(), Term: new(uint64(2))},
		"a copy":                     {Type: raftpb.MsgSnap.Enum(), Term: new(uint64(2))},
		"an unknown one":             {Type: raftpb.MessageType(99).Enum(), Term: new(uint64(2))},
		"one of no term":             {Type: raftpb.MsgApp.Enum()},
		"an entry of a later term":   {Type: raftpb.MsgApp.Enum(), Term: new(uint64(2)), Entries: []*raftpb.Entry{{Term: new(uint64(3))}}},
		"an entry of an unknown type": {
			Type: raftpb.MsgApp.Enum(), Term: new(uint64(2)), Entries: []*raftpb.Entry{{Term: new(uint64(2)), Type: raftpb.EntryType(9).Enum()}},
		},
		"terms that go back": {Type: raftpb.MsgApp.Enum(), Term: new(uint64(2)), LogTerm: new(uint64(2)), Entries: []*raftpb.Entry{{Term: new(uint64(1))}}},
	} {
		_, _, err := decodeMessage(appendMessage(nil, 1, m)[4:])
		assert.Error(t, err, what)
	}
}

// FuzzDecodeMessage: what another node sends is refused or a message that can be sent again.
func FuzzDecodeMessage(f *testing.F) {
	f.Add(appendMessage(nil, 1, &raftpb.Message{Type: raftpb.MsgApp.Enum(), Term: new(uint64(2)), Entries: []*raftpb.Entry{{Term: new(uint64(2)), Data: []byte("data")}}})[4:])
	f.Fuzz(func(t *testing.T, b []byte) {
		shard, m, err := decodeMessage(b)
		if err != nil {
			return
		}
		again, same, err := decodeMessage(appendMessage(nil, shard, m)[4:])
		assert.True(t, err == nil && again == shard && proto.Equal(m, same), "%v became %v: %v", m, same, err)
	})
}
