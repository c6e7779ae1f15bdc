package batch_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

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

// begin lets the actor begin a request, which ends it when it may not.
func (s *scripted) begin(i int) bool { return s.beginIn(i, nil) }

// beginIn is begin in a life of the instance.
func (s *scripted) beginIn(i int, life any) bool {
	err := s.posted[i].Begin(message.Turn{Shard: 3, Life: life})
	if err != nil {
		s.posted[i].Answered(nil, err)
	}
	return err == nil
}

// parts is a forwarder that keeps what it gets.
type parts struct {
	items [][]*batch.Item
	ends  []func(bool)
	of    map[uint16]func(bool) // the last end of a shard
}

func (p *parts) Forward(shard uint16, items []*batch.Item, end func(bool)) {
	p.items, p.ends = append(p.items, items), append(p.ends, end)
	if p.of == nil {
		p.of = map[uint16]func(bool){}
	}
	p.of[shard] = end
}

func (p *parts) String() string {
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

func startForwarding() (*batch.Batch, *scripted, *parts) {
	s, p := &scripted{}, &parts{}
	return batch.New(s, p), s, p
}

// sendTo adds an event for each letter to an instance.
func sendTo(b *batch.Batch, instance, names string) {
	for _, name := range names {
		b.Event(&message.Event{WorkflowID: "leave", InstanceID: instance, Name: string(name)}, []byte(string(name)))
	}
}

// answer answers all items of a part.
func (p *parts) answer(i int) {
	for _, m := range p.items[i] {
		m.AnsweredBy([]byte("done-"+string(m.Text)), nil)
	}
	p.ends[i](false)
}

// TestItemsWaitForThoseThatArePostedHere, and leave with all later ones of their instance.
func TestItemsWaitForThoseThatArePostedHere(t *testing.T) {
	b, s, p := startForwarding()
	sendTo(b, "x", "ab")
	s.elsewhere = true
	sendTo(b, "x", "c")
	sendTo(b, "y", "d")
	b.Ready(false)
	want(t, "while a and b are posted", p.String(), "d")
	p.answer(0)
	s.begin(0)
	s.posted[0].Answered(nil, failure.Elsewhere(3)) // at its commit
	assert.False(t, s.begin(1), "b was begun behind a, which is led elsewhere")
	b.Ready(false)
	want(t, "behind them", p.String(), "d abc")
	s.elsewhere = false
	sendTo(b, "x", "e")
	b.Ready(false)
	want(t, "while a part is away", p.String()+fmt.Sprint(s.names), "d abc[a b]")
	p.answer(1)
	b.Ready(false)
	p.answer(2)
	want(t, "results", results(t, b), "done-a done-b done-c done-d done-e")
}

// TestWhatComesBackIsPostedWithAllThatWait behind it, in order.
func TestWhatComesBackIsPostedWithAllThatWait(t *testing.T) {
	b, s, p := startForwarding()
	s.elsewhere = true
	sendTo(b, "x", "ab")
	b.Ready(false)
	sendTo(b, "x", "c")
	s.elsewhere = false
	p.ends[0](true)
	sendTo(b, "x", "d")
	b.Ready(false)
	sendTo(b, "x", "e")
	want(t, "posted", strings.Join(s.names, ""), "abcde")
	for i := range s.posted {
		s.begin(i)
		s.posted[i].Answered(&message.Reply{Sequence: uint64(i)}, nil)
	}
	want(t, "results", results(t, b), "0 1 2 3 4")
	want(t, "forwarded", p.String(), "ab")
}

// TestWhatComesBackMeanwhile waits for the next look at all, or a later item, which is looked at
// then, would be posted before an earlier one.
func TestWhatComesBackMeanwhile(t *testing.T) {
	b, s, p := startForwarding()
	s.elsewhere, s.shardOf = true, map[string]uint16{"y": 4}
	sendTo(b, "x", "a")
	sendTo(b, "y", "b")
	sendTo(b, "x", "c")
	b.Ready(false)
	s.elsewhere = false
	s.onPost = func() {
		s.onPost = nil
		p.of[3](true)
	}
	p.of[4](true)
	b.Ready(false)
	b.Ready(false)
	want(t, "posted", strings.Join(s.names, ""), "bac")
}

// TestTheNextLifeOfAnInstance takes nothing while the last one owes an answer: what was begun there
// may turn out as not done.
func TestTheNextLifeOfAnInstance(t *testing.T) {
	b, s, p := startForwarding()
	sendTo(b, "x", "abc")
	assert.True(t, s.beginIn(0, "first") && s.beginIn(1, "first"), "one life did not begin two items")
	assert.False(t, s.beginIn(2, "second"), "c was begun while nobody knows what became of a")
	for i := range 2 {
		s.posted[i].Answered(nil, failure.Elsewhere(3))
	}
	b.Ready(false)
	want(t, "forwarded", p.String(), "abc")
	p.ends[0](true)
	b.Ready(false)
	for i := range 3 {
		assert.True(t, s.beginIn(3+i, "second"), "item %d was not begun behind answered ones", i)
	}
}

// TestBehindWhatIsNotKnown elsewhere nothing of its instance is sent again.
func TestBehindWhatIsNotKnown(t *testing.T) {
	b, s, p := startForwarding()
	s.elsewhere = true
	sendTo(b, "x", "ab")
	sendTo(b, "y", "c")
	b.Ready(false)
	items := p.items[0]
	items[0].AnsweredBy([]byte("unknown"), failure.ErrOutcomeUnknown)
	assert.True(t, !items[1].NotDone() && items[2].NotDone(), "what is behind an item that may be done, or that alone, would be sent again")
	items[2].AnsweredBy([]byte("done"), nil)
	p.ends[0](false)
	want(t, "results", results(t, b), "unknown unavailable done")
}

// TestAnItemThatIsLost: with a key it may be sent again, and what then says nothing of the first
// time leaves that open. Behind one without a key nothing of its instance is known.
func TestAnItemThatIsLost(t *testing.T) {
	b, s, p := startForwarding()
	s.elsewhere = true
	keyed := func(instance, key string) {
		b.Event(&message.Event{WorkflowID: "leave", InstanceID: instance, Retry: message.Retry{Key: key}}, []byte("k"))
	}
	keyed("x", "1")
	keyed("y", "")
	keyed("y", "2")
	keyed("z", "3")
	b.Ready(false)
	items := p.items[0]
	for i, again := range []bool{true, false, false, true} {
		assert.Equal(t, again, items[i].Lost(), "item %d may be sent again: %v", i, !again)
	}
	items[0].AnsweredBy([]byte("done"), nil)
	items[3].AnsweredBy([]byte("busy"), failure.ErrUnavailable)
	p.ends[0](false)
	keyed("y", "4")
	want(t, "results", results(t, b), "done outcome unknown outcome unknown outcome unknown unavailable")
}

// TestWithoutAForwarder items that are led elsewhere say so, and so do the later ones of their
// instance, which must not overtake them at the next node.
func TestWithoutAForwarder(t *testing.T) {
	s := &scripted{}
	b := batch.New(s, nil)
	s.elsewhere = true
	sendTo(b, "x", "a")
	s.elsewhere = false
	sendTo(b, "x", "b")
	sendTo(b, "y", "c")
	s.posted[0].Answered(&message.Reply{Sequence: 9}, nil)
	want(t, "results", results(t, b), "led by another node led by another node 9")
}
