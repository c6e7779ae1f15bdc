package replica

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.etcd.io/raft/v3/raftpb"

	"troupe/persistence/clocktest"
	entries "troupe/persistence/replica/internal/entry"
)

// TestTranscripts holds what testdata/rows says of a log and a state over rows in memory. What answers nothing stands
// only in the story. -rewrite writes the answers again.
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
		if l, err = openLog(s.m, []byte("log "), s.state.published); err == nil {
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
		write(func(b Batch) { s.log.trim(b, n[0], 0, 0, false) })
	case "spare": // applied=N everywhere=N
		write(func(b Batch) { s.log.trim(b, n[0], n[1], math.MaxInt64, false) })
	case "outgrown": // everywhere=N bytes=N
		return fmt.Sprint(s.log.outgrown(n[0], int64(n[1])))
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
		e.Data = entries.Begin()
	case "writes":
		var sets []string
		for _, set := range entry[3:] {
			sets = append(sets, strings.Replace(set, "=", "", 1))
		}
		e.Data = packedOf(n[1], n[2], sets...)
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

// TestANodeThatWasJustMetIsAlive: it may lead, and others must not stand for election before it can have said that it is alive.
func TestANodeThatWasJustMetIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &Host{o: HostOptions{Node: "here", Tick: time.Second}}
		h.mu.names, h.mu.heard, h.mu.runs = map[uint64]string{}, map[uint64]time.Time{}, map[uint64]uint64{}
		there := raftID("there")
		assert.False(t, h.alive(there), "a node that nobody has met")
		h.meet("there", 1)
		assert.True(t, h.alive(there), "a node that was just met")
		clocktest.Advance(time.Second)
		h.meet("there", 1)
		assert.False(t, h.alive(there), "one that says nothing, in another stream")
	})
}

// FuzzACopyFromAnotherNode: whatever a node sends as the rows of a shard is refused, or has a position and members.
func FuzzACopyFromAnotherNode(f *testing.F) {
	row := func(dst []byte, key string, value []byte) []byte {
		dst = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(dst, uint32(len(key))), uint32(len(value)))
		return append(append(dst, key...), value...)
	}
	whole := row(nil, "state m", members{Voters: []string{"A"}}.encode())
	whole = row(whole, "state p", position{applied: 5, epoch: 4, term: 2}.encode())
	whole = row(whole, "state q", []byte("value"))
	f.Add(row(whole, "", nil))
	f.Add(whole)
	f.Add(row(row(nil, "state p", []byte{5}), "", nil))
	f.Fuzz(func(t *testing.T, sent []byte) {
		m := newMemory()
		s, err := openState(m, []byte("state "), nil)
		require.NoError(t, err)
		g := &Group{state: s, host: &Host{}}
		g.host.mu.names = map[uint64]string{}
		rows, err := m.Replace()
		require.NoError(t, err)
		if _, err := g.readRows(bytes.NewReader(sent), rows, func() {}); err != nil {
			return
		}
		require.NoError(t, rows.Commit())
		there, err := openState(m, []byte("state "), nil)
		assert.True(t, err == nil && there.at.applied > 0 && len(there.members.Voters) > 0, "nobody can start on what is there: %v", err)
	})
}

// TestAChangeOfTheMembersSaysWhatIsConfirmed: after a crash a node with the change must know that the one before it is
// confirmed, though its rows have lost that, or a node would vote for it that has no vote any more.
func TestAChangeOfTheMembersSaysWhatIsConfirmed(t *testing.T) {
	m := newMemory()
	m.rows["log h"] = string(append(binary.BigEndian.AppendUint64(nil, 2), make([]byte, 8)...))
	shown := func() (position, members) { return position{}, members{Voters: []string{"A"}} }
	commit := func() uint64 {
		l, err := openLog(m, []byte("log "), shown)
		require.NoError(t, err)
		hard, _, err := l.InitialState()
		require.NoError(t, err)
		return hard.GetCommit()
	}
	entry := func(index uint64, kind raftpb.EntryType) *raftpb.Message {
		return &raftpb.Message{Term: new(uint64(2)), Vote: new(uint64(0)), Commit: new(index - 1), Entries: []*raftpb.Entry{{Index: new(index), Term: new(uint64(2)), Type: kind.Enum()}}}
	}
	l, err := openLog(m, []byte("log "), shown)
	require.NoError(t, err)
	for i, kind := range []raftpb.EntryType{raftpb.EntryConfChangeV2, raftpb.EntryNormal, raftpb.EntryConfChangeV2, raftpb.EntryNormal} {
		require.NoError(t, m.Write(Lazy, func(b Batch) { l.append(b, entry(uint64(i+1), kind)) }))
	}
	assert.Equal(t, uint64(2), commit(), "what was confirmed at the second change")
	require.NoError(t, m.Write(Lazy, func(b Batch) { l.restart(b, raftEntry{9, 2}) }))
	assert.NotContains(t, m.rows, "log k", "the row of a log that is no more")
}

// TestACopyThatWasGivenUpIsForgotten: with the row of it, a log that does not fit would not count as damage.
func TestACopyThatWasGivenUpIsForgotten(t *testing.T) {
	m := newMemory()
	m.rows["log c"] = ""
	_, err := openLog(m, []byte("log "), func() (position, members) { return position{}, members{} })
	require.NoError(t, err)
	assert.NotContains(t, m.rows, "log c")
}
