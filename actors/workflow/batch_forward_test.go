package workflow_test

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"troupe/actors/failure"
	"troupe/actors/message"
	"troupe/actors/workflow"
	"troupe/actors/workflow/batch"
)

// scripted is a router whose requests are answered when the test says so. What it leads nothing of
// is elsewhere.
type scripted struct {
	elsewhere bool
	shardOf   map[string]uint16 // by instance; 3 for others
	onPost    func()            // nil: nothing
	posted    []message.Recipient
	names     []string
}

func (s *scripted) PostEvent(e *message.Event, to message.Recipient) (workflow.Posted, error) {
	if s.elsewhere {
		return workflow.Posted{}, failure.Elsewhere(cmp.Or(s.shardOf[e.InstanceID], 3))
	}
	if s.onPost != nil {
		s.onPost()
	}
	s.posted, s.names = append(s.posted, to), append(s.names, e.Name)
	return workflow.Posted{}, nil
}

func (s *scripted) PostCreate(*message.Create, message.Recipient) (workflow.Posted, error) {
	return workflow.Posted{}, failure.Elsewhere(3)
}

// forwarded is a forwarder that keeps what it gets.
type forwarded struct {
	items [][]*batch.Item
	ends  []func(bool)
	of    map[uint16]func(bool) // the last end of a shard
}

func (p *forwarded) Forward(shard uint16, items []*batch.Item, end func(bool)) {
	p.items, p.ends = append(p.items, items), append(p.ends, end)
	p.of[shard] = end
}

func (p *forwarded) String() string {
	var all []string
	for _, items := range p.items {
		names := ""
		for _, m := range items {
			names += string(m.Text)
		}
		all = append(all, names)
	}
	return strings.Join(all, " ")
}

// TestForwarding plays testdata/forward: each command is a batch, alone where nobody forwards, and its lines are what happens. An answer stands
// behind its line:
//
//	send INSTANCE LETTERS   an event for each letter; keyed INSTANCE [KEY]: one with a key
//	elsewhere [y=SHARD]     from now on another node leads the instances; here: this one does
//	look                    whoever reads the answers does; forwarded, posted and results show what has become of the items
//	begin N [LIFE]          the actor begins what was posted as the Nth, in a life of the instance; reply N SEQUENCE|elsewhere answers it
//	back N, end N           the Nth part comes back, or has ended; back-of SHARD: the last one of a shard; done N: all is answered, and it has ended
//	item N M TEXT [ERROR]   the Mth item of a part is answered; lost N: which of its items may be sent again, not-done N: that
//	on-post SHARD           at the next post the last part of a shard comes back
func TestForwarding(t *testing.T) {
	datadriven.Walk(t, "testdata/forward", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, cmd *datadriven.TestData) string {
			s, p := &scripted{}, &forwarded{of: map[uint16]func(bool){}}
			b := batch.New(s, p)
			if cmd.HasArg("alone") {
				b = batch.New(s, nil)
			}
			out := ""
			for line := range strings.Lines(cmd.Input) {
				line = strings.TrimSpace(line)
				if text := forwarding(t, b, s, p, strings.Fields(line)); text != "" {
					out += line + ": " + text + "\n"
				}
			}
			return out
		})
	})
}

var answers = map[string]error{"unknown": failure.ErrOutcomeUnknown, "unavailable": failure.ErrUnavailable, "elsewhere": failure.Elsewhere(3)}

func forwarding(t *testing.T, b *batch.Batch, s *scripted, p *forwarded, words []string) string {
	at := func(k int) string { return append(words, "", "", "", "")[k] }
	n, _ := strconv.Atoi(at(1))
	switch words[0] {
	case "send":
		for _, name := range at(2) {
			b.Event(&message.Event{WorkflowID: "leave", InstanceID: at(1), Name: string(name)}, []byte(string(name)))
		}
	case "keyed":
		b.Event(&message.Event{WorkflowID: "leave", InstanceID: at(1), Retry: message.Retry{Key: at(2)}}, []byte("k"))
	case "elsewhere", "here":
		s.elsewhere = words[0] == "elsewhere"
		if shard, ok := strings.CutPrefix(at(1), "y="); ok {
			n, _ := strconv.ParseUint(shard, 10, 16)
			s.shardOf = map[string]uint16{"y": uint16(n)}
		}
	case "look":
		b.Ready(false)
	case "forwarded":
		return p.String()
	case "posted":
		return strings.Join(s.names, "")
	case "results":
		return batchResults(t, b)
	case "begin":
		turn := message.Turn{Shard: 3}
		if at(2) != "" {
			turn.Life = at(2)
		}
		if err := s.posted[n].Begin(turn); err != nil {
			s.posted[n].Answered(nil, err) // which ends it
			return "not begun"
		}
	case "reply":
		sequence, err := strconv.ParseUint(at(2), 10, 64)
		if err != nil {
			s.posted[n].Answered(nil, answers[at(2)])
			return ""
		}
		s.posted[n].Answered(&message.Reply{Sequence: sequence}, nil)
	case "back", "end":
		p.ends[n](words[0] == "back")
	case "back-of":
		p.of[uint16(n)](true)
	case "done":
		for _, m := range p.items[n] {
			m.AnsweredBy([]byte("done-"+string(m.Text)), nil)
		}
		p.ends[n](false)
	case "item":
		m, _ := strconv.Atoi(at(2))
		p.items[n][m].AnsweredBy([]byte(at(3)), answers[at(4)])
	case "lost", "not-done":
		var of []string
		for _, m := range p.items[n] {
			of = append(of, fmt.Sprint(words[0] == "lost" && m.Lost() || words[0] == "not-done" && m.NotDone()))
		}
		return strings.Join(of, " ")
	case "on-post":
		s.onPost = func() {
			s.onPost = nil
			p.of[uint16(n)](true)
		}
	default:
		t.Fatalf("unknown line %q", words)
	}
	return ""
}
