package repository_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/assert"

	"troupe/actors/internal/mailbox"
)

// seen is an actor that notes its messages.
type seen struct {
	mu       sync.Mutex
	messages []any
	failed   []any
	handle   func(message any) // nil: nothing more
}

func (s *seen) note(message any) {
	s.mu.Lock()
	s.messages = append(s.messages, message)
	s.mu.Unlock()
	if s.handle != nil {
		s.handle(message)
	}
}

func (s *seen) InvokeSystemMessage(message any) { s.note(message) }
func (s *seen) InvokeUserMessage(message any)   { s.note(message) }

func (s *seen) EscalateFailure(_, message any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed = append(s.failed, message)
}

// startMailbox returns a mailbox with an actor that is told last when it got the message "end".
func startMailbox(t *testing.T, s *seen) (m *mailbox.Mailbox, ended chan struct{}) {
	t.Helper()
	m, ended = new(mailbox.Mailbox), make(chan struct{})
	handle := s.handle
	s.handle = func(message any) {
		if handle != nil {
			handle(message)
		}
		if message == "end" {
			close(ended)
		}
	}
	m.RegisterHandlers(s, nil)
	m.Start()
	return m, ended
}

// TestMessagesOfManyAreHandledOneByOne in the order of each sender.
func TestMessagesOfManyAreHandledOneByOne(t *testing.T) {
	const senders, each = 8, 1000
	type message struct{ sender, number int }
	var running sync.Mutex
	next := make([]int, senders)
	s := &seen{handle: func(x any) {
		if !assert.True(t, running.TryLock(), "two messages at a time") {
			return
		}
		defer running.Unlock()
		if m, ok := x.(message); ok {
			assert.Equal(t, m.number, next[m.sender], "sender %d: got message", m.sender)
			next[m.sender] = m.number + 1
		}
	}}
	m, ended := startMailbox(t, s)
	var all sync.WaitGroup
	for sender := range senders {
		all.Go(func() {
			for number := range each {
				m.PostUserMessage(message{sender, number})
			}
		})
	}
	all.Wait()
	m.PostUserMessage("end")
	<-ended
	if len(s.messages) != senders*each+1 || m.UserMessageCount() != 0 {
		t.Errorf("got %d messages and %d left, want %d and 0", len(s.messages), m.UserMessageCount(), senders*each+1)
	}
}

// TestASuspendedMailboxTakesOnlySystemMessages, and the others when it goes on.
func TestASuspendedMailboxTakesOnlySystemMessages(t *testing.T) {
	s := &seen{}
	suspended := make(chan struct{})
	s.handle = func(x any) {
		if x == "suspended" {
			close(suspended)
		}
	}
	m, ended := startMailbox(t, s)
	m.PostSystemMessage(&actor.SuspendMailbox{})
	m.PostUserMessage("first")
	m.PostUserMessage("end")
	m.PostSystemMessage("suspended")
	<-suspended
	assert.Equal(t, 2, m.UserMessageCount(), "suspended")
	m.PostSystemMessage(&actor.ResumeMailbox{})
	<-ended
	want := []any{"suspended", "first", "end"}
	assert.True(t, slices.Equal(s.messages, want), "got %v, want %v", s.messages, want)
}

// TestAPanicInAMailboxIsEscalated with its message, and the next message is handled.
func TestAPanicInAMailboxIsEscalated(t *testing.T) {
	s := &seen{handle: func(x any) {
		if x == "panic" {
			panic("on purpose")
		}
	}}
	m, ended := startMailbox(t, s)
	m.PostUserMessage("panic")
	m.PostUserMessage("end")
	<-ended
	want := []any{"panic"}
	assert.True(t, slices.Equal(s.failed, want), "escalated: got %v, want %v", s.failed, want)
}

// TestWhoPostsHandlesOneMessage, its own, and not those that come meanwhile.
func TestWhoPostsHandlesOneMessage(t *testing.T) {
	s := &seen{}
	hold := make(chan struct{})
	var m *mailbox.Mailbox
	s.handle = func(x any) {
		switch x {
		case "first":
			m.PostUserMessage("end")
		case "end":
			<-hold
		}
	}
	var ended chan struct{}
	m, ended = startMailbox(t, s)
	m.PostUserMessage("first") // NB: with "end" it would never return
	s.mu.Lock()
	assert.True(t, len(s.messages) != 0 && s.messages[0] == "first", "handled %v when the first was posted", s.messages)
	s.mu.Unlock()
	close(hold)
	<-ended
}
